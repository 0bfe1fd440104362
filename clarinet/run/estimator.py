"""The library behind scikit-learn's conventions: `Clarinet().fit(X, y, target=...)`, then `predict`."""

import copy
import inspect
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from clarinet.data.given import Given, Images, given
from clarinet.data.given_labels import Column, numbers_for, table_for
from clarinet.data.streams import ImageStream
from clarinet.data.training_data import TrainData
from clarinet.files.label_table import Labels
from clarinet.files.looks import looks_of_pair
from clarinet.networks.own import Own, Transform
from clarinet.recipes.choices import OWN_WEIGHTS, Looks
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError, DataError, NotFitted
from clarinet.recipes.methods import config_for
from clarinet.recipes.upgrade import OWN as FOLLOWING
from clarinet.run import evaluation
from clarinet.run.devices import named_device
from clarinet.run.loggers import Logger
from clarinet.run.results import TrainResult
from clarinet.run.training import ignore, train

DRAWN_BELOW = 2**31 - 1  # seeds that a random_state draws


class Clarinet:
    """A classifier for an unlabelled target, from labels that say what images of a source are not.

    It follows scikit-learn's conventions, and needs no scikit-learn. `fit` changes no parameter. Fitted, it
    has `classes_`, (K,) of numbers or names, and `result_`, the `TrainResult` with its model, config and
    reports. It can be pickled, if what was brought of one's own can be; it is unpickled on the CPU.

    **Images**, here called X and target, are any of these:

    * an array or tensor: (N, H, W), (N, H, W, C) or (N, C, H, W) with C = 1 or 3. uint8 in 0..255 or floats
      in 0..1; other ranges are refused. So is a shape that could have its channels second or last.
    * the path of a folder, in the order of `load_folder`, of a file, or a list of paths.
    * an ImageStream, as `ImageFiles` and `NpyImages` are.
    * a torch Dataset, a data set of Hugging Face's `datasets`, or a list: an item is an image (PIL, array or
      tensor), or (image, label), or has it as `image`, `img` or `pixel_values`.

    Args:
        method: a name in METHODS.
        preset: a preset of the method; None takes the one that fits the images, digits or photographs.
        weights: trained weights of a network for photographs: a file, or "hub" for a download; as `clarinet
            train --weights`.
        backbone: a module of your own in the place of the recipe's network. It takes (B, 3, S, S), and gives
            features (B, F), or maps (B, F, h, w), whose mean is taken. It begins with the weights that it
            has; a copy is trained. Such a model can be pickled, but `export_model` refuses it.
        transform: a function of your own in the place of the recipe's distortion: (B, C, S, S) float32 in
            0..1 to the same. It may draw from torch's global generators, which are seeded in each step.
        epochs: to train instead of the recipe's.
        changes: fields of TrainConfig by name, to train with instead of the recipe's.
        random_state: the seed, a RandomState that draws it, or None for another one in each fit. Equal seeds
            and data give equal weights on one machine's CPU.
        device: auto, cpu, cuda or what torch calls it; auto takes CUDA where there is some.
        logger: has `log(report)`, which is called after each epoch; `clarinet.run.loggers` has some.
    """

    classes_: NDArray[Any]
    result_: TrainResult

    def __init__(
        self,
        *,
        method: str = "clarinet-plus",
        preset: str | None = None,
        weights: str | None = None,
        backbone: nn.Module | None = None,
        transform: Transform | None = None,
        epochs: int | None = None,
        changes: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        logger: Logger | None = None,
    ) -> None:
        self.method = method
        self.preset = preset
        self.weights = weights
        self.backbone = backbone
        self.transform = transform
        self.epochs = epochs
        self.changes = changes
        self.random_state = random_state
        self.device = device
        self.logger = logger

    def fit(
        self,
        X: Images,
        y: Column | Labels | None = None,
        *,
        target: Images,
        true: Column | None = None,
        sample_weight: Column | None = None,
        classes: Sequence[Any] | None = None,
        test: tuple[Images, Column] | None = None,
    ) -> Self:
        """Learn from labelled images of the source and unlabelled ones of the target.

        The setting follows from the labels: "pc" where some are true ones, else "cc".

        Args:
            X: N images of the source.
            y: complementary labels, a class that each image is *not*: (N,), or (N, M) where images have
                several. Numbers from 0 on, or names. Where there is none stands -1, or in names None or "".
                Instead it may be the whole table, `Labels`, as `load_labels` reads it.
            target: images of the target. Of a folder with `train` and `test`, here and of X, only `train`.
            true: (N,) true labels, of some images; where there is none, as in y. An image with a true label
                has none in y.
            sample_weight: (N,) trust in the labels of each image, 0 or more.
            classes: all classes in the order that counts them. None takes those that labels name: numbers by
                value, names by the alphabet.
            test: images of the target and (T,) their true labels, which score after each epoch and change
                nothing.

        Raises:
            DataError: images or labels that contradict the above, or that cannot be learnt from.
            ConfigError: a parameter is refused.
        """
        device = named_device(self.device)
        source, unlabelled = given(X, "X", part="train"), given(target, "target", part="train")
        labels, found = table_for(y, true, images=len(source), classes=classes, weights=sample_weight)
        config = self._config(labels, looks_of_pair(source.looks, unlabelled.looks))
        data = TrainData.of(
            labels,
            source.read(config.network.image_size),
            target_images=unlabelled.read(config.network.image_size),
            test=_test(test, found, config.network.image_size),
        )
        self.result_ = train(
            config,
            data,
            device=device,
            on_epoch=ignore if self.logger is None else self.logger.log,
            own=Own(backbone=self.backbone, transform=self.transform),
        )
        self.classes_ = found
        return self

    def predict(self, X: Images) -> NDArray[Any]:
        """(N,) the likeliest class of each image, as `classes_` has it; every image of a folder.

        Raises:
            NotFittedError: scikit-learn's, or without scikit-learn our NotFitted.
            DataError: no such images.
        """
        likeliest = self.predict_proba(X).argmax(1)
        found: NDArray[Any] = self.classes_[likeliest]
        return found

    def predict_proba(self, X: Images) -> NDArray[np.float32]:
        """(N, K) probabilities in the order of `classes_`, rows sum to 1; raises what `predict` does."""
        self._require_fitted()
        return self._probabilities(given(X, "X"))

    def score(self, X: Images, y: Column | None = None, sample_weight: Column | None = None) -> float:
        """Accuracy on images whose true labels are known, in 0..1.

        Args:
            X: images; of a folder with `test` its test images.
            y: (N,) true labels. None takes the names of a folder's class folders, or the labels of a data
                set's items. Names that differ only in case, accents or spaces are one.
            sample_weight: (N,) how much each image counts.

        Raises:
            DataError: there are no labels, or one is none of the classes; and what `predict` raises.
        """
        self._require_fitted()
        images = given(X, "X", part="scored")
        known = images.labels if y is None else y
        if known is None or not len(known):
            raise DataError("there are no true labels to score by; give y, or a folder of class folders")
        numbers = numbers_for(known, self.classes_, images=len(images))
        hits = self._probabilities(images).argmax(1) == numbers
        weights = np.ones(len(hits)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        if weights.shape != hits.shape or not weights.sum() > 0:
            raise DataError(
                f"sample_weight has shape {weights.shape} and sum {weights.sum()}; give {len(hits)} numbers, "
                "one for each image, whose sum is above 0"
            )
        return float(np.average(hits, weights=weights))

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - none has parameters of its own
        """The parameters by name, as they were given."""
        return {name: getattr(self, name) for name in _defaults()}

    def set_params(self, **values: Any) -> Self:
        """Replace parameters by name; raises ConfigError for one that there is not."""
        for name in values:
            if name not in _defaults():
                raise ConfigError(f"there is no parameter {name!r}; there are {', '.join(_defaults())}")
        for name, value in values.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        told = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not _defaults()[name] and value != _defaults()[name]
        ]
        return f"Clarinet({', '.join(told)})"

    def __getstate__(self) -> dict[str, Any]:
        """All there is, with the model on the CPU: who reads it may have no other device."""
        state = dict(self.__dict__)
        if "result_" in state:
            on_cpu = copy.deepcopy(self.result_.model).cpu()
            state["result_"] = replace(self.result_, model=on_cpu)
        return state

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks an estimator about itself."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags  # noqa: PLC0415

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True, two_d_labels=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(two_d_array=False, three_d_array=True),
            no_validation=True,
        )

    def _config(self, labels: Labels, looks: Looks) -> TrainConfig:
        """The recipe with the parameters' changes; raises ConfigError."""
        changes = dict(self.changes or {})
        for name in FOLLOWING:
            if name in changes:
                raise ConfigError(
                    f"changes has {name}, which follows from the other parameters or the labels"
                )
        if self.weights is not None:
            changes["pretrained"] = str(self.weights)
        if self.epochs is not None:
            changes["epochs"] = self.epochs
        setting = "pc" if (labels.true >= 0).any() else "cc"
        fixed = {"setting": setting, "seed": _seed(self.random_state)}
        config = config_for(self.method, self.preset, looks=looks, **changes | fixed)
        if self.backbone is not None and self.weights is None and config.network.pretrained:
            return config.changed(pretrained=OWN_WEIGHTS)
        return config

    def _probabilities(self, images: Given) -> NDArray[np.float32]:
        model = self.result_.model.to(named_device(self.device))
        found: NDArray[np.float32] = evaluation.predict(model, images.read(model.spec.image_size)).numpy()
        return found

    def _require_fitted(self) -> None:
        if not hasattr(self, "result_"):
            raise _not_fitted()("this Clarinet is not fitted yet; call fit before predict or score")


def _defaults() -> dict[str, Any]:
    """The parameters and their defaults, in their order."""
    known = inspect.signature(Clarinet).parameters.values()
    return {parameter.name: parameter.default for parameter in known}


def _not_fitted() -> type[Exception]:
    """The error that who uses scikit-learn expects, or ours."""
    try:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415
    except ImportError:
        return NotFitted
    found: type[Exception] = NotFittedError
    return found


def _seed(random_state: int | np.random.RandomState | None) -> int:
    if random_state is None:
        return secrets.randbelow(DRAWN_BELOW)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(DRAWN_BELOW))
    return int(random_state) if isinstance(random_state, np.integer) else random_state


def _test(
    test: tuple[Images, Column] | None, classes: NDArray[Any], side: int
) -> tuple[Tensor | ImageStream | None, Tensor | None]:
    if test is None:
        return None, None
    images = given(test[0], "test", part="scored")
    numbers = numbers_for(test[1], classes, images=len(images))
    return images.read(side), torch.from_numpy(numbers)
