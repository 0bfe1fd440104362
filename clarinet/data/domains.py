"""The data of a run, made ready: resized once, on its device, with the rows of each kind of label."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clarinet.data.feeding import Pixels, pixels_of
from clarinet.data.fingerprint import evenly_spread
from clarinet.data.images import background, resized
from clarinet.data.label_checks import check_labels_fit, uniformity_of
from clarinet.data.seeding import generator
from clarinet.data.streams import ImageStream
from clarinet.data.training_data import TrainData
from clarinet.data.uniformity import Uniformity
from clarinet.distributed.group import ALONE, Group
from clarinet.files.arrays import COLOUR_DIMENSIONS
from clarinet.files.names import NO_LABEL
from clarinet.networks.classifier import ModelSpec, spec_for
from clarinet.networks.own import NOTHING, Own
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.doing import OnPart, silently
from clarinet.recipes.fitting import sees_ink
from clarinet.recipes.scoring import ScoredOn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domains:
    """Images are uint8 (N, C, S, S), as tensors or streams.

    Rows index the source's labels, and `example` leads on to its images.

    Args:
        spec: the network these images are for.
        source, target: images of the domains.
        source_is_grey, target_is_grey: how the domains came, before they took the network's channels; a
            source of which the network sees the ink alone is grey.
        complementary, true, weights: as in TrainData, with weights of mean 1 over the rows used.
        example: (L,) the source image of each label.
        no_classes: (N, M) classes that each source image is known not to be, from the labels that train; -1
            beyond those it has.
        probabilities, excluded, transition, class_shares: as in TrainData.
        uniformity: what the histogram of the complementary labels says; None where nothing depends on it.
        complementary_rows, true_rows: rows that train; the true ones are none in the cc setting, the
            complementary ones where the config uses none.
        held_out_rows: rows whose complementary label only estimates the accuracy; weights above 0.
        test: target images to score on, `target` itself where they are the same; None where none does, or
            images that it trains on do.
        scored_rows: (T,) rows of `target` that score in their place; None where they do not.
        test_labels: (T,) classes of the images that score, of either kind.
        scored_on: which these are.
        own: network and distortion that the caller brought in the place of the config's.
        group: the processes that train on it together, each with all of it.
        on_part: called after each part of what is done to many images.
    """

    spec: ModelSpec
    source: Pixels
    target: Pixels
    source_is_grey: bool
    target_is_grey: bool
    complementary: Tensor
    true: Tensor
    weights: Tensor
    example: Tensor
    no_classes: Tensor
    probabilities: Tensor | None
    excluded: Tensor | None
    transition: Tensor | None
    class_shares: Tensor | None
    uniformity: Uniformity | None
    complementary_rows: Tensor
    true_rows: Tensor
    held_out_rows: Tensor
    test: Pixels | None
    scored_rows: Tensor | None
    test_labels: Tensor | None
    scored_on: ScoredOn
    own: Own = NOTHING
    group: Group = ALONE
    on_part: OnPart = silently

    @property
    def grey_to_colour(self) -> bool:
        """Whether a grey source meets a target in colour."""
        return self.source_is_grey and not self.target_is_grey

    @property
    def alpha(self) -> float:
        """How much the true labels that train weigh beside the complementary ones; 0 without them."""
        true, complementary = len(self.true_rows), len(self.complementary_rows)
        return true_label_share(true, complementary, self.spec.num_classes) if true else 0.0


def prepare(
    data: TrainData,
    config: TrainConfig,
    device: torch.device,
    own: Own = NOTHING,
    group: Group = ALONE,
    *,
    on_part: OnPart = silently,
) -> Domains:
    """Check the data against the setting and bring it to the network's size and the device.

    Args:
        data, config, device: of the run.
        own: what its caller brought.
        group: the processes that train on it together.
        on_part: as in Domains.

    Raises:
        DataError: the setting needs labels that are not there, or all of them say the same.
    """
    complementary, true, trust = data.complementary.cpu(), data.true.cpu(), data.weights.cpu()
    spec = _network_for(data, config, own)
    held_out = _held_out(data, config)
    usable = in_unit(trust, trust.double().sum()) > 0
    complementary_rows = ((complementary != NO_LABEL) & ~held_out & usable).nonzero().squeeze(1)
    held_out_rows = (held_out & usable).nonzero().squeeze(1)
    true_rows = ((true != NO_LABEL) & usable).nonzero().squeeze(1)
    example = _examples(data)
    if config.setting == "cc":
        true_rows = true_rows[:0]
    elif not data.pseudo_labelled:
        # The network would have learnt the class of an image whose answers are to estimate its accuracy.
        true_rows = true_rows[~torch.isin(example[true_rows], example[held_out_rows])]
    if config.losses.complementary_loss == "none":
        complementary_rows = complementary_rows[:0]
    check_labels_fit(data, config, complementary_rows, true_rows)
    uniformity = uniformity_of(data, config)
    weights = in_unit(trust, trust[torch.cat([complementary_rows, true_rows])].double().mean())
    no_classes = classes_by_image(
        example[complementary_rows], complementary[complementary_rows], len(data.source_images)
    )
    target = pixels_of(data.target_images, spec, device, on_part=on_part)
    test: Pixels | None = target
    if data.target_test_images is not data.target_images:
        tests = data.target_test_images
        test = None if tests is None else pixels_of(tests, spec, device, on_part=on_part)
    scored_rows, test_labels = _scored(data)
    return Domains(
        spec=spec,
        source=pixels_of(data.source_images, spec, device, on_part=on_part),
        target=target,
        source_is_grey=_is_grey(data.source_images) or spec.sees_ink,
        target_is_grey=_is_grey(data.target_images),
        complementary=complementary.to(device),
        true=true.to(device),
        weights=weights.to(device),
        example=example.to(device),
        no_classes=no_classes.to(device),
        probabilities=None if data.probabilities is None else data.probabilities.to(device),
        excluded=None if data.excluded is None else data.excluded.to(device),
        transition=data.transition,
        class_shares=data.class_shares,
        uniformity=uniformity,
        complementary_rows=complementary_rows,
        true_rows=true_rows,
        held_out_rows=held_out_rows,
        test=test,
        scored_rows=scored_rows,
        test_labels=test_labels,
        scored_on=data.scored_on,
        own=own,
        group=group,
        on_part=on_part,
    )


def _scored(data: TrainData) -> tuple[Tensor | None, Tensor | None]:
    """(T,) rows of the target that score, None where test images do; and (T,) the classes of what scores."""
    if data.target_test_labels is not None or not data.scored_on.images:
        return None, data.target_test_labels
    assert data.target_labels is not None
    classes = data.target_labels.cpu()
    rows = (classes != NO_LABEL).nonzero().squeeze(1)
    return rows, classes[rows]


def true_label_share(true_count: int, complementary_count: int, num_classes: int) -> float:
    """alpha = n_s / (n_s + n_bar / (K - 1)), in [0, 1]: how much the true labels weigh in the PC setting.

    At least one of the counts is positive.

    Source: Zhang et al., section 4.3, alpha of PC-UDA.
    """
    return true_count / (true_count + complementary_count / (num_classes - 1))


def in_unit(trust: Tensor, unit: Tensor) -> Tensor:
    """Weights in a unit, in float32: divided in float64, whose range no float32 weights leave."""
    return (trust.double() / unit.double()).float()


def _network_for(data: TrainData, config: TrainConfig, own: Own) -> ModelSpec:
    if own.backbone is not None:
        return spec_for(config, colour=True, num_classes=data.num_classes, is_own=True)
    grey_source, grey_target = _is_grey(data.source_images), _is_grey(data.target_images)
    if sees_ink(config, source_in_colour=not grey_source, target_in_colour=not grey_target):
        spec = spec_for(config, colour=False, num_classes=data.num_classes)
        return replace(spec, greying="dark-ink" if _has_light_ground(data.target_images, spec) else "ink")
    return spec_for(config, colour=not (grey_source and grey_target), num_classes=data.num_classes)


def _is_grey(images: Tensor | ImageStream) -> bool:
    return len(images.shape) != COLOUR_DIMENSIONS


def _has_light_ground(images: Tensor | ImageStream, spec: ModelSpec) -> bool:
    """Whether the ground is lighter than the mean in most of some grey images, evenly spread."""
    seen = resized(evenly_spread(images), spec).float()  # (R, 1, S, S)
    return bool((background(seen) > seen.mean((2, 3), keepdim=True)).float().mean() > 1 / 2)


def _held_out(data: TrainData, config: TrainConfig) -> Tensor:
    """(N,) bool: the given choice, or a share of the complementary labels drawn from the seed."""
    if data.held_out is not None:
        return data.held_out.cpu()
    example, usable = _examples(data), data.weights.cpu() > 0
    candidates = (data.complementary.cpu() != NO_LABEL) & usable
    if config.setting == "pc" and not data.pseudo_labelled:
        candidates &= ~torch.isin(example, example[(data.true.cpu() != NO_LABEL) & usable])
    candidates &= ~asked_again(data)
    rows = candidates.nonzero().squeeze(1)
    chosen = torch.zeros(len(data.complementary), dtype=torch.bool)
    chosen[rows] = draw_held_out(example[rows], config)
    return chosen


def asked_again(data: TrainData) -> Tensor:
    """(L,) bool: labels of images about which some question knew earlier answers.

    Of those the images without a yes are no random part: a model was wrong about them.
    """
    if data.excluded is None:
        return torch.zeros(len(data.complementary), dtype=torch.bool)
    example = _examples(data)
    return torch.isin(example, example[(data.excluded.cpu() != NO_LABEL).any(1)])


def _examples(data: TrainData) -> Tensor:
    """(L,) int64 on the CPU: the source image of each label."""
    return torch.arange(len(data.source_images)) if data.example is None else data.example.cpu()


def classes_by_image(images: Tensor, classes: Tensor, count: int) -> Tensor:
    """Gather classes by image.

    Args:
        images: (L,) int64 in [0, count).
        classes: (L,) int64, one for each entry of `images`.
        count: N.

    Returns:
        (N, M) int64, M the largest number of classes of one image; -1 beyond those an image has.
    """
    order = images.argsort(stable=True)
    numbers = torch.bincount(images, minlength=count)  # (N,) of labels per image
    starts = numbers.cumsum(0) - numbers
    place = torch.arange(len(images)) - starts[images[order]]  # (L,) among the labels of its image
    table = torch.full((count, int(numbers.max())), NO_LABEL)
    table[images[order], place] = classes[order]
    return table


def draw_held_out(images: Tensor, config: TrainConfig) -> Tensor:
    """Draw the config's share of the images from its seed, each with all of its labels.

    An image that trained with one of its labels would make the estimate from another one too good.

    Args:
        images: (L,) int64 naming the image of each complementary label.
        config: its share and seed.

    Returns:
        (L,) bool, equal for labels of one image.
    """
    distinct, image = torch.unique(images, return_inverse=True)  # (I,), (L,)
    order = torch.randperm(len(distinct), generator=generator(config.seed, "held out"))
    chosen = torch.zeros(len(distinct), dtype=torch.bool)
    chosen[order[: round(len(distinct) * config.reports.held_out_share)]] = True
    return chosen[image]
