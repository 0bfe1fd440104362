"""The `clarinet` command. Every import waits for the command that needs it: most of them need no torch."""

import errno
from pathlib import Path
from typing import Annotated, Any, NoReturn
from uuid import UUID

import typer
from typer.core import TyperGroup

from worker.cli import accounts, models, remote, runs
from worker.cli import bench as benchmarks
from worker.cli import simulate as simulating

# What a path that was typed or set may be: no folder, a folder, not there, not to be written.
OF_PATHS = (
    errno.EACCES,
    errno.EEXIST,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
)
NO_DATABASE = "file is not a database"  # in SQLite's words


class Commands(TyperGroup):
    """Commands that tell a refusal in a sentence, without a traceback.

    Status 2: what was typed or set cannot be, as for a misspelt option. Status 1: it was tried and failed.
    """

    def invoke(self, ctx: Any) -> Any:  # typer brings a click of its own, whose Context it does not export
        """Run the command."""
        from pydantic import ValidationError

        from app.errors import AppError, Unprocessable
        from clarinet.recipes.errors import ClarinetError, ConfigError
        from clarinet_client import CannotBe, ClientError
        from worker.local.starting import BadStart

        try:
            return super().invoke(ctx)
        except (Unprocessable, BadStart, ConfigError, CannotBe) as error:
            _refuse(str(error), status=2)
        except (AppError, ClarinetError, ClientError) as error:
            _refuse(str(error))
        except ValidationError as error:
            told = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors())
            _refuse(told, status=2)
        except OSError as error:
            if error.filename is None or error.errno not in OF_PATHS:
                raise
            _refuse(f"{error.filename} cannot be used: {error.strerror}.", status=2)
        except Exception as error:
            from app.outages import outage_of

            if NO_DATABASE in str(error):
                _refuse("CLARINET_DATABASE_URL names a file that is no database of SQLite.", status=2)
            outage = outage_of(error)
            if outage is None:
                raise
            _refuse(outage.words)


def _refuse(why: str, *, status: int = 1) -> NoReturn:
    typer.echo(f"clarinet: {why}", err=True)
    raise typer.Exit(status)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    # The plain traceback is shorter, and shows no local variables: those hold passwords and tokens.
    pretty_exceptions_enable=False,
    help="Yes/no labelling and CLARINET training: from question to accuracy.",
)
database = typer.Typer(no_args_is_help=True, help="The database's schema.")
app.add_typer(database, name="db")
app.add_typer(accounts.users, name="user")
app.add_typer(accounts.tokens, name="token")
app.add_typer(remote.datasets, name="dataset")
app.add_typer(remote.campaigns, name="campaign")
app.add_typer(runs.runs, name="run")
app.add_typer(models.models, name="model")
app.command()(simulating.simulate)
app.command()(simulating.audit)

Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for every network of this machine.")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Where database, images and checkpoints lie [CLARINET_DATA_DIR or var].")
]
Parent = Annotated[int | None, typer.Option(hidden=True, help="Die when this process does.")]


@app.command()
def up(host: Host = "127.0.0.1", port: Port = 8000, data_dir: DataDir = None) -> None:
    """Web, workers and upkeep in one terminal; SQLite and files unless the environment names servers."""
    from worker.cli.serve import run_up

    run_up(host=host, port=port, data_dir=data_dir)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Look at settings, versions, folder, database, disk, broker, workers, clock and GPU, a line each.

    Status 1: something failed, which is said; warnings are no failure.
    """
    import json

    from worker.cli.doctor import as_dicts, lines, look

    found = look()
    typer.echo(json.dumps(as_dicts(found)) if as_json else "\n".join(lines(found)))
    if any(item.state == "failed" for item in found):
        raise typer.Exit(1)


@app.command()
def alive(
    what: Annotated[str, typer.Argument(help="upkeep, or a queue: io, gpu.")],
) -> None:
    """For health checks: status 0 where a process of this host does this and said so a moment ago."""
    from sqlalchemy import inspect

    from app.clock import utc_now
    from app.db import connect
    from app.runs.models import Worker
    from app.runs.workers import is_seen_here
    from app.settings import Settings

    database = connect(Settings().sqlalchemy_url)
    try:
        with database.read.begin() as session:
            if not inspect(session.connection()).has_table(Worker.__tablename__):
                _refuse("The database has no schema yet. Run first: clarinet db upgrade")
            found = is_seen_here(session, what, now=utc_now())
    finally:
        database.dispose()
    if not found:
        _refuse(f"No process of this host said lately that it does {what!r}.")


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="A folder of backups, on another disk or host.")],
    keep: Annotated[int | None, typer.Option(min=1, help="So many stay, the newest [all].")] = None,
) -> None:
    """Copy all rows and files of this installation while people go on; a file only once.

    The backup holds hashes of passwords and people's addresses: keep it where only you can read.
    """
    from worker.cli.backup import run_backup

    run_backup(target, keep=keep)


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="One backup: a folder with a date in a folder of backups.")],
) -> None:
    """Bring a backup back into a new database and a new folder of data, as the settings name them."""
    from worker.cli.backup import run_restore

    run_restore(source)


@app.command()
def leftovers(
    delete: Annotated[bool, typer.Option("--delete", help="Delete them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Files and folders that no row names, as after a kill or a lost disk; --delete frees their room.

    Only what is older than a day. Another installation with its files in the same place would lose them.
    """
    from worker.cli.leftovers import run_leftovers

    run_leftovers(delete=delete, as_json=as_json)


@app.command()
def demo(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    data_dir: DataDir = Path("var/demo"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON once the server answers.")
    ] = False,
) -> None:
    """A ready-made campaign, simulated annotators at work, and a first run, in one terminal."""
    from worker.demo.running import run_demo

    run_demo(host=host, port=port, data_dir=data_dir or Path("var/demo"), as_json=as_json)


@app.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    migrate: Annotated[bool, typer.Option(help="Bring the database's schema up to date first.")] = True,
    parent: Parent = None,
) -> None:
    """The web process alone."""
    from worker.cli.serve import run_serve

    run_serve(host=host, port=port, migrate=migrate, parent=parent)


@app.command()
def worker(
    queues: Annotated[str, typer.Option(help="Which jobs to take, with commas: io, gpu.")] = "io,gpu",
    concurrency: Annotated[int, typer.Option(min=1, help="Jobs at a time; a GPU takes one.")] = 1,
    once: Annotated[
        UUID | None, typer.Option(metavar="TRIAL", help="Train this trial alone, and end: a cluster's job.")
    ] = None,
    parent: Parent = None,
) -> None:
    """Take jobs from the queue: io draws questions and imports images, gpu trains."""
    from worker.cli.serve import run_jobs, run_one_trial

    if once is not None:
        run_one_trial(once)
        return
    run_jobs(queues.split(","), concurrency=concurrency, parent=parent)


@app.command()
def upkeep(parent: Parent = None) -> None:
    """Send again what waits, and hand lost work on. One is enough; several do no harm."""
    from worker.cli.serve import run_upkeep_process

    run_upkeep_process(parent=parent)


@database.command("upgrade")
def upgrade_database(
    revision: Annotated[str, typer.Argument(help="Where to; usually the newest.")] = "head",
) -> None:
    """Bring the database to the current schema."""
    from alembic.util import CommandError

    from app.db import connect
    from app.migrate import Schema, upgrade
    from app.settings import Settings

    database_ = connect(Settings().sqlalchemy_url)
    try:
        before = upgrade(database_.engine, revision)
    except CommandError:
        _refuse(f"There is no schema called {revision!r}. Usually one says nothing, or head.", status=2)
    finally:
        database_.dispose()
    if before is Schema.NEWER:
        typer.echo(
            "The database's schema is newer than this program; nothing was done. This version goes on with "
            "what it knows. To go back for good, restore a backup that was made before the upgrade."
        )
        return
    typer.echo("The database is up to date.")


def _hand_over(*words: str, what: str, to: typer.Typer = app) -> None:
    """A command of the library under this one's name; the library reads its arguments."""
    *_, name = words

    @to.command(
        name,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        help=f"{what}: `clarinet {' '.join(words)} --help`.",
    )
    def hand_over(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
        from clarinet.commands.cli import main

        raise typer.Exit(main([*words, *(arguments or [])]))


_hand_over("train", what="Train on files, without a server")
_hand_over("predict", what="The classes of image files by a trained model")
_hand_over("evaluate", what="How well a trained model does on a folder of classes")
_hand_over("reproduce", what="The paper's tables, ours beside its own")
bench = typer.Typer(no_args_is_help=True, help="Measure speed on this machine.")
app.add_typer(bench, name="bench")
bench.command()(benchmarks.scale)
bench.command()(benchmarks.serve)
bench.command()(benchmarks.live)
bench.command()(benchmarks.order)
bench.command()(benchmarks.predict)
bench.command()(benchmarks.runs)
bench.command()(benchmarks.workers)
bench.command()(benchmarks.comparison)
bench.command()(benchmarks.faults)
_hand_over("bench", "step", what="A training step", to=bench)
_hand_over("bench", "active", what="Questions by a model's belief", to=bench)
_hand_over("make-syn-digits", what="Make SYN-DIGITS anew, after its published recipe")


if __name__ == "__main__":
    app()
