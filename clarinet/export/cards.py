"""Model cards: what a model learnt from, how, and how well it does; as JSON and as Markdown."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor

from clarinet.data.fingerprint import digest_of, fingerprint
from clarinet.data.streams import ImageStream
from clarinet.data.training_data import TrainData
from clarinet.files.names import NO_LABEL
from clarinet.recipes.choices import HUB, OWN_WEIGHTS
from clarinet.recipes.config import DEFAULTS, GROUPS, TrainConfig
from clarinet.recipes.counting import there_are
from clarinet.recipes.errors import DataError
from clarinet.recipes.fitting import sentence_of
from clarinet.run.results import TrainResult
from clarinet.run.tensor_files import tensors_digest

CARD_VERSION = 1
# How often a run was written down says nothing of how a model was trained.
_NO_DEPARTURES = {"checkpoint_every"}
_NO_CRITERIA = {"epoch", "epochs", "step", "steps", "seconds", "losses", "target_accuracy"}


def model_card(
    result: TrainResult,
    data: TrainData | None = None,
    *,
    class_names: Sequence[str] | None = None,
    simulated: Mapping[str, Any] | None = None,
    made: Mapping[str, str] | None = None,
    origin: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything worth knowing about a model, as plain JSON values.

    Digests of data are those of `fingerprint.digest_of`. Target labels, where there are some, have scored the
    model and nothing else.

    Args:
        result: the finished run.
        data: what it was trained on; None leaves data and labels out.
        class_names: K names; None counts from "0".
        simulated: how the labels were drawn, where no person gave them: seed, noise and so on.
        made: how images were made that are not the published ones, under "source" or "target".
        origin: where the model comes from, as whoever keeps its data calls it: any of "run" and "campaign";
            "datasets", with "source" and "target", each with "name", "version" and "digest"; and "labels",
            the digest of their file.

    Raises:
        DataError: another number of names than classes.
    """
    num_classes = result.model.spec.num_classes
    names = [str(k) for k in range(num_classes)] if class_names is None else list(class_names)
    if len(names) != num_classes:
        raise DataError(f"{there_are(len(names), 'class name')}, but the model has {num_classes} classes")
    config = _without_places(result)
    learnt = {"alpha": result.alpha, "simulated": dict(simulated or {}) or None}
    return {
        "card_version": CARD_VERSION,
        "method": config.method,
        "preset": config.preset,
        "setting": config.setting,
        "seed": config.seed,
        "classes": names,
        "recipe": sentence_of(config, result.model.spec.architecture),
        "network": result.model.spec.to_dict(),
        "tensors_digest": tensors_digest(result.model.state_dict()),
        "config": config.to_dict(),
        "of_the_paper": paper_parts(config),
        "departures": departures(config),
        "origin": None if origin is None else dict(origin),
        "data": None if data is None else _data_facts(data, made or {}),
        "labels": None if data is None else _label_facts(data) | learnt,
        "pretrained": None if result.pretrained is None else asdict(result.pretrained),
        "metrics": _metrics(result),
        "training": {
            "epochs": result.epochs,
            "steps": result.steps,
            "seconds": round(result.seconds, 3),
            "computed_in": result.computed_in,
        },
        "versions": versions(),
    }


def _without_places(result: TrainResult) -> TrainConfig:
    """The config with the name and digest of a file of trained weights, and not where it lay."""
    config, began = result.config, result.pretrained
    if began is None or config.network.pretrained in {HUB, OWN_WEIGHTS}:
        return config
    return config.changed(pretrained=began.name, pretrained_digest=began.digest)


def paper_parts(config: TrainConfig) -> dict[str, bool]:
    """Which parts of the paper a configuration has."""
    complementary = config.losses.complementary_loss != "none"
    unbiased = config.losses.complementary_loss == "unbiased" and config.losses.second_term_prior == "label"
    conditional = config.adaptation.adaptation_kind == "adversary" and config.adaptation.conditioning
    return {
        "unbiased complementary risk with its correction": unbiased,
        "scattered conditional adversarial loss": conditional,
        "sharpened predictions in it": conditional and config.adaptation.sharpening < 1,
        "true labels beside complementary ones, weighed by alpha": config.setting == "pc" and complementary,
    }


def departures(config: TrainConfig) -> dict[str, dict[str, Any]]:
    """Every hyper-parameter that is not as in the paper's preset: its value, the paper's, what it is."""
    helps = {item.name: item.metadata["help"] for group in GROUPS.values() for item in fields(group)}
    return {
        name: {"value": value, "paper": DEFAULTS[name], "meaning": helps[name]}
        for name, value in config.flat().items()
        if name in helps and name not in _NO_DEPARTURES and value != DEFAULTS[name]
    }


def versions() -> dict[str, str]:
    """What the arithmetic depends on."""
    found = {"torch": str(torch.__version__), "python": platform.python_version()}
    with suppress(PackageNotFoundError):  # run from a folder without being installed
        found["clarinet"] = version("clarinet")
    return found


def card_digest(card: Mapping[str, Any]) -> str:
    """SHA-256 of a card, in hex, whatever the order of its entries."""
    return hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()


def _metrics(result: TrainResult) -> dict[str, Any]:
    """Scores on the target, and what the last epoch tells without target labels."""
    last = result.reports[-1].to_dict() if result.reports else {}
    return {
        "target_accuracy": result.target_accuracy,
        "scored_on": result.scored_on.to_dict() if result.scored_on.images else None,
        "per_class_accuracy": result.per_class_accuracy,
        "confusion": result.confusion,
        "without_target_labels": {name: last[name] for name in last if name not in _NO_CRITERIA},
    }


def _data_facts(data: TrainData, made: Mapping[str, str]) -> dict[str, Any]:
    def domain(images: Tensor | ImageStream) -> dict[str, Any]:
        return {"images": len(images), "shape": list(images.shape[1:]), "digest": digest_of(images)}

    test, target = None, domain(data.target_images) | {"made": made.get("target")}
    if data.target_test_images is not None and data.target_test_labels is not None:
        test = domain(data.target_test_images) | {"labels_digest": digest_of(data.target_test_labels)}
    elif data.target_labels is not None:
        target["labels_digest"] = digest_of(data.target_labels)
    return {
        "source": domain(data.source_images) | {"made": made.get("source")},
        "target": target,
        "target_test": test,
        "digest": fingerprint(data),
    }


def _label_facts(data: TrainData) -> dict[str, Any]:
    def counts(labels: Tensor) -> list[int]:
        found: list[int] = torch.bincount(labels[labels != NO_LABEL], minlength=data.num_classes).tolist()
        return found

    return {
        "complementary": counts(data.complementary.cpu()),
        "true": counts(data.true.cpu()),
        "held_out": None if data.held_out is None else int(data.held_out.sum()),
        "weighted": bool((data.weights != data.weights[0]).any()),
        "digest": digest_of(data.complementary, data.true, data.weights, data.example, data.held_out),
    }
