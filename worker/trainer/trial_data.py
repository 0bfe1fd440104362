"""Rows -> tensors: what a trial trains on."""

from dataclasses import dataclass, replace
from math import prod
from uuid import UUID

import numpy as np
import torch
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from torch import Tensor

from app.campaigns import service as campaigns
from app.campaigns.draws import probabilities
from app.datasets import service as datasets
from app.datasets.errors import SizesDiffer
from app.datasets.models import Dataset, Split
from app.datasets.pixels import StoredImages
from app.runs.labels import thaw
from app.runs.models import Run
from app.runs.targets import scoring_of
from app.storage import Storage
from clarinet.data.streams import RESIDENT_BYTES, ImageStream
from clarinet.data.training_data import TrainData
from clarinet.files.label_table import Labels
from clarinet.files.names import NO_LABEL, numbers_among
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialData:
    """Both domains of a run, and how much of the target's test split could be scored on."""

    data: TrainData
    class_names: list[str]
    made: dict[str, str]  # how images were made that are not the published ones: of "source" or "target"
    unscored: str  # which of those do not count, in words
    scored_on: int  # images of the target's test split whose true class is one of the campaign's


def load(session: Session, storage: Storage, run: Run, config: TrainConfig) -> TrialData:
    """Read the campaign's images with the snapshot's labels, and the target's images without theirs.

    Args:
        config: the trial's; its size is that of images where a dataset's own sizes differ, or where they are
            larger and the images would take more than RESIDENT_BYTES.

    Raises:
        DataError: the labels do not belong to the images.
    """
    campaign = campaigns.any_campaign(session, run.campaign_id)
    names = [item.name for item in campaign.classes]
    labels = thaw(storage, run.snapshot_digest, num_classes=len(names))
    source = _images(session, storage, campaign.dataset_id, Split.TRAIN, config.network.image_size)
    target = _images(session, storage, run.target_dataset_id, Split.TRAIN, config.network.image_size)
    # Drawn uniformly, but for labels from elsewhere: nobody knows how those were.
    is_drawn = not run.snapshot_facts.get("imported")
    chances = np.full(len(labels), probabilities(len(names))[0], np.float32) if is_drawn else None
    labels = replace(labels, positions=_rows(source, labels), probabilities=chances)
    test_images, test_classes = _test_set(session, storage, run, names, config.network.image_size)
    return TrialData(
        data=TrainData.of(
            labels, _given(source), target_images=_given(target), test=(test_images, test_classes)
        ),
        class_names=names,
        made=_made(session, source=campaign.dataset_id, target=run.target_dataset_id),
        unscored=scoring_of(session.get_one(Dataset, run.target_dataset_id), names).unscored,
        scored_on=0 if test_classes is None else len(test_classes),
    )


def _made(session: Session, **datasets_of: UUID) -> dict[str, str]:
    rows = {domain: session.get_one(Dataset, dataset_id) for domain, dataset_id in datasets_of.items()}
    return {domain: dataset.made for domain, dataset in rows.items() if dataset.made}


class _Streamed:
    """Stored images as the library's ImageStream."""

    def __init__(self, images: StoredImages) -> None:
        self._images = images
        self.shape = images.shape

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self._images.read(rows.tolist()))


def _given(images: StoredImages) -> Tensor | ImageStream:
    return _Streamed(images) if images.nbytes > RESIDENT_BYTES else torch.from_numpy(images.load())


def _images(
    session: Session, storage: Storage, dataset_id: UUID, split: Split, image_size: int
) -> StoredImages:
    """A split in its own size; in the trial's where it has several, or a larger one that takes too much."""
    size = (image_size, image_size)
    try:
        found = datasets.stored_images(session, storage, dataset_id, split)
    except SizesDiffer:
        return datasets.stored_images(session, storage, dataset_id, split, size=size)
    is_larger = prod(found.size) > prod(size)
    return replace(found, size=size) if is_larger and found.nbytes > RESIDENT_BYTES else found


def _rows(source: StoredImages, labels: Labels) -> NDArray[np.int64]:
    """(L,) the row of the image of each label."""
    ids = np.asarray(source.ids, np.int64)
    wanted = np.asarray(labels.example_ids, np.int64)
    order = np.argsort(ids)
    places = np.searchsorted(ids, wanted, sorter=order)
    images: NDArray[np.int64] = order[np.minimum(places, len(order) - 1)]  # (L,)
    if not np.array_equal(ids[images], wanted):
        raise DataError("the label snapshot names images that the campaign's dataset does not have")
    return images


def _test_set(
    session: Session, storage: Storage, run: Run, names: list[str], image_size: int
) -> tuple[Tensor | ImageStream | None, Tensor | None]:
    """The target's test images whose true class the campaign knows by name; to score, never to train on."""
    target = session.get_one(Dataset, run.target_dataset_id)
    if not target.class_names or not target.test_count:
        return None, None
    # One entry more, so that an unknown class (-1) finds NO_LABEL at the end.
    mapped = np.array([*numbers_among(names, target.class_names), NO_LABEL], np.int64)
    test = _images(session, storage, target.id, Split.TEST, image_size)
    classes = mapped[test.true_classes]
    known = classes != NO_LABEL
    if not known.any():
        return None, None
    scored = [place for place, is_known in zip(test.places, known, strict=True) if is_known]
    return _given(replace(test, places=scored)), torch.from_numpy(classes[known])
