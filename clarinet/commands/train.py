"""`python -m clarinet train`: one method on two datasets from files."""

import argparse
import json
import os
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from clarinet.commands.inputs import Inputs, read_inputs
from clarinet.commands.labels import add_label_options, label_seed, simulated, train_data
from clarinet.commands.opening import Pair, add_skip_option
from clarinet.commands.options import FAILED, Commands, add_weights_option, changes_of, percent
from clarinet.commands.progress import NOT_MEASURED, say_how_well, shown
from clarinet.commands.stopping import INTERRUPTED, stopping
from clarinet.commands.together import is_started_apart, run_together, taking_part
from clarinet.files.arrays import COLOUR_DIMENSIONS
from clarinet.recipes.choices import Looks
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.counting import many
from clarinet.recipes.errors import CheckpointNotWritten, ConfigError, ExportError, Interrupted
from clarinet.recipes.fitting import architecture_for, misfit, sentence_of
from clarinet.recipes.methods import config_for
from clarinet.recipes.presets import METHODS

if TYPE_CHECKING:
    import torch

    from clarinet.data.training_data import TrainData
    from clarinet.distributed.group import Group
    from clarinet.run.results import TrainResult


def add_train(commands: Commands) -> None:
    """Describe the command to the parser."""
    train = commands.add_parser(
        "train",
        help="train on two npz files or folders of images",
        description="Train on a source, whose labels are drawn from its y_train or come from a label file, "
        "and an unlabelled target; score on the target's x_test and y_test, else on those of its x_train "
        "whose class y_train tells, which training never sees.",
    )
    train.add_argument(
        "--source",
        type=Path,
        required=True,
        help="npz with x_train, and y_train without --labels, or folder of CLASS/* or train/CLASS/*",
    )
    train.add_argument(
        "--target",
        type=Path,
        required=True,
        help="npz with x_train; x_test and y_test to score on, or y_train; or folder of train/* and "
        "test/CLASS/*, or of CLASS/*",
    )
    train.add_argument(
        "--classes",
        type=int,
        metavar="K",
        help="number of classes, where no file names them (by default the source's largest label + 1); where "
        "one does, y_test of an npz counts them in its order",
    )
    train.add_argument(
        "--first-class",
        type=int,
        choices=(0, 1),
        help="from which number --labels counts classes (by default from 0; 1 to K alone is refused)",
    )
    train.add_argument(
        "--ignore-columns",
        default="",
        metavar="NAME,NAME",
        help="columns of --labels that are left out, whatever they say, with commas between",
    )
    train.add_argument(
        "--setting", choices=("cc", "pc"), default="cc", help="complementary labels only, or true ones too"
    )
    train.add_argument("--method", choices=tuple(METHODS), default="clarinet-plus")
    train.add_argument(
        "--preset",
        help="named set of hyper-parameters of the method; by default, and as default or quick, the one that "
        "fits the images: digits or photographs, which are presets, too",
    )
    train.add_argument(
        "--seeds", type=int, nargs="+", default=[0], help="one trial each: labels, weights and batches"
    )
    train.add_argument("--epochs", type=int, help="epochs to train instead of the preset's")
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="overrides",
        help="any field of TrainConfig",
    )
    add_skip_option(train)
    add_weights_option(train)
    add_label_options(train)
    train.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for the model: weights, card and ONNX; with several seeds DIR/seed-N for each",
    )
    train.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="keep the run's state here, and go on from it if it exists; with several seeds FILE-seed-N",
    )
    train.add_argument(
        "--tensorboard", type=Path, metavar="DIR", help="write losses and accuracies for TensorBoard here"
    )
    train.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    train.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="processes of this host that share each batch, each with a GPU of its own; over several hosts "
        "torchrun starts them",
    )
    train.add_argument("--json", action="store_true", help="end with one JSON object, and no lines per epoch")
    train.set_defaults(run=run_train)


def run_train(arguments: argparse.Namespace) -> int:
    """Train once per seed and say how well; returns the exit status."""
    if arguments.processes < 1:
        raise ConfigError(f"--processes is {arguments.processes}; at least one must train")
    if arguments.processes > 1 and not is_started_apart(os.environ):
        return run_together(arguments.words, arguments.processes)
    with taking_part(arguments.device) as (group, device):
        try:
            summary, is_written = _train_all(arguments, group, device)
        except Interrupted as stopped:
            print(f"clarinet: {stopped}", file=sys.stderr)
            return INTERRUPTED
        if arguments.json:
            print(json.dumps(summary))
    return 0 if is_written else FAILED


def _train_all(
    arguments: argparse.Namespace, group: "Group", device: "torch.device"
) -> tuple[dict[str, Any], bool]:
    """The summary of all trials, and whether every model is on the disk that should be."""
    import torch

    if len(set(arguments.seeds)) < len(arguments.seeds):
        raise ConfigError("--seeds names a seed twice; each is one trial, and the same one is no second")
    _check_config(arguments)
    if group.leads:
        _check_places(arguments)
    pair = Pair.of(arguments)
    looks = pair.looks
    configs = [_config(arguments, seed, looks) for seed in arguments.seeds]
    inputs = read_inputs(arguments, pair, configs[0].network.image_size)
    recipe = _say_what_is_trained(configs[0], looks, inputs)
    _say_what_is_unused(arguments, inputs)
    trials = []
    is_written = True
    for config in configs:
        data = train_data(arguments, config, inputs)
        result = _train_one(arguments, config, data, device, group)
        trials.append(_trial(result) | {"label_seed": label_seed(arguments, config)})
        if arguments.out is not None and group.leads:
            is_written &= _export(arguments, config, data, result, inputs.class_names)
        if not arguments.json:
            say_how_well(result)
        _say_what_merged(result, inputs.class_names)
    summary = _summary(trials, configs[0])
    if not arguments.json:
        _show_summary(summary)
    made = {"looks": looks, "recipe": recipe, "regenerated": _regenerated(arguments)}
    summary |= made | {"device": device.type, "torch": str(torch.__version__), "processes": group.size}
    return summary, is_written


def _check_config(arguments: argparse.Namespace) -> None:
    """Refuse, before data is read, values that are refused whatever the images look like."""
    refused = []
    for looks in get_args(Looks):
        try:
            _config(arguments, arguments.seeds[0], looks)
        except ConfigError as error:
            refused.append(error)
        else:
            return
    raise refused[0]


def _check_places(arguments: argparse.Namespace) -> None:
    """Refuse, before hours of training, what could not be written after them."""
    from clarinet.export.onnx import CARD, ONNX, WEIGHTS
    from clarinet.run.tensor_files import check_writable

    for seed in arguments.seeds:
        if checkpoint := _checkpoint(arguments, seed):
            check_writable(checkpoint)
        if arguments.out is not None:
            for name in (WEIGHTS, CARD, ONNX):
                check_writable(_folder(arguments.out, arguments, seed) / name)


def _say_what_is_trained(config: TrainConfig, looks: Looks, inputs: Inputs) -> str:
    """Say the recipe in a sentence, and where it is not for such images; gives the sentence."""
    source, target = (
        len(domain["x_train"].shape) == COLOUR_DIMENSIONS for domain in (inputs.source, inputs.target)
    )
    recipe = sentence_of(config, architecture_for(config, source_in_colour=source, target_in_colour=target))
    print(f"clarinet: {recipe} (preset {config.preset})", file=sys.stderr)
    if told := misfit(config, looks):
        print(f"clarinet: {told}", file=sys.stderr)
    return recipe


def _regenerated(arguments: argparse.Namespace) -> dict[str, str]:
    """How the source's or target's images were made, where they are no published ones."""
    from clarinet.reproduction.synthetic import recipe_of

    made = {domain: recipe_of(getattr(arguments, domain)) for domain in ("source", "target")}
    return {domain: recipe for domain, recipe in made.items() if recipe}


def _say_what_is_unused(arguments: argparse.Namespace, inputs: Inputs) -> None:
    count = 0 if inputs.labels is None else int((inputs.labels.true >= 0).sum())
    if count and arguments.setting == "cc":
        told = f"{many(count, 'true label')} of {arguments.labels} not used; --setting pc uses what is true"
        print(f"clarinet: {told}", file=sys.stderr)


def _say_what_merged(result: "TrainResult", class_names: list[str] | None) -> None:
    merged = result.merged_class
    if merged is not None:
        name = class_names[merged] if class_names else f"class {merged}"
        told = f"hardly any image of the target is taken for {name}; it may have merged with another class"
        print(f"clarinet: seed {result.config.seed}: {told}, or be rare there", file=sys.stderr)


def _train_one(
    arguments: argparse.Namespace,
    config: TrainConfig,
    data: "TrainData",
    device: "torch.device",
    group: "Group",
) -> "TrainResult":
    from clarinet.run.training import train

    wanted = arguments.tensorboard if group.leads else None
    log_dir = None if wanted is None else _folder(wanted, arguments, config.seed)
    checkpoint = _checkpoint(arguments, config.seed)
    quiet = arguments.json or not group.leads
    with shown(config, quiet=quiet, log_dir=log_dir) as shows, ExitStack() as stack:
        # Without a checkpoint nothing would be gained by waiting for the step's end.
        asked = stack.enter_context(stopping()) if checkpoint else []
        return train(
            config,
            data,
            device=device,
            on_epoch=shows.on_epoch,
            on_doing=shows.on_doing,
            checkpoint=checkpoint,
            should_stop=lambda: bool(asked),
            group=group,
        )


def _folder(path: Path, arguments: argparse.Namespace, seed: int) -> Path:
    """A trial's own folder: the one that was named, or one below it for each of several seeds."""
    return path / f"seed-{seed}" if len(arguments.seeds) > 1 else path


def _checkpoint(arguments: argparse.Namespace, seed: int) -> Path | None:
    path: Path | None = arguments.checkpoint
    # A folder is refused where it is tried. Not by Path.is_dir, which raises at names that no disk takes.
    if path is None or len(arguments.seeds) == 1 or os.path.isdir(path):  # noqa: PTH112
        return path
    return path.with_name(f"{path.stem}-seed-{seed}{path.suffix}")


def _export(
    arguments: argparse.Namespace,
    config: TrainConfig,
    data: "TrainData",
    result: "TrainResult",
    class_names: list[str] | None,
) -> bool:
    """Write the model; says whether it is on the disk, where it may be without ONNX. The other seeds wait."""
    from clarinet.export.onnx import export_model

    folder = _folder(arguments.out, arguments, config.seed)
    drawn = simulated(arguments, config)
    try:
        export_model(
            folder, result, data, class_names=class_names, simulated=drawn, made=_regenerated(arguments)
        )
    except ExportError as error:  # weights and card are written
        print(f"clarinet: {error}", file=sys.stderr)
    except CheckpointNotWritten as error:
        print(f"clarinet: seed {config.seed}: {error}", file=sys.stderr)
        return False
    return True


def _config(arguments: argparse.Namespace, seed: int, looks: Looks) -> TrainConfig:
    overrides = changes_of(arguments)
    if arguments.epochs is not None:
        overrides["epochs"] = arguments.epochs
    fixed = {"setting": arguments.setting, "seed": seed}
    return config_for(arguments.method, arguments.preset, looks=looks, **overrides | fixed)


def _trial(result: "TrainResult") -> dict[str, Any]:
    last = result.reports[-1]
    return {
        "seed": result.config.seed,
        "target_accuracy": result.target_accuracy,
        "scored_on": result.scored_on.to_dict() if result.scored_on.images else None,
        "epochs": result.epochs,
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        "source_estimate": last.source_estimate.to_dict() if last.source_estimate else None,
        "per_class_accuracy": result.per_class_accuracy,
        "smallest_predicted_share": last.smallest_predicted_share,
        "merged_class": result.merged_class,
        "target_information": last.target_information,
        "student_agreement": last.student_agreement,
        "label_uniformity": result.label_uniformity,
        "label_noise": result.label_noise,
    }


def _summary(trials: list[dict[str, Any]], config: TrainConfig) -> dict[str, Any]:
    known = [trial["target_accuracy"] for trial in trials if trial["target_accuracy"] is not None]
    return {
        "method": config.method,
        "preset": config.preset,
        "setting": config.setting,
        "mean_accuracy": statistics.fmean(known) if known else None,
        "std_accuracy": (statistics.stdev(known) if len(known) > 1 else 0.0) if known else None,
        "trials": trials,
    }


def _show_summary(summary: dict[str, Any]) -> None:
    known = [trial["target_accuracy"] for trial in summary["trials"] if trial["target_accuracy"] is not None]
    name = f"{summary['method']} ({summary['preset']}, {summary['setting']})"
    if not known:
        print(f"{name}: {NOT_MEASURED}")
        return
    spread = ""
    if len(known) > 1:  # a deviation is no interval: mean and deviation together may pass 100 %
        ends = f"from {100 * min(known):.2f} to {percent(max(known))}"
        spread = f", {ends}, standard deviation {100 * summary['std_accuracy']:.2f}"
    print(f"{name}: {percent(summary['mean_accuracy'])} on the target over {_trials(len(known))}{spread}")


def _trials(count: int) -> str:
    return many(count, "trial")
