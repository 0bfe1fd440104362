"""Where `clarinet train` takes its labels from: drawn from true classes, or a file of the application."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clarinet.commands.inputs import Inputs
from clarinet.recipes.config import LARGEST_SEED, TrainConfig
from clarinet.recipes.errors import ConfigError

if TYPE_CHECKING:
    from clarinet.data.training_data import TrainData


def add_label_options(parser: argparse.ArgumentParser) -> None:
    """Describe them to the parser."""
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="labels that people gave, as the application writes them: csv, tsv, jsonl, or a snapshot's npz",
    )
    parser.add_argument(
        "--label-seed",
        type=int,
        metavar="SEED",
        help="draw the labels from this seed in every trial instead of from the trial's own",
    )
    parser.add_argument(
        "--true-labels", type=int, default=1000, help="true labels of the pc setting (default 1000)"
    )
    parser.add_argument(
        "--questions", action="store_true", help="simulate one uniform yes/no question per image instead"
    )
    parser.add_argument(
        "--asked",
        type=float,
        nargs="+",
        metavar="SHARE",
        help="with --questions: how often each class is asked about, relative to the others",
    )
    parser.add_argument(
        "--label-noise", type=float, default=0.0, help="share of complementary labels that are wrong"
    )


def label_seed(arguments: argparse.Namespace, config: TrainConfig) -> int | None:
    """What a trial's labels are drawn from; None when they come from a file."""
    if arguments.labels:
        return None
    return config.seed if arguments.label_seed is None else int(arguments.label_seed)


def simulated(arguments: argparse.Namespace, config: TrainConfig) -> dict[str, Any] | None:
    """How the labels were drawn, for the model's card; None when people gave them."""
    seed = label_seed(arguments, config)
    if seed is None:
        return None
    facts: dict[str, Any] = {"label_seed": seed, "share_of_wrong_labels": arguments.label_noise}
    if arguments.questions:
        return facts | {"drawn_as": "one question per image", "asked": arguments.asked}
    if config.setting == "pc":
        facts["true_labels"] = arguments.true_labels
    return facts | {"drawn_as": "one label per image"}


def train_data(arguments: argparse.Namespace, config: TrainConfig, inputs: Inputs) -> "TrainData":
    """Both domains of one trial, with the labels of a file or drawn ones."""
    from clarinet.data.drawn_labels import simulate_labels
    from clarinet.data.training_data import TrainData

    _check_options(arguments)
    labels, seed = inputs.labels, label_seed(arguments, config)
    if labels is None:
        assert seed is not None
        labels = simulate_labels(
            inputs.source["y_train"],
            inputs.num_classes,
            seed=seed,
            setting=config.setting,
            true_count=arguments.true_labels,
            questions=arguments.questions,
            asked=arguments.asked,
            label_noise=arguments.label_noise,
        )
    elif labels.excluded is not None and config.losses.complementary_loss != "inverse":
        labels = labels.true_alone()
    target = inputs.target
    test = target.get("x_test"), target.get("y_test")
    return TrainData.of(
        labels,
        inputs.source["x_train"],
        target_images=target["x_train"],
        test=test,
        target_labels=target.get("y_train"),
    )


def _check_options(arguments: argparse.Namespace) -> None:
    simulated = {
        "--label-seed": arguments.label_seed is not None,
        "--questions": arguments.questions,
        "--label-noise": arguments.label_noise != 0,
    }
    given = [name for name, is_given in simulated.items() if is_given]
    if arguments.labels and given:
        raise ConfigError(
            f"{given[0]} is for labels that are drawn, but --labels gives them; drop one of them"
        )
    if arguments.asked and not arguments.questions:
        raise ConfigError("--asked says how often questions ask about each class; add --questions")
    if not 0 <= (arguments.label_seed or 0) <= LARGEST_SEED:
        raise ConfigError(f"--label-seed is {arguments.label_seed}; it must lie between 0 and {LARGEST_SEED}")
