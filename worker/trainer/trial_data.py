"""Rows -> tensors: what a trial trains on."""

from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple
from uuid import UUID

import numpy as np
import torch
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from torch import Tensor

from app.campaigns import service as campaigns
from app.campaigns.draws import probabilities
from app.datasets import service as datasets
from app.datasets import versions
from app.datasets.errors import SizesDiffer
from app.datasets.models import Dataset, Holding, Split
from app.datasets.pixels import StoredImages
from app.runs.labels import thaw
from app.runs.models import Run
from app.runs.targets import unscored_of
from app.storage import Storage
from clarinet.data.streams import RESIDENT_BYTES, ImageStream
from clarinet.data.training_data import TrainData
from clarinet.files.label_table import Labels
from clarinet.files.names import NO_LABEL, numbers_among
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.doing import OnPart, silently
from clarinet.recipes.errors import DataError
from clarinet.recipes.scoring import ScoredOn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialData:
    """Both domains of a run, and which images of the target score."""

    data: TrainData
    source_ids: NDArray[np.int64]  # (N,) of the examples that `data.source_images` has
    source_classes: NDArray[np.int64]  # (N,) of these, NO_LABEL where unknown; to be shown beside predictions
    target_ids: NDArray[np.int64]  # (N,) of the examples that `data.target_images` has
    test_ids: NDArray[
        np.int64
    ]  # (T,) of those that `data.target_test_images` has, without one where it is None
    class_names: list[str]
    made: dict[str, str]  # how images were made that are not the published ones: of "source" or "target"
    scored: ScoredOn
    unscored: str  # which images of the target do not score, in words
    campaign_name: str
    datasets: dict[str, dict[str, object]]  # name, version and digest of "source" and "target"


def load(
    session: Session, storage: Storage, run: Run, config: TrainConfig, *, beat: OnPart = silently
) -> TrialData:
    """Read the campaign's images with the snapshot's labels, and the target's images without theirs.

    Args:
        config: the trial's; its size is that of images where a dataset's own sizes differ, or where they are
            larger and the images would take more than RESIDENT_BYTES.
        beat: called after some of the images, again and again.

    Raises:
        DataError: the labels do not belong to the images.
    """
    campaign = campaigns.any_campaign(session, run.campaign_id)
    names = [item.name for item in campaign.classes]
    labels = thaw(storage, run.snapshot_digest, num_classes=len(names))
    ours = campaign.dataset_id, run.source_version
    theirs = run.target_dataset_id, run.target_version
    size = config.network.image_size
    source = _images(session, storage, ours, Split.TRAIN, size)
    target = _images(session, storage, theirs, Split.TRAIN, size)
    labels = _as_taken(labels, config)
    # Drawn uniformly, but for labels that tell their probability, and those from elsewhere: nobody knows how
    # these were.
    chances = labels.probabilities
    if chances is None and not run.snapshot_facts.get("imported"):
        chances = np.full(len(labels), probabilities(len(names))[0], np.float32)
    labels = replace(labels, positions=_rows(source, labels), probabilities=chances)
    held = versions.version(session, *theirs)
    mapped = _numbers(held, names)
    test = _test_set(_images(session, storage, theirs, Split.TEST, size), mapped, beat)
    data = TrainData.of(
        labels,
        _given(source, beat),
        target_images=_given(target, beat),
        test=(test.images, test.classes),
        # To score by, where there is no such test set; never to train on.
        target_labels=torch.from_numpy(mapped[target.true_classes]),
    )
    return TrialData(
        data=data,
        source_ids=np.array(source.ids, np.int64),
        source_classes=_numbers(versions.version(session, *ours), names)[source.true_classes],
        target_ids=np.array(target.ids, np.int64),
        test_ids=np.array(test.ids, np.int64),
        class_names=names,
        made=_made(session, source=campaign.dataset_id, target=run.target_dataset_id),
        scored=data.scored_on if test.classes is None else replace(data.scored_on, of=test.of),
        unscored=unscored_of(held, names),
        campaign_name=campaign.name,
        datasets=_named(session, source=ours, target=theirs),
    )


def _as_taken(labels: Labels, config: TrainConfig) -> Labels:
    """Without noes beside a true label of their image, which only what weights each answer by 1/q takes."""
    if labels.excluded is None or config.losses.complementary_loss == "inverse":
        return labels
    return labels.true_alone()


def _named(session: Session, **which: tuple[UUID, int]) -> dict[str, dict[str, object]]:
    return {
        domain: {
            "name": session.get_one(Dataset, dataset_id).name,
            "version": version,
            "digest": versions.version(session, dataset_id, version).digest,
        }
        for domain, (dataset_id, version) in which.items()
    }


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


def _given(images: StoredImages, beat: OnPart) -> Tensor | ImageStream:
    return _Streamed(images) if images.nbytes > RESIDENT_BYTES else torch.from_numpy(images.load(beat))


def _images(
    session: Session, storage: Storage, used: tuple[UUID, int], split: Split, image_size: int
) -> StoredImages:
    """A split of the used version of a dataset, in its own size.

    In the trial's where it has several, or a larger one that takes too much.
    """
    dataset_id, version = used
    size = (image_size, image_size)
    try:
        found = datasets.stored_images(session, storage, dataset_id, split, version=version)
    except SizesDiffer:
        return datasets.stored_images(session, storage, dataset_id, split, size=size, version=version)
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


def _numbers(held: Holding, names: list[str]) -> NDArray[np.int64]:
    """(C + 1,) the campaign's number of each class of a dataset, by name, or NO_LABEL.

    The last entry is what an unknown class (-1) finds.
    """
    return np.array([*numbers_among(names, held.class_names or []), NO_LABEL], np.int64)


class _TestSet(NamedTuple):
    """The test images of a target that score, with their classes; both None without any."""

    images: Tensor | ImageStream | None
    classes: Tensor | None
    ids: list[int]  # of their examples
    of: int  # how many test images there are


def _test_set(test: StoredImages, mapped: NDArray[np.int64], beat: OnPart) -> _TestSet:
    """The target's test images whose true class the campaign knows; to score, never to train on."""
    classes = mapped[test.true_classes]
    known = classes != NO_LABEL
    if not known.any():
        return _TestSet(None, None, [], len(known))
    places = [place for place, is_known in zip(test.places, known, strict=True) if is_known]
    scored = replace(test, places=places)
    return _TestSet(_given(scored, beat), torch.from_numpy(classes[known]), scored.ids, len(known))
