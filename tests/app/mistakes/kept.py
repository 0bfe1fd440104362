"""A finished run with what its model says of each picture, worked by hand."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.datasets.models import Dataset, Example, Split
from app.registry import service as registry
from app.registry.kept_pictures import FACTS, Among, KeptPictures, keep_pictures, likeliest
from app.registry.models import Model
from app.registry.target_predictions import FACTS as PREDICTIONS
from app.registry.target_predictions import TargetPredictions, keep_target_predictions
from app.runs.models import Run
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_dataset, make_run

CLASSES = ("cat", "dog", "owl")
# Of four test images, whose true classes are dog, owl, cat and dog: one is right, and three mistakes.
TEST = [[0.1, 0.8, 0.1], [0.6, 0.1, 0.3], [0.45, 0.05, 0.5], [0.9, 0.06, 0.04]]
TRAIN = [[0.7, 0.2, 0.1], [0.25, 0.35, 0.4], [0.05, 0.05, 0.9], [0.1, 0.85, 0.05]]
SOURCE = [[0.95, 0.03, 0.02], [0.2, 0.7, 0.1]]


def kept_of(
    parts: dict[Among, tuple[Sequence[int], Sequence[int], Sequence[Sequence[float]]]],
    *,
    map_rows: Sequence[int] = (),
    map_places: Sequence[Sequence[float]] = (),
) -> KeptPictures:
    """Pictures by what they are among: ids, true classes (-1: not known), probabilities."""
    rows: NDArray[np.float32] = np.concatenate([np.array(part[2], np.float32) for part in parts.values()])
    classes, probabilities = likeliest(rows, pictures=len(rows))
    return KeptPictures(
        example_ids=np.concatenate([np.array(part[0], np.int64) for part in parts.values()]),
        among=np.repeat(
            np.array([among.code for among in parts], np.uint8), [len(part[0]) for part in parts.values()]
        ),
        true_classes=np.concatenate([np.array(part[1], np.int32) for part in parts.values()]),
        classes=classes,
        probabilities=probabilities,
        map_rows=np.array(map_rows, np.int64),
        map_places=np.array(map_places, np.float32).reshape(len(map_rows), -1 if map_rows else 2),
        map_shares=np.array([0.6, 0.3]),
    )


def make_finished(session: Session, storage: FolderStorage, *, seeds: Sequence[int] = (0,)) -> Run:
    """A run that ended well, over a target of four training and four test images with file names."""
    target = make_dataset(session, storage, class_names=CLASSES, train=4, test=4)
    run = make_run(session, storage, train=4, target=target, state="succeeded", classes=CLASSES, seeds=seeds)
    named = update(Example).where(Example.dataset_id == target.id, Example.position == 7)
    session.execute(named.values(filename="=cmd/a, b.png"))
    for trial in run.trials:
        trial.result = {"confusion": [[0, 0, 1], [1, 1, 0], [1, 0, 0]], "per_class_accuracy": [0, 0.5, 0]}
        trial.target_accuracy = 0.25
    session.flush()
    return run


def examples_of(session: Session, dataset: Dataset | None, split: Split, run: Run) -> list[Example]:
    """Of a split of the run's target, or of another dataset."""
    dataset_id = run.target_dataset_id if dataset is None else dataset.id
    query = select(Example).where(Example.dataset_id == dataset_id, Example.split == split)
    return list(session.scalars(query.order_by(Example.position)))


def publish(
    session: Session, storage: FolderStorage, run: Run, *, older: bool = False, seed: int = 0, last: float = 0
) -> Model:
    """The model of a seed; an `older` one has no file of pictures; `last`: where the map's last one lies."""
    trial = next(trial for trial in run.trials if trial.seed == seed)
    test, train = (
        [example.id for example in examples_of(session, None, split, run)]
        for split in (Split.TEST, Split.TRAIN)
    )
    source = session.get_one(Dataset, run.source_dataset_id)
    sources = [example.id for example in examples_of(session, source, Split.TRAIN, run)][:2]
    kept = kept_of(
        {
            Among.TEST: (test, [1, 2, 0, 1], TEST),
            Among.TRAIN: (train, [-1] * 4, TRAIN),
            Among.SOURCE: (sources, [0, -1], SOURCE),
        },
        map_rows=[4, 5, 6, 7, 8, 9],
        map_places=[[0, 0, 9], [1, 0, 9], [0, 1, 9], [1, 1, 9], [-1, 0, 9], [last, -1, 9]],
    )
    key = registry.key_of(trial.id, 1)
    predicted = TargetPredictions(
        np.array(train, np.int64), np.array([0, 2, 2, 1]), np.array([0.7, 0.4, 0.9, 0.85], np.float32)
    )
    card = {"run": run.number, "run_id": str(run.id), "seed": seed, "method": run.method}
    card |= {"setting": run.setting, "preset": run.preset, "classes": list(CLASSES), "config": run.config}
    card |= {"labels": run.snapshot_facts, "label_snapshot": run.snapshot_digest, "versions": {}}
    card |= {"target_accuracy": None, "epochs": 2, "seconds": 1.0, "confusion": None}
    card |= {"onnx": {"sha256": storage.put(f"{key}/{registry.ONNX}", b"graph"), "size_bytes": 5}}
    card |= {PREDICTIONS: keep_target_predictions(storage, key, predicted)}
    if not older:
        card |= {FACTS: keep_pictures(storage, key, kept)}
    return registry.publish_model(
        session, trial_id=trial.id, key=key, digest="d" * 64, size_bytes=1, card=card, now=NOW
    )
