"""`python -m clarinet`: the library's commands, without the application."""

import argparse
import sys
from collections.abc import Sequence

from clarinet.commands.bench import add_bench
from clarinet.commands.digits import add_make_syn_digits
from clarinet.commands.evaluate import add_evaluate
from clarinet.commands.options import FAILED
from clarinet.commands.predict import add_predict
from clarinet.commands.reproduce import add_reproduce
from clarinet.commands.train import add_train
from clarinet.recipes.errors import ClarinetError
from clarinet.run.memory import keep_freed_memory


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Usage errors exit with 2, as argparse does."""
    words = sys.argv[1:] if argv is None else list(argv)
    arguments = _parser().parse_args(words)
    arguments.words = words  # a report names the command that made it
    keep_freed_memory()
    try:
        status: int = arguments.run(arguments)
    except ClarinetError as error:
        print(f"clarinet: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:
        if error.filename is None:
            raise
        print(f"clarinet: {error.filename} cannot be used: {error.strerror}.", file=sys.stderr)
        return FAILED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clarinet", description="Learn from complementary labels across domains."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add_train(commands)
    add_predict(commands)
    add_evaluate(commands)
    add_reproduce(commands)
    add_bench(commands)
    add_make_syn_digits(commands)
    return parser
