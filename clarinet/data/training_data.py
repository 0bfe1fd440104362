"""Domains as tensors: what `train` accepts, and how it is checked at the door."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from clarinet.data.streams import ImageFiles, ImageStream
from clarinet.files.arrays import COLOUR_DIMENSIONS, GREY_DIMENSIONS, RGB
from clarinet.files.label_table import Labels
from clarinet.files.looks import evenly_spread, looks_among, looks_of, looks_of_pair
from clarinet.files.names import NO_LABEL
from clarinet.recipes.choices import Looks
from clarinet.recipes.counting import many, there_are
from clarinet.recipes.errors import DataError
from clarinet.recipes.scoring import ScoredOn

SUM_TOLERANCE = 1e-4  # of probabilities that should sum to 1; people write a few digits


class DomainData(TypedDict, total=False):
    """The images of a domain and their true classes, those that are there; see TrainData."""

    x_train: Tensor | ImageFiles
    y_train: Tensor
    x_test: Tensor | ImageFiles
    y_test: Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainData:
    """A labelled source domain and an unlabelled target domain.

    Labels are rows, one per label: an image with several complementary labels has several rows, which name
    it in `example`; its pixels are kept once. Without `example`, row i is about image i.

    Args:
        source_images: uint8, (N, H, W) grey or (N, H, W, 3) RGB; a tensor is kept on the device as a whole,
            a stream (`NpyImages`, `ImageFiles`) is read as it is needed, here and for the target.
        complementary: (L,) int64, a class the image is known not to be, or -1 where there is none.
        true: (L,) int64, the class the image is known to be, or -1 where there is none.
        weights: (L,) float32 >= 0, trust in each label; normalised to mean 1 inside the training. Not 1/q
            where `probabilities` q are given: the loss "inverse" and the estimated accuracy divide by them.
        example: (L,) int64, the source image that each label is about; None when L = N and they follow the
            images.
        held_out: (L,) bool, complementary labels that only estimate the accuracy; None draws a share of the
            images from the seed, each with all of its labels. In the pc setting it draws from those without a
            true label, and no true label of an image held out by hand trains.
        probabilities: (L,) float32 in (0, 1], with which the class of the question behind each label was
            drawn for its image; None where that is unknown. The loss "inverse" needs them.
        excluded: (L, M) int64, the classes that earlier answers about the image had ruled out when the
            question behind each label was drawn, -1 beyond those; None where no question knew any. Images
            with such a label are not held out: those without a yes after it are no random part.
        transition: (K, K) P(complementary = k | true = y), rows sum to 1, for the loss "forward"; None lets
            it estimate the preferences of the questions.
        class_shares: (K,) share of each class in the source, for the losses "forward" and "scarce"; None
            takes them as equal.
        pseudo_labelled: whether `true` holds predictions, as of `with_pseudo_labels`: a prediction for an
            image says nothing of the labels that are held out.
        target_images: uint8, (M, H, W) or (M, H, W, 3), no labels.
        target_test_images: uint8 images to score on, or None.
        target_test_labels: (T,) int64 true classes of those, or None.
        target_labels: (M,) int64 true classes of the target's images, -1 where one is unknown or not told
            apart. They score where there are no test images, and do nothing else.
        num_classes: K >= 2, from the class list, never from the largest label.

    Raises:
        DataError: shapes, types, lengths or labels that contradict the above, in a sentence.
    """

    source_images: Tensor | ImageStream
    complementary: Tensor
    true: Tensor
    weights: Tensor
    example: Tensor | None = None
    held_out: Tensor | None = None
    probabilities: Tensor | None = None
    excluded: Tensor | None = None
    transition: Tensor | None = None
    class_shares: Tensor | None = None
    pseudo_labelled: bool = False
    target_images: Tensor | ImageStream
    target_test_images: Tensor | ImageStream | None = None
    target_test_labels: Tensor | None = None
    target_labels: Tensor | None = None
    num_classes: int

    @classmethod
    def of(
        cls,
        labels: Labels,
        source_images: Tensor | ImageStream,
        *,
        target_images: Tensor | ImageStream,
        test: tuple[Tensor | ImageStream | None, Tensor | None] = (None, None),
        target_labels: Tensor | None = None,
    ) -> "TrainData":
        """Source images with the labels about them, beside a target. Here labels become tensors.

        Args:
            labels: of the source images.
            source_images, target_images: see TrainData.
            test: target images to score on and their true classes; by default there are none.
            target_labels: see TrainData.

        Raises:
            DataError: as TrainData does.
        """
        return cls(
            source_images=source_images,
            complementary=torch.from_numpy(labels.complementary),
            true=torch.from_numpy(labels.true),
            weights=torch.from_numpy(labels.weights),
            example=None if labels.positions is None else torch.from_numpy(labels.positions),
            probabilities=None if labels.probabilities is None else torch.from_numpy(labels.probabilities),
            excluded=None if labels.excluded is None else torch.from_numpy(labels.excluded),
            target_images=target_images,
            target_test_images=test[0],
            target_test_labels=test[1],
            target_labels=target_labels,
            num_classes=labels.num_classes,
        )

    def __post_init__(self) -> None:
        if self.num_classes < 2:  # noqa: PLR2004 - with one class there is nothing to tell apart
            raise DataError(f"num_classes is {self.num_classes}; at least 2 classes are needed")
        check_images("source_images", self.source_images)
        check_images("target_images", self.target_images)
        count = self._check_example()
        for name in ("complementary", "true"):
            check_labels(
                name, getattr(self, name), count=count, lowest=NO_LABEL, num_classes=self.num_classes
            )
        both = (self.complementary != NO_LABEL) & (self.true != NO_LABEL)
        if bool(both.any()):
            first = int(both.nonzero()[0])
            raise DataError(f"source label {first} is both a true and a complementary one; keep one of them")
        self._check_weights(count)
        self._check_held_out(count)
        self._check_probabilities(count)
        self._check_excluded(count)
        self._check_distributions()
        self._check_test()

    @property
    def looks(self) -> Looks:
        """What the images are: "photographs" where those of one domain are; of each a sample is read."""
        return looks_of_pair(looks_of_images(self.source_images), looks_of_images(self.target_images))

    @property
    def scored_on(self) -> ScoredOn:
        """Which of the target's images score: the test images, else those with a class."""
        if self.target_test_labels is not None:
            count = len(self.target_test_labels)
            return ScoredOn(split="test", images=count, of=count)
        known = 0 if self.target_labels is None else int((self.target_labels != NO_LABEL).sum())
        return ScoredOn(split="train", images=known, of=len(self.target_images))

    def _check_example(self) -> int:
        """The number of labels, L."""
        images = len(self.source_images)
        if self.example is None:
            return images
        count = len(self.complementary)
        _check_vector("example", self.example, count=count, dtype=torch.int64)
        outside = (self.example < 0) | (self.example >= images)
        if bool(outside.any()):
            first = int(outside.nonzero()[0])
            raise DataError(
                f"source label {first} is about image {int(self.example[first])}; "
                + there_are(images, "image")
            )
        return count

    def _check_weights(self, count: int) -> None:
        _check_vector("weights", self.weights, count=count, dtype=torch.float32)
        if not bool(torch.isfinite(self.weights).all()) or bool((self.weights < 0).any()):
            raise DataError("weights must be finite numbers of at least 0")

    def _check_held_out(self, count: int) -> None:
        if self.held_out is None:
            return
        _check_vector("held_out", self.held_out, count=count, dtype=torch.bool)
        lost = self.held_out & (self.complementary == NO_LABEL)
        if bool(lost.any()):
            raise DataError(f"source label {int(lost.nonzero()[0])} is held out but is no complementary one")

    def _check_probabilities(self, count: int) -> None:
        if self.probabilities is None:
            return
        _check_vector("probabilities", self.probabilities, count=count, dtype=torch.float32)
        labelled = (self.complementary != NO_LABEL) | (self.true != NO_LABEL)
        wrong = labelled & ~((self.probabilities > 0) & (self.probabilities <= 1))
        if bool(wrong.any()):
            first = int(wrong.nonzero()[0])
            raise DataError(
                f"probabilities of label {first} is {float(self.probabilities[first])}; a question that was "
                "asked had a probability above 0 and at most 1"
            )

    def _check_excluded(self, count: int) -> None:
        if self.excluded is None:
            return
        check_tensor("excluded", self.excluded)
        if self.excluded.dtype != torch.int64 or self.excluded.ndim != 2:  # noqa: PLR2004 - (L, M)
            raise DataError(
                f"excluded has type {self.excluded.dtype} and shape {tuple(self.excluded.shape)}; expected "
                "torch.int64 and (N, M)"
            )
        if len(self.excluded) != count:
            raise DataError(f"excluded has {many(len(self.excluded), 'row')} for {many(count, 'label')}")
        if bool(((self.excluded < NO_LABEL) | (self.excluded >= self.num_classes)).any()):
            raise DataError(f"excluded names a class outside 0..{self.num_classes - 1}")
        labels = torch.maximum(self.complementary, self.true)  # (L,)
        own = ((self.excluded == labels[:, None]) & (labels != NO_LABEL)[:, None]).any(1)
        few = (self.excluded != NO_LABEL).sum(1) > self.num_classes - 2
        if bool((own | few).any()):
            first = int((own | few).nonzero()[0])
            raise DataError(
                f"excluded of label {first} leaves no question: its class must be possible, and one more"
            )

    def _check_distributions(self) -> None:
        for name, shape in (("transition", (self.num_classes,) * 2), ("class_shares", (self.num_classes,))):
            values: Tensor | None = getattr(self, name)
            if values is None:
                continue
            check_tensor(name, values)
            if values.shape != shape or not values.is_floating_point():
                raise DataError(
                    f"{name} has type {values.dtype} and shape {tuple(values.shape)}; expected floats {shape}"
                )
            if not bool((values >= 0).all()) or bool(((values.sum(-1) - 1).abs() > SUM_TOLERANCE).any()):
                raise DataError(
                    f"{name} must be probabilities: at least 0, and summing to 1 over the classes"
                )

    def _check_test(self) -> None:
        if self.target_labels is not None:
            count = len(self.target_images)
            check_labels(
                "target_labels",
                self.target_labels,
                count=count,
                lowest=NO_LABEL,
                num_classes=self.num_classes,
            )
        if (self.target_test_images is None) != (self.target_test_labels is None):
            raise DataError("target_test_images and target_test_labels are given together or not at all")
        if self.target_test_images is None or self.target_test_labels is None:
            return
        check_images("target_test_images", self.target_test_images)
        if len(self.target_test_images.shape) != len(self.target_images.shape):
            raise DataError("target_test_images and target_images must both be grey or both be colour")
        count = len(self.target_test_images)
        check_labels(
            "target_test_labels", self.target_test_labels, count=count, lowest=0, num_classes=self.num_classes
        )


def looks_of_images(images: Tensor | ImageStream) -> Looks:
    """What images of a domain are, by a sample; raises DataError where there are none."""
    rows = torch.tensor(evenly_spread(len(images)))
    if isinstance(images, Tensor):
        return looks_of(images[rows.to(images.device)].cpu().numpy())
    return looks_among(images.read(row[None])[0].numpy() for row in rows)


def check_images(name: str, images: Tensor | ImageStream, *, least: int = 1) -> None:
    """Refuse what is no stack of at least so many uint8 images, with a DataError."""
    if not hasattr(images, "read"):  # which streams have
        check_tensor(name, images)
    if isinstance(images, Tensor) and images.dtype != torch.uint8:
        raise DataError(f"{name} are {images.dtype}; images must be uint8 in 0..255")
    grey = len(images.shape) == GREY_DIMENSIONS
    colour = len(images.shape) == COLOUR_DIMENSIONS and images.shape[3] == RGB
    if not grey and not colour:
        raise DataError(f"{name} have shape {tuple(images.shape)}; expected (N, H, W) or (N, H, W, 3)")
    if grey and images.shape[2] == RGB:
        raise DataError(
            f"{name} have shape {tuple(images.shape)}, which looks like one colour image; give images[None]"
        )
    if 0 in images.shape[1:] or len(images) < least:
        raise DataError(f"{name} are empty (shape {tuple(images.shape)})")


def check_tensor(name: str, values: object) -> None:
    """Refuse an array, a list and all else that is no tensor, with a DataError."""
    if not isinstance(values, Tensor):
        remedy = "torch.from_numpy" if isinstance(values, np.ndarray) else "torch.tensor"
        raise DataError(f"{name} must be a tensor, not {type(values).__name__}; {remedy} makes it one")


def _check_vector(name: str, values: Tensor, *, count: int, dtype: torch.dtype) -> None:
    check_tensor(name, values)
    if values.dtype != dtype or values.ndim != 1:
        raise DataError(
            f"{name} has type {values.dtype} and shape {tuple(values.shape)}; expected {dtype} and (N,)"
        )
    if len(values) != count:
        raise DataError(f"{name} has {many(len(values), 'entry', 'entries')} for {many(count, 'image')}")


def check_labels(name: str, labels: Tensor, *, count: int, lowest: int, num_classes: int) -> None:
    """Refuse what is no (count,) int64 labels from the lowest to below K, with a DataError."""
    _check_vector(name, labels, count=count, dtype=torch.int64)
    outside = (labels < lowest) | (labels >= num_classes)
    if bool(outside.any()):
        first = int(outside.nonzero()[0])
        raise DataError(
            f"{name} of example {first} is {int(labels[first])}; allowed are {lowest} to {num_classes - 1}"
        )
