"""`python -m clarinet reproduce`: the paper's tables for the data that is at hand, ours beside its own."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clarinet.commands.options import FAILED, Commands, add_weights_option, changes_of, named_device, percent
from clarinet.commands.progress import shown
from clarinet.commands.stopping import INTERRUPTED, stopping
from clarinet.recipes.counting import many
from clarinet.recipes.errors import ClarinetError, ConfigError, DataNotFound, Interrupted

if TYPE_CHECKING:
    import torch

    from clarinet.reproduction.tasks import TaskData
    from clarinet.reproduction.trials import Trial
    from clarinet.run.results import EpochReport
    from clarinet.run.turns import Run

DATA_VARIABLE = "CLARINET_DATA"
METHODS = ["clarinet", "clarinet-plus"]
AT_ONCE = 5  # trials of small networks that fill a GPU
RESULTS = Path("docs/results")


def add_reproduce(commands: Commands) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "reproduce",
        help="the paper's tables, ours beside its own",
        description="Train the paper's methods on its tasks, as far as their data is at hand, and print its "
        "tables with ours beside its numbers. Without --methods, --setting, --true-labels, --answers and "
        "--label-noise these are its three tables whole: methods, true labels, ablation. Each finished trial "
        "is kept: a second start does the rest.",
    )
    add = parser.add_argument
    own = "P-p, photo-art_painting and the other pairs of photo, art_painting, sketch"
    add("tasks", nargs="*", metavar="TASK", help=f"U-M, M-U, M-m, S-M, Y-M, Y-S, C-T (all by default); {own}")
    add(
        "--methods",
        nargs="+",
        metavar="METHOD[:PRESET]",
        help=f"default: those of the paper's tables, or {' '.join(METHODS)}",
    )
    add(
        "--preset",
        help="preset of the methods that have it; the others take their first, clarinet-plus what fits",
    )
    add("--seeds", type=int, default=5, help="trials of each, with seeds from 0 (default 5)")
    add("--setting", choices=("cc", "pc"), nargs="+", help="default: cc")
    add("--true-labels", type=int, nargs="+", help="in pc (default 1000); 0 is cc")
    add(
        "--answers",
        type=int,
        nargs="+",
        help="only so many source images are labelled: the first, of PACS drawn ones; 0 means all (default)",
    )
    add("--label-noise", type=float, nargs="+", help="share of wrong labels (default 0)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", dest="overrides", help="as in train")
    add_weights_option(parser)
    add("--data", type=Path, help=f"folder of the data (default: ${DATA_VARIABLE} or data)")
    add(
        "--references",
        action="store_true",
        help="train nothing: show what linear heads on true labels of source or target reach on the features "
        "of the preset's network for photographs",
    )
    add(
        "--cells",
        type=Path,
        nargs="?",
        const=RESULTS,
        metavar="FOLDER",
        help="train nothing: print the page of what was run of each printed number, from the studies in "
        f"FOLDER (default: {RESULTS})",
    )
    add("--download", action="store_true", help="let torchvision fetch what is missing")
    add("--out", type=Path, default=Path("docs/results/reproduction"), help="default: %(default)s")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add(
        "--at-once",
        type=int,
        metavar="N",
        help=f"trials that take their steps by turns (default: {AT_ONCE} on a GPU, 1 on a processor)",
    )
    parser.set_defaults(run=run_reproduce)


def run_reproduce(arguments: argparse.Namespace) -> int:
    """Train what is not done yet, write the report and print its tables; returns the exit status."""
    from clarinet.reproduction.results import folder_for_results

    if arguments.seeds < 1:
        raise ConfigError(f"--seeds {arguments.seeds}: at least 1 is needed")
    if arguments.at_once is not None and arguments.at_once < 1:
        raise ConfigError(f"--at-once {arguments.at_once}: at least 1 is needed")
    if arguments.references:
        return _show_references(arguments)
    if arguments.cells is not None:
        return _show_cells(arguments.cells)
    trials = _planned(arguments)
    folder_for_results(arguments.out)
    try:
        with stopping() as stop:
            busy = _train_all(arguments, trials, stop)
        status = 0
    except Interrupted as error:
        print(f"clarinet: {error}; the same command goes on from there")
        busy, status = 0, INTERRUPTED
    except ClarinetError as error:
        # The report is of what is done; were it to fail as well, this would be the error to know.
        print(f"clarinet: {error}", file=sys.stderr)
        busy, status = 0, FAILED
    if busy:
        print(f"other processes have {many(busy, 'trial')}; start again when they are done")
    _report(arguments.out)
    return status


def _planned(arguments: argparse.Namespace) -> "dict[str, list[Trial]]":
    """Trials by task, in the paper's order of tasks."""
    from clarinet.reproduction.tasks import PAPER_TASKS, TASKS, task_called
    from clarinet.reproduction.trials import plan, plan_tables

    asked = {task_called(name).name for name in arguments.tasks} or set(PAPER_TASKS)
    tasks = [name for name in TASKS if name in asked]
    seeds, changes = range(arguments.seeds), changes_of(arguments)
    chosen = ("methods", "setting", "true_labels", "answers", "label_noise")
    if any(getattr(arguments, name) for name in chosen):
        trials = plan(
            tasks,
            arguments.methods or METHODS,
            preset=arguments.preset,
            settings=arguments.setting or ["cc"],
            true_counts=arguments.true_labels or [1000],
            answers=arguments.answers or [0],
            label_noise=arguments.label_noise or [0.0],
            seeds=seeds,
            changes=changes,
        )
    else:
        trials = plan_tables(tasks, preset=arguments.preset, seeds=seeds, changes=changes)
    return {name: [t for t in trials if t.task == name] for name in TASKS if name in asked}


def _show_references(arguments: argparse.Namespace) -> int:
    from clarinet.recipes.methods import config_for
    from clarinet.reproduction.references import references
    from clarinet.reproduction.tasks import task_called

    if not arguments.tasks:
        raise ConfigError("--references: name the tasks, such as photo-art_painting")
    config = config_for("clarinet-plus", arguments.preset or "photographs", **changes_of(arguments))
    if not config.network.kept_features:
        raise ConfigError(f"--references: {arguments.preset} keeps no features; take photographs")
    tasks = [task_called(name) for name in arguments.tasks]
    print("| task | head on the source's true labels | on the target's own |\n| --- | --- | --- |")
    for name, (by_source, ceiling) in references(tasks, _data_folder(arguments), config).items():
        print(f"| {name} | {percent(by_source)} | {percent(ceiling)} |")
    return 0


def _show_cells(folder: Path) -> int:
    from clarinet.reproduction.cells import page
    from clarinet.reproduction.results import RECORDS, read_records

    studies = sorted(path.parent for path in folder.glob(f"*/{RECORDS}"))
    if not studies:
        raise ConfigError(f"--cells {folder}: no folder in it has {RECORDS}; name the folder of the studies")
    print(page([record for study in studies for record in read_records(study)]), end="")
    return 0


def _data_folder(arguments: argparse.Namespace) -> Path:
    return arguments.data or Path(os.environ.get(DATA_VARIABLE, "data"))


def _train_all(arguments: argparse.Namespace, trials: "dict[str, list[Trial]]", stop: list[int]) -> int:
    """Go through the tasks whose data is there; returns how many trials other processes hold."""
    from clarinet.reproduction.readers import require_data
    from clarinet.reproduction.tasks import TASKS, load_task

    folder = _data_folder(arguments)
    device = named_device(arguments.device)
    missing: list[DataNotFound] = []
    busy = 0
    if arguments.tasks:  # before hours are spent on the first of them
        domains = dict.fromkeys(d for name in trials for d in (TASKS[name].source, TASKS[name].target))
        require_data(domains, folder, download=arguments.download)
    for name, members in trials.items():
        try:
            data = load_task(TASKS[name], folder, download=arguments.download)
        except DataNotFound as error:
            print(f"{name}: {error}")
            missing.append(error)
            continue
        print(f"{name}: {data.source.name} to {data.target.name}")
        busy += _train_task(arguments, data, members, device, stop)
    if len(missing) == len(trials):
        raise missing[0]
    return busy


def _train_task(
    arguments: argparse.Namespace,
    data: "TaskData",
    trials: "list[Trial]",
    device: "torch.device",
    stop: list[int],
) -> int:
    from clarinet.reproduction.cells import FULL_LENGTH
    from clarinet.reproduction.running import drawn
    from clarinet.run.turns import take_turns

    for labels in {replace(trial, seed=0, method="", preset="", changes=()) for trial in trials}:
        drawn(labels, data)  # too many of some kind should not show after days
    long = sorted({trial.preset for trial in trials if trial.preset in FULL_LENGTH})
    if device.type == "cpu" and long:
        print(f"  {' and '.join(long)}: hours a trial on a processor; --preset short is a shortened protocol")
    at_once = arguments.at_once or (AT_ONCE if device.type == "cuda" else 1)
    waiting: list[Trial] = trials
    while True:
        at_once = max(1, min(at_once, len(waiting)))
        runs = (_told(arguments, trial, data, device, stop, at_once=at_once) for trial in waiting)
        records = take_turns(runs, device, at_once=at_once)
        held = [trial for trial, record in zip(waiting, records, strict=True) if record is None]
        # What waited for a trial of this process can be had now.
        if at_once == 1 or len(held) in {0, len(waiting)}:
            break
        waiting = held
    for trial in held:
        print(f"  {_name(trial, data)}: with another process")
    return len(held)


def _told(
    arguments: argparse.Namespace,
    trial: "Trial",
    data: "TaskData",
    device: "torch.device",
    stop: list[int],
    *,
    at_once: int,
) -> "Run[dict[str, Any] | None]":
    """The run of a trial, with a bar if it runs alone and a line at its end."""
    from clarinet.reproduction.running import trial_run

    with _bar(trial, hidden=at_once > 1) as show:
        record = yield from trial_run(
            trial,
            data,
            arguments.out,
            device=device,
            command=shlex.join(["clarinet", *arguments.words]),
            at_once=at_once,
            on_epoch=show,
            should_stop=lambda: bool(stop),
        )
    if record is None:
        return None
    if "failure" in record:
        print(f"  {_name(trial, data)}: {record['failure']}")
    else:
        result: dict[str, Any] = record["result"]
        accuracy = percent(result["target_accuracy"])
        print(f"  {_name(trial, data)}: {accuracy} in {result['seconds']:.0f} s", flush=True)
    return record


def _name(trial: "Trial", data: "TaskData") -> str:
    return trial.stem(data).rpartition("_")[0]


@contextmanager
def _bar(trial: "Trial", *, hidden: bool) -> "Iterator[Callable[[EpochReport], None]]":
    """A bar on a terminal, from the trial's first epoch on: one that is done has none."""
    with ExitStack() as stack:
        bars: list[Callable[[EpochReport], None]] = []

        def show(report: "EpochReport") -> None:
            if not bars:
                quiet = hidden or not sys.stdout.isatty()
                bars.append(stack.enter_context(shown(trial.config(), quiet=quiet, log_dir=None)).on_epoch)
            bars[0](report)

        yield show


def _report(folder: Path) -> None:
    """Write the report of all finished trials, also those of other processes, and print its tables."""
    from clarinet.reproduction.grouping import grouped
    from clarinet.reproduction.report import HEADINGS, markdown, remarks, table, tables
    from clarinet.reproduction.report_files import curves
    from clarinet.reproduction.results import in_turn, read_records
    from clarinet.run.tensor_files import replacing

    with in_turn(folder):
        records = read_records(folder)
        if not records:
            return
        groups = grouped(records)
        charts = curves(groups)
        contents = charts | {"README.md": markdown(records, charts)}
        for name, text in contents.items():
            with replacing(folder / name) as temporary:
                temporary.write_text(text, encoding="utf-8")
    for name, rows in tables(groups).items():
        print(f"\n{HEADINGS[name]}\n\n{table(rows)}")
        for remark in remarks(name, rows):
            print(f"\n{remark}")
    print(f"\nreport: {folder / 'README.md'}")
