"""`python -m clarinet bench`: how fast a training step is here, and what questions by belief are worth."""

import argparse
import json
import os
import platform
from typing import TYPE_CHECKING, Any

from clarinet.commands.active import add_active
from clarinet.commands.options import Commands, named_device
from clarinet.recipes.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from clarinet.run.bench import Row

METHODS = ("clarinet", "clarinet-plus")


def add_bench(commands: Commands) -> None:
    """Describe the command to the parser."""
    bench = commands.add_parser("bench", help="measure", description="Measure speed, and ways of asking.")
    kinds = bench.add_subparsers(dest="kind", required=True)
    step = kinds.add_parser(
        "step",
        help="one training step",
        description="Time a training step at the shapes of USPS to MNIST, in turns with a textbook step of "
        "the paper's method (float32) and with the networks' forward and backward pass alone.",
    )
    step.add_argument("--method", choices=METHODS, nargs="+", default=["clarinet"])
    step.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: the CPU, and the GPU if any"
    )
    step.add_argument("--steps", type=int, default=40, help="timed steps of each kind (default 40)")
    step.add_argument("--threads", type=int, help="CPU threads; torch decides by default")
    step.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: processor time of this process, for a machine with other work to do",
    )
    step.add_argument("--json", action="store_true", help="end with one JSON object instead of a table")
    step.set_defaults(run=run_bench_step)
    add_active(kinds)


def run_bench_step(arguments: argparse.Namespace) -> int:
    """Measure and show; returns the exit status."""
    import torch

    from clarinet.run.bench import bench_step

    if arguments.steps < 1:
        raise ConfigError(f"--steps {arguments.steps}: at least 1 is needed")
    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"--threads {arguments.threads}: at least 1 is needed")
    if arguments.clock == "cpu" and arguments.device != "cpu":
        raise ConfigError("--clock cpu: a GPU works on while the processor waits; add --device cpu")
    threads = torch.get_num_threads()
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    before = os.getloadavg()
    try:
        rows = [
            row
            for device in _devices(arguments.device)
            for method in arguments.method
            for row in bench_step(method, device, steps=arguments.steps, clock=arguments.clock)
        ]
        about = _about(arguments, before)
    finally:
        torch.set_num_threads(threads)
    if arguments.json:
        print(json.dumps({"rows": [row.to_dict() for row in rows]} | about))
    else:
        _show(rows, about)
    return 0


def _devices(name: str) -> "list[torch.device]":
    import torch

    if name != "auto":
        return [named_device(name)]
    return [torch.device("cpu")] + ([torch.device("cuda")] if torch.cuda.is_available() else [])


def _about(arguments: argparse.Namespace, before: tuple[float, float, float]) -> dict[str, Any]:
    """What a reader must know to judge the times; load averages are over one minute."""
    import torch

    from clarinet.run.provenance import processor

    return {
        "steps": arguments.steps,
        "clock": arguments.clock,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "processor": processor(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "load_before": round(before[0], 2),
        "load_after": round(os.getloadavg()[0], 2),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def _show(rows: "list[Row]", about: dict[str, Any]) -> None:
    from clarinet.run.bench import TOGETHER

    print("ms a step, median (minimum)")
    print(
        f"{'method':14} {'device':6} {'precision':9} {'textbook':>15} {'ours':>15} {'ideal':>15} "
        f"{'ours / ideal':>13} {'textbook / ours':>15}"
    )
    for row in rows:
        print(
            f"{row.method:14} {row.device:6} {row.precision:9} "
            f"{_pair(row.textbook_ms, row.textbook_min_ms)} {_pair(row.ours_ms, row.ours_min_ms)} "
            f"{_pair(row.ideal_ms, row.ideal_min_ms)} "
            f"{row.ours_ms / row.ideal_ms:6.2f} ({row.ours_min_ms / row.ideal_min_ms:4.2f}) "
            f"{row.textbook_ms / row.ours_ms:8.2f} ({row.textbook_min_ms / row.ours_min_ms:4.2f})"
        )
    for row in rows:
        if row.together_ms is not None and row.together_min_ms is not None:
            print(
                f"{row.method:14} {row.device:6} {row.precision:9} a step of each of {TOGETHER} runs: "
                f"{_pair(row.together_ms, row.together_min_ms).strip()}, {TOGETHER} textbook steps / it: "
                f"{TOGETHER * row.textbook_ms / row.together_ms:.1f}"
            )
    print(", ".join(f"{name} {value}" for name, value in about.items() if value is not None))


def _pair(median: float, least: float) -> str:
    return f"{median:7.2f} ({least:5.2f})".rjust(15)
