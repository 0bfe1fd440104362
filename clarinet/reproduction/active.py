"""Accuracy against the number of answers: questions drawn uniformly, or by what a first model believes.

Answers are simulated from the source's true labels. Labels of the target score the last model, and decide
nothing. Three ways of asking are compared:

* uniform: n images, one question each about a class drawn from all;
* again: n/2 images as before and a model of these answers, then a second question about each image whose
  first answer was no, drawn by that model's belief (what an active round of the application asks);
* others: n/2 images as before and the same model, then a first question about n/2 other images by belief.

Each way's first half is the uniform way's of half as many answers, so that the two models are one. Beside
them stands ordinary labelling of a quarter as many images, whose class is chosen of all, by the same method:

* ordinary: n/4 images with their true class, and K answers of no besides, as the method refuses true labels
  alone. Choosing one of ten classes takes people about four times as long as saying yes or no.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clarinet.data.drawn_labels import simulate_labels
from clarinet.data.seeding import generator
from clarinet.data.training_data import TrainData
from clarinet.files.beliefs import beliefs_of, question_probabilities, question_weights
from clarinet.files.label_table import COMPLEMENTARY, TRUE, Labels
from clarinet.files.names import NO_LABEL
from clarinet.networks.classifier import SOURCE
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import DataError
from clarinet.reproduction.tasks import TaskData
from clarinet.run.evaluation import predict
from clarinet.run.provenance import environment
from clarinet.run.training import train

Way = Literal["uniform", "again", "others", "ordinary"]
ORDINARY_SHARE = 4  # answers of yes or no for a class that is chosen of all
WAYS: tuple[Way, ...] = get_args(Way)
BY_BELIEF: tuple[Way, ...] = ("again", "others")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """Questions with their answers, a row each: (Q,) arrays."""

    images: NDArray[np.int64]
    classes: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    is_yes: NDArray[np.bool_]
    excluded: NDArray[np.int64]  # the class that an earlier no had ruled out, -1 for none

    def __len__(self) -> int:
        return len(self.images)

    def and_(self, others: "Asked") -> "Asked":
        """These, and then others."""
        both = {
            item.name: np.concatenate([getattr(self, item.name), getattr(others, item.name)])
            for item in fields(self)
        }
        return Asked(**both)

    def at(self, rows: NDArray[np.int64]) -> "Asked":
        """Some of them."""
        return Asked(**{item.name: getattr(self, item.name)[rows] for item in fields(self)})

    def labels(self, num_classes: int) -> Labels:
        """One true label of an image with a yes, else its complementary ones, as the application derives.

        An earlier "no" is dropped once a later question about its image gets a yes. So what weights each
        answer by 1/q is unbiased over the answers, and not over these labels of the way "again".
        """
        known = np.isin(self.images, self.images[self.is_yes]) & ~self.is_yes
        kept = np.flatnonzero(~known)
        kept = kept[np.argsort(self.images[kept], kind="stable")]
        return Labels(
            kinds=np.where(self.is_yes[kept], TRUE, COMPLEMENTARY).astype(np.uint8),
            classes=self.classes[kept],
            weights=np.ones(len(kept), np.float32),
            positions=self.images[kept],
            probabilities=self.probabilities[kept].astype(np.float32),
            excluded=self.excluded[kept, None] if (self.excluded >= 0).any() else None,
            num_classes=num_classes,
        )


def uniform_questions(truth: Tensor, images: Tensor, num_classes: int, *, seed: int) -> Asked:
    """One question about each of these images; the question of an image depends on the seed alone."""
    every = simulate_labels(truth, num_classes, seed=seed, setting="pc", questions=True)
    rows = images.numpy()
    return Asked(
        images=rows,
        classes=every.classes[rows],
        probabilities=np.full(len(rows), 1 / num_classes),
        is_yes=every.kinds[rows] == TRUE,
        excluded=np.full(len(rows), NO_LABEL),
    )


def believed_questions(
    truth: Tensor,
    images: NDArray[np.int64],
    beliefs: Tensor,
    before: Asked,
    *,
    floor_percent: int,
    seed: int,
) -> Asked:
    """One question about each of these images, by a model's beliefs (N, K) of all images of the source.

    Classes that an image does not have by the answers before are not asked about.
    """
    possible = np.ones(tuple(beliefs.shape), np.bool_)  # (N, K)
    possible[before.images, before.classes] = False
    excluded = np.full(len(beliefs), NO_LABEL)
    excluded[before.images] = before.classes
    kept = beliefs_of(beliefs[images].numpy())  # (Q, K)
    weights = question_weights(kept, possible[images], floor_percent=floor_percent)
    q = question_probabilities(weights)
    draws = generator(seed, "active questions")
    classes = torch.multinomial(torch.from_numpy(q), 1, generator=draws).squeeze(1).numpy()
    return Asked(
        images=images,
        classes=classes,
        probabilities=q[np.arange(len(q)), classes],
        is_yes=truth.numpy()[images] == classes,
        excluded=excluded[images],
    )


def chosen_classes(truth: Tensor, order: Tensor, count: int, num_classes: int, *, seed: int) -> Asked:
    """The first `count` images with their class, and the first K answers of no about later ones."""
    images = order[:count].numpy()
    told = Asked(
        images=images,
        classes=truth.numpy()[images],
        probabilities=np.ones(count),
        is_yes=np.ones(count, np.bool_),
        excluded=np.full(count, NO_LABEL),
    )
    later = uniform_questions(truth, order[count:], num_classes, seed=seed)
    return told.and_(later.at(np.flatnonzero(~later.is_yes)[:num_classes]))


def run_seed(
    data: TaskData,
    make: Callable[[int], TrainConfig],
    *,
    seed: int,
    answers: Sequence[int],
    ways: Sequence[Way],
    floor_percent: int,
    done: Callable[[dict[str, Any]], dict[str, Any] | None],
    weights_folder: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """Train what one seed needs, a record of each number of answers and way.

    Args:
        data: the images of a task.
        make: the configuration by seed.
        seed: of the labels, the images asked about, the weights and the batches.
        answers: the numbers n.
        ways: which to compare.
        floor_percent: of the questions by belief.
        done: the finished record of a key, if there is one.
        weights_folder: as in `train`.

    Raises:
        DataError: more answers than images.
    """
    truth, num_classes = data.source.y_train, len(data.task.classes)
    if max(answers) > len(truth):
        raise DataError(f"{max(answers)} answers, and {data.source.name} has {len(truth):,} images")
    order = torch.randperm(len(truth), generator=generator(seed, "asked images"))
    config = make(seed)
    beliefs: dict[int, Tensor] = {}  # by the number of answers that the model had

    def trained(asked: Asked, about: dict[str, Any]) -> tuple[dict[str, Any], Tensor]:
        test = data.target.x_test, data.target.y_test
        labels = asked.labels(num_classes)
        rows = TrainData.of(labels, data.source.x_train, target_images=data.target.x_train, test=test)
        found = train(config, rows, weights_folder=weights_folder)
        believed = predict(found.model, data.source.x_train, domain=SOURCE)
        record = about | {
            "questions": len(asked),
            "yes": int(asked.is_yes.sum()),
            "complementary": labels.counts(COMPLEMENTARY),
            "true": labels.counts(TRUE),
            "config": config.flat(),
            "data": {"source": data.source.name, "target": data.target.name, "digest": data.digest},
            "target_accuracy": found.target_accuracy,
            "source_accuracy": float((believed.argmax(1) == truth).double().mean()),
            "label_noise": found.label_noise,
            "seconds": round(found.seconds, 1),
            "environment": environment(torch.device("cpu")),
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        return record, believed

    def first(count: int) -> Asked:
        return uniform_questions(truth, order[:count], num_classes, seed=seed)

    def key(way: Way, count: int) -> dict[str, Any]:
        own = {"floor_percent": floor_percent} if way in BY_BELIEF else {}
        return {"task": data.task.name, "way": way, "answers": count, "seed": seed} | own

    for count in answers:
        for way in ways:
            about = key(way, count)
            if done(about) is not None:
                continue
            if way == "uniform":
                record, beliefs[count] = trained(first(count), about)
                yield record
                continue
            if way == "ordinary":
                told = chosen_classes(truth, order, count // ORDINARY_SHARE, num_classes, seed=seed)
                yield trained(told, about)[0]
                continue
            half = count // 2
            if half not in beliefs:
                record, beliefs[half] = trained(first(half), key("uniform", half))
                if done(key("uniform", half)) is None:
                    yield record
            before = first(half)
            images = before.images[~before.is_yes] if way == "again" else order[half:count].numpy()
            then = believed_questions(
                truth, images, beliefs[half], before, floor_percent=floor_percent, seed=seed
            )
            record, _ = trained(before.and_(then), about)
            yield record | {"active_questions": len(then), "active_yes": int(then.is_yes.sum())}
