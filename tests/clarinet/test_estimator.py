"""`Clarinet`: what people who know scikit-learn expect of it."""

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from clarinet import (
    Clarinet,
    DataError,
    NotFitted,
    TrainResult,
    config_for,
    export_model,
    load_model,
    predict,
    train,
)
from clarinet.export.models import load_card
from clarinet.recipes.errors import ConfigError
from clarinet.run.results import EpochReport
from tests.clarinet.factories import equal_weights, in_memory, make_data

DATA = make_data()
SOURCE, TARGET = in_memory(DATA.source_images).numpy(), in_memory(DATA.target_images).numpy()
NOT = DATA.complementary.numpy()
TRUTH = DATA.target_test_labels.numpy() if DATA.target_test_labels is not None else None
NAMES = np.array(["low", "middle", "top"])
SHORT: dict[str, Any] = {"steps_per_epoch": 4, "batch_size": 16, "pretraining_share": 0.34}


class Recording:
    """A logger."""

    def __init__(self) -> None:
        self.reports: list[EpochReport] = []

    def log(self, report: EpochReport) -> None:
        self.reports.append(report)


class Pooling(nn.Module):
    """A backbone of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 6, 7, stride=4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out


def mirrored(pixels: Tensor) -> Tensor:
    return pixels.flip(3)


def short(**parameters: Any) -> Clarinet:
    usual: dict[str, Any] = {"epochs": 3, "changes": SHORT, "device": "cpu"}
    return Clarinet(**usual | parameters)


@pytest.fixture(scope="module")
def fitted() -> Clarinet:
    return short().fit(SOURCE, NAMES[NOT], target=TARGET)


def test_fit_returns_itself_and_predicts_names(fitted: Clarinet) -> None:
    again = short()

    assert again.fit(SOURCE, NAMES[NOT], target=TARGET) is again
    assert fitted.classes_.tolist() == ["low", "middle", "top"]
    assert set(fitted.predict(TARGET)) <= set(NAMES)
    assert isinstance(fitted.result_, TrainResult)
    assert fitted.result_.config.setting == "cc"
    assert fitted.result_.config.preset == "digits"


def test_it_learns_what_the_library_learns(fitted: Clarinet) -> None:
    config = config_for("clarinet-plus", None, looks=DATA.looks, epochs=3, **SHORT)

    assert config == fitted.result_.config
    assert equal_weights(train(config, DATA).model, fitted.result_.model)


def test_probabilities_are_those_of_the_library(fitted: Clarinet) -> None:
    found = fitted.predict_proba(TARGET)

    assert found.shape == (len(TARGET), 3)
    assert np.allclose(found.sum(1), 1, atol=1e-5)
    assert np.array_equal(found, predict(fitted.result_, torch.from_numpy(TARGET)).numpy())
    assert np.array_equal(fitted.predict(TARGET), fitted.classes_[found.argmax(1)])


def test_the_score_is_the_accuracy(fitted: Clarinet) -> None:
    truth, weights = NAMES[TRUTH], np.arange(len(TARGET)) + 1.0

    assert fitted.score(TARGET, truth) == pytest.approx(accuracy_score(truth, fitted.predict(TARGET)))
    assert fitted.score(TARGET, truth, weights) == pytest.approx(
        accuracy_score(truth, fitted.predict(TARGET), sample_weight=weights)
    )
    with pytest.raises(DataError, match="no true labels to score by"):
        fitted.score(TARGET)


@pytest.mark.parametrize(
    "form",
    [
        torch.from_numpy,
        lambda images: images[:, None],
        lambda images: images[..., None] / np.float32(255),
        lambda images: [Image.fromarray(image) for image in images],
        list,
    ],
)
def test_every_form_of_the_same_images_is_predicted_alike(fitted: Clarinet, form: Any) -> None:
    assert np.array_equal(fitted.predict_proba(form(TARGET)), fitted.predict_proba(TARGET))


def test_no_image_has_no_prediction(fitted: Clarinet) -> None:
    assert fitted.predict(TARGET[:0]).shape == (0,)
    assert fitted.predict_proba([]).shape == (0, 3)


@pytest.mark.long
def test_equal_seeds_give_equal_bits_and_others_do_not(fitted: Clarinet) -> None:
    again = short(random_state=np.int64(0)).fit(torch.from_numpy(SOURCE), list(NAMES[NOT]), target=TARGET)
    other = short(random_state=1).fit(SOURCE, NAMES[NOT], target=TARGET)

    assert equal_weights(again.result_.model, fitted.result_.model)
    assert not equal_weights(other.result_.model, fitted.result_.model)


def test_a_random_state_draws_the_seed() -> None:
    seeds = [
        short(epochs=1, random_state=state).fit(SOURCE, NOT, target=TARGET).result_.config.seed
        for state in (np.random.RandomState(3), np.random.RandomState(3), None, None)
    ]

    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 3


def test_numbers_stay_numbers_and_the_setting_follows_from_the_labels() -> None:
    true = np.where(np.arange(len(NOT)) < 30, (NOT + 1) % 3, -1)

    found = short(epochs=1).fit(SOURCE, np.where(true < 0, NOT, -1), true=true, target=TARGET)

    assert found.classes_.tolist() == [0, 1, 2]
    assert found.predict(TARGET).dtype == np.int64
    assert found.result_.config.setting == "pc"


def test_test_images_score_after_each_epoch_and_change_nothing(fitted: Clarinet) -> None:
    logger = Recording()

    scored = short(logger=logger).fit(SOURCE, NAMES[NOT], target=TARGET, test=(TARGET, NAMES[TRUTH]))

    assert [report.epoch for report in logger.reports] == [1, 2, 3]
    assert logger.reports == scored.result_.reports
    assert scored.result_.target_accuracy == pytest.approx(scored.score(TARGET, NAMES[TRUTH]))
    assert equal_weights(scored.result_.model, fitted.result_.model)


def test_it_is_cloned_unfitted_with_equal_parameters(fitted: Clarinet) -> None:
    made = clone(fitted)

    assert type(made) is Clarinet
    assert made.get_params() == fitted.get_params()
    assert not hasattr(made, "result_")
    assert is_classifier(made)
    check_is_fitted(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(made)


def test_fit_changes_no_parameter() -> None:
    parameters = {"changes": dict(SHORT), "logger": Recording(), "backbone": Pooling(), "epochs": 1}
    made = short(**parameters)
    weights = copy.deepcopy(parameters["backbone"].state_dict())  # type: ignore[attr-defined]
    before = made.get_params()

    made.fit(SOURCE, NOT, target=TARGET)

    assert made.get_params() == before
    assert all(made.get_params()[name] is value for name, value in parameters.items())
    assert parameters["changes"] == SHORT
    assert all(torch.equal(value, weights[name]) for name, value in made.backbone.state_dict().items())  # type: ignore[union-attr]


def test_parameters_are_set_by_name() -> None:
    made = Clarinet().set_params(epochs=7, preset="digits-quick")

    assert made.get_params()["epochs"] == 7
    assert repr(made) == "Clarinet(preset='digits-quick', epochs=7)"
    with pytest.raises(ConfigError, match="there is no parameter 'epoch'; there are method, preset"):
        made.set_params(epoch=7, preset=None)
    assert made.preset == "digits-quick"


def test_it_is_pickled_with_all_that_it_learnt(fitted: Clarinet) -> None:
    again = pickle.loads(pickle.dumps(fitted))

    assert np.array_equal(again.predict_proba(TARGET), fitted.predict_proba(TARGET))
    assert again.get_params() == fitted.get_params()
    assert again.classes_.tolist() == fitted.classes_.tolist()
    assert again.result_.config == fitted.result_.config


@pytest.mark.long
def test_a_module_of_ones_own_takes_the_recipe_for_photographs() -> None:
    """Its features are kept, and it is fine-tuned on images that the transform changed."""
    seen: list[int] = []

    def counted(pixels: Tensor) -> Tensor:
        seen.append(len(pixels))
        return pixels

    own, turns = Pooling(), {"fine_tuning_turns": 1, "fine_tuning_steps": 2, "batch_size": 8}
    made = Clarinet(
        preset="photographs",
        backbone=own,
        transform=counted,
        epochs=2,
        changes=turns | {"image_size": 32, "fine_tuning_size": 32},
        device="cpu",
    ).fit(SOURCE, NOT, target=TARGET)

    assert made.result_.config.network.pretrained == "own"
    assert seen == [8, 8, 8, 8]
    moved = made.result_.model.extractor.state_dict()["body.layer.weight"]
    assert not torch.equal(moved, own.layer.weight)
    assert made.predict_proba(TARGET).shape == (len(TARGET), 3)


def test_a_module_that_is_for_one_size_is_not_fine_tuned_on_another() -> None:
    one_size = nn.Sequential(nn.Flatten(), nn.Linear(3 * 40 * 40, 8))
    made = Clarinet(preset="photographs", backbone=one_size, changes={"image_size": 40}, device="cpu")

    with pytest.raises(ConfigError, match=r"fine_tuning_size is 160, which .* set it to 0"):
        made.fit(SOURCE, NOT, target=TARGET)


def test_a_score_with_weights_needs_one_for_each_image(fitted: Clarinet) -> None:
    with pytest.raises(DataError, match="one for each image"):
        fitted.score(TARGET[:4], NAMES[[0, 1, 2, 0]], sample_weight=np.zeros(4))


def test_weights_of_ones_own_need_a_module() -> None:
    config = config_for("clarinet-plus", "photographs", pretrained="own")

    with pytest.raises(ConfigError, match="there is none; name hub or a file"):
        train(config, DATA)


@pytest.mark.long
def test_with_a_module_and_a_transform_of_ones_own_it_is_pickled_but_not_exported(tmp_path: Path) -> None:
    made = short(backbone=Pooling(), transform=mirrored).fit(SOURCE, NOT, target=TARGET)

    again = pickle.loads(pickle.dumps(made))

    assert np.array_equal(again.predict_proba(TARGET), made.predict_proba(TARGET))
    assert again.transform is mirrored
    assert type(clone(made).backbone) is Pooling
    with pytest.raises(Exception, match="pickle the estimator"):
        export_model(tmp_path, made.result_)


@pytest.mark.long
def test_it_is_exported_with_its_class_names(fitted: Clarinet, tmp_path: Path) -> None:
    export_model(tmp_path, fitted.result_, class_names=fitted.classes_.tolist())

    weights = tmp_path / "model.safetensors"
    assert load_card(weights)["classes"] == ["low", "middle", "top"]
    found = predict(load_model(weights), torch.from_numpy(TARGET)).numpy()
    assert np.allclose(found, fitted.predict_proba(TARGET), atol=1e-6)
    assert (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "score"])
def test_who_asks_before_fit_is_told(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet; call fit"):
        getattr(Clarinet(), ask)(TARGET)

    monkeypatch.setitem(sys.modules, "sklearn.exceptions", None)  # as if it were not installed
    with pytest.raises(NotFitted, match="not fitted yet; call fit") as told:
        getattr(Clarinet(), ask)(TARGET)
    assert isinstance(told.value, ValueError)
    assert isinstance(told.value, AttributeError)


def test_a_refused_fit_leaves_nothing_half_done(fitted: Clarinet) -> None:
    made = copy.deepcopy(fitted)

    with pytest.raises(DataError, match=r"y has shape \(1,\)"):
        made.fit(SOURCE, [0], target=TARGET)

    assert np.array_equal(made.predict(TARGET), fitted.predict(TARGET))


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"method": "x"}, "unknown method 'x'"),
        ({"preset": "x"}, "has no preset 'x'"),
        ({"weights": "hub"}, "has no pretrained weights"),
        ({"changes": {"epoch": 1}}, "epoch"),
        ({"changes": {"seed": 1}}, "changes has seed, which follows"),
        ({"device": "gpu"}, "device is 'gpu'; it is auto, cpu or cuda"),
        ({"random_state": -1}, "seed is -1"),
        ({"random_state": "7"}, "seed is '7'"),
    ],
)
def test_parameters_are_judged_by_fit(parameters: dict[str, Any], told: str) -> None:
    made = Clarinet(**parameters)  # as scikit-learn wants it, nothing is judged here

    with pytest.raises(ConfigError, match=told):
        made.fit(SOURCE, NOT, target=TARGET)


@pytest.mark.long
def test_photographs_get_their_preset_and_weights_are_looked_for() -> None:
    photographs = np.random.default_rng(0).integers(0, 256, (8, 40, 40, 3), np.uint8)

    with pytest.raises(ConfigError, match=r"nowhere\.pth cannot be read"):
        Clarinet(weights="nowhere.pth").fit(photographs, [0, 1] * 4, target=photographs[::-1])


def test_folders_are_fitted_and_scored_by_their_classes(tmp_path: Path) -> None:
    for place, images, classes in (("a", SOURCE, None), ("b/train", TARGET, None), ("b/test", TARGET, TRUTH)):
        for number, image in enumerate(images):
            name = "" if classes is None else NAMES[classes[number]].upper()
            (tmp_path / place / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(tmp_path / place / name / f"{number:03}.png")

    found = short(epochs=1).fit(tmp_path / "a", NAMES[NOT], target=str(tmp_path / "b"))

    arrays = short(epochs=1).fit(SOURCE, NAMES[NOT], target=TARGET)
    assert equal_weights(found.result_.model, arrays.result_.model)
    assert found.score(tmp_path / "b") == pytest.approx(found.score(TARGET, NAMES[TRUTH]))
    assert len(found.predict(tmp_path / "b")) == 2 * len(TARGET)
    assert np.array_equal(found.predict(tmp_path / "a" / "000.png"), arrays.predict(SOURCE[:1]))
