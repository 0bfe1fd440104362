"""Rows -> tensors: what a trial trains on."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np
import torch
from sqlalchemy.orm import Session
from torch import Tensor

from app.campaigns import service as campaigns
from app.datasets import service as datasets
from app.datasets.errors import SizesDiffer
from app.datasets.models import Dataset, Split
from app.datasets.pixels import Images
from app.runs.models import Run
from app.runs.snapshots import TRUE, Labels, thaw
from app.storage import Storage
from clarinet.config import TrainConfig
from clarinet.data import NO_LABEL, TrainData
from clarinet.domains import draw_held_out
from clarinet.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialData:
    """Both domains of a run, and how much of the target's test split could be scored on."""

    data: TrainData
    class_names: list[str]
    scored_on: int  # images of the target's test split whose true class is one of the campaign's


def load(session: Session, storage: Storage, run: Run, config: TrainConfig) -> TrialData:
    """Read the campaign's images with the snapshot's labels, and the target's images without theirs.

    Args:
        config: the trial's; its size is that of images where a dataset's own sizes differ, and its seed draws
            the labels that are held out.

    Raises:
        DataError: the labels do not belong to the images.
    """
    campaign = campaigns.any_campaign(session, run.campaign_id)
    names = [item.name for item in campaign.classes]
    labels = thaw(storage, run.snapshot_digest)
    source = _images(session, storage, campaign.dataset_id, Split.TRAIN, config.image_size)
    target = _images(session, storage, run.target_dataset_id, Split.TRAIN, config.image_size)
    images, complementary, true, weights = _labelled(source, labels)
    test_images, test_classes = _test_set(session, storage, run, names, config.image_size)
    return TrialData(
        data=TrainData(
            source_images=images,
            complementary=complementary,
            true=true,
            weights=weights,
            held_out=_held_out(labels, len(images), config),
            target_images=torch.from_numpy(target.arrays),
            target_test_images=test_images,
            target_test_labels=test_classes,
            num_classes=len(names),
        ),
        class_names=names,
        scored_on=0 if test_classes is None else len(test_classes),
    )


def _images(session: Session, storage: Storage, dataset_id: UUID, split: Split, image_size: int) -> Images:
    try:
        return datasets.load_arrays(session, storage, dataset_id, split)
    except SizesDiffer:
        size = (image_size, image_size)
        return datasets.load_arrays(session, storage, dataset_id, split, size=size)


def _labelled(source: Images, labels: Labels) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images with their labels, one row per label, then the images that have none.

    Returns:
        uint8 images (N, H, W) or (N, H, W, 3); complementary and true class, (N,) int64 with -1 for none;
        weights, (N,) float32. An image with several complementary labels comes once for each of them.
    """
    ids = np.asarray(source.ids, np.int64)
    order = np.argsort(ids)
    places = np.searchsorted(ids, labels.example_ids, sorter=order)
    labelled = order[np.minimum(places, len(order) - 1)]  # (L,) row of each label's image
    if not np.array_equal(ids[labelled], labels.example_ids):
        raise DataError("the label snapshot names images that the campaign's dataset does not have")
    rows = np.concatenate([labelled, np.setdiff1d(np.arange(len(ids)), labelled)])  # (N,)
    count = len(labelled)
    is_true = labels.kinds == TRUE
    complementary, true = np.full((2, len(rows)), NO_LABEL, np.int64)
    weights = np.zeros(len(rows), np.float32)
    true[:count][is_true] = labels.classes[is_true]
    complementary[:count][~is_true] = labels.classes[~is_true]
    weights[:count] = labels.weights
    return (
        torch.from_numpy(source.arrays[rows]),
        torch.from_numpy(complementary),
        torch.from_numpy(true),
        torch.from_numpy(weights),
    )


def _held_out(labels: Labels, rows: int, config: TrainConfig) -> Tensor:
    """(N,) bool, rows of `_labelled`: complementary labels of one image are held out together or not."""
    drawn_from = (labels.kinds != TRUE) & (labels.weights > 0)
    held_out = np.zeros(rows, np.bool_)
    images = torch.from_numpy(labels.example_ids[drawn_from])
    held_out[: len(drawn_from)][drawn_from] = draw_held_out(images, config).numpy()
    return torch.from_numpy(held_out)


def _test_set(
    session: Session, storage: Storage, run: Run, names: list[str], image_size: int
) -> tuple[Tensor | None, Tensor | None]:
    """The target's test images whose true class the campaign knows by name; to score, never to train on."""
    target = session.get_one(Dataset, run.target_dataset_id)
    if not target.class_names or not target.test_count:
        return None, None
    positions = {name: position for position, name in enumerate(names)}
    # One entry more, so that an unknown class (-1) finds NO_LABEL at the end.
    mapped = np.array([positions.get(name, NO_LABEL) for name in target.class_names] + [NO_LABEL], np.int64)
    test = _images(session, storage, target.id, Split.TEST, image_size)
    classes = mapped[test.true_classes]
    known = classes != NO_LABEL
    if not known.any():
        return None, None
    return torch.from_numpy(test.arrays[known]), torch.from_numpy(classes[known])
