"""`python -m clarinet bench active`: what questions by a model's belief are worth beside uniform ones."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from clarinet.commands.options import Commands, add_weights_option, changes_of
from clarinet.commands.reproduce import DATA_VARIABLE
from clarinet.files.beliefs import FLOOR_PERCENT, PERCENT
from clarinet.recipes.errors import ConfigError


def add_active(kinds: Commands) -> None:
    """Describe the command to the parser of `bench`."""
    active = kinds.add_parser(
        "active",
        help="questions by a model's belief",
        description="Train clarinet-plus from simulated answers: to uniform questions, to questions that a "
        "first model's beliefs chose, and from ordinary labels. Each finished training is a line of the "
        "file: a second start does the rest.",
    )
    add = active.add_argument
    add(
        "tasks", nargs="*", metavar="TASK", default=["U-M", "art_painting-photo"], help="default: %(default)s"
    )
    add("--answers", type=int, nargs="+", default=[500, 1000, 2000], help="default: %(default)s")
    add("--seeds", type=int, default=3, help="trials of each, with seeds from 0 (default %(default)s)")
    add("--ways", nargs="+", choices=("uniform", "again", "others", "ordinary"), help="default: all")
    add(
        "--floor",
        type=int,
        default=FLOOR_PERCENT,
        metavar="PERCENT",
        help="of a question's probability that all possible classes share alike (default %(default)s)",
    )
    add("--set", action="append", default=[], metavar="NAME=VALUE", dest="overrides", help="as in train")
    add_weights_option(active)
    add("--data", type=Path, help=f"folder of the data (default: ${DATA_VARIABLE} or data)")
    add("--out", type=Path, default=Path("active.jsonl"), help="default: %(default)s")
    active.set_defaults(run=run_active)


def run_active(arguments: argparse.Namespace) -> int:
    """Train what is not done yet, then print the table and draw the charts; returns the exit status."""
    from clarinet.recipes.config import TrainConfig
    from clarinet.recipes.methods import config_for
    from clarinet.reproduction.active import WAYS, run_seed
    from clarinet.reproduction.active_report import charts, key_of, read, table
    from clarinet.reproduction.tasks import load_task, task_called

    if arguments.seeds < 1 or min(arguments.answers) < 1 or not 1 <= arguments.floor <= PERCENT:
        raise ConfigError("--seeds and --answers are at least 1, --floor lies in 1..100")
    records = read(arguments.out)
    finished = {key_of(record): record for record in records}
    changes = changes_of(arguments)
    folder = arguments.data or Path(os.environ.get(DATA_VARIABLE, "data"))
    for name in arguments.tasks:
        task = task_called(name)
        data = load_task(task, folder)

        def make(seed: int, looks: Any = task.looks) -> TrainConfig:
            return config_for("clarinet-plus", "quick", looks=looks, setting="pc", seed=seed, **changes)

        for seed in range(arguments.seeds):
            found = run_seed(
                data,
                make,
                seed=seed,
                answers=arguments.answers,
                ways=arguments.ways or WAYS,
                floor_percent=arguments.floor,
                done=lambda about: finished.get(key_of(about)),
            )
            for record in found:
                finished[key_of(record)] = record
                records.append(record)
                with arguments.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                accuracy = 100 * record["target_accuracy"]
                about = f"{record['task']} {record['way']} {record['answers']:,} answers, seed {seed}"
                print(f"  {about}: {accuracy:.2f} % in {record['seconds']:.0f} s", flush=True)
    print(table(records))
    for file_name, drawn in charts(records).items():
        (arguments.out.parent / file_name).write_text(drawn, encoding="utf-8")
    return 0
