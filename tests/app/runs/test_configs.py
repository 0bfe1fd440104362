"""The configuration's schema, as the web process reads it."""

import json
from typing import get_args

import pytest

from app.runs import configs
from app.runs.configs import ConfigRefused
from clarinet.recipes.choices import BACKBONES, Architecture
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.methods import METHODS
from worker.schema import rendered


def test_the_file_is_what_the_library_says_today() -> None:
    assert configs.SCHEMA_PATH.read_text(encoding="utf-8") == rendered(), "run: make schema"


@pytest.mark.parametrize(
    ("method", "preset"), [(method, preset) for method, table in METHODS.items() for preset in table]
)
def test_every_preset_makes_a_config_that_the_library_accepts(method: str, preset: str) -> None:
    values = configs.config_for(method, "pc", preset, {})

    config = TrainConfig.from_dict(json.loads(json.dumps(values)) | {"seed": 3})

    assert (config.method, config.preset, config.setting, config.seed) == (method, preset, "pc", 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("epochs", 1.5),
        ("epochs", True),
        ("epochs", "7"),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("learning_rate", -1),
        ("optimizer", "adam"),
        ("batch_norm", 1),
        ("image_size", 15),
        ("seed", 1),
        ("method", "clarinet"),
        ("sed", 1),
    ],
)
def test_what_the_library_would_refuse_is_refused_before_the_queue(name: str, value: object) -> None:
    with pytest.raises(ConfigRefused) as refused:
        configs.config_for("clarinet-plus", "cc", "default", {name: value})

    assert refused.value.field == name


def test_two_values_that_contradict_each_other_are_refused_before_the_queue() -> None:
    with pytest.raises(ConfigRefused, match="must not come before") as refused:
        configs.config_for("clarinet-plus", "cc", "default", {"augmentation_start": 0.5})

    assert refused.value.field == "augmentation_full"


def test_an_image_too_small_for_its_network_is_refused_before_the_queue() -> None:
    values: dict[str, object] = {"architecture": "convnext_tiny", "image_size": 28}

    with pytest.raises(ConfigRefused) as refused:
        configs.config_for("clarinet", "cc", "paper", values)

    assert refused.value.field == "image_size"
    with pytest.raises(ConfigError, match="image_size"):
        TrainConfig.from_dict(values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 50, 51, 101])
@pytest.mark.parametrize("changes", [{}, {"adversarial_start_epoch": 1}, {"pretraining": 0.8}])
def test_what_the_library_refuses_never_reaches_a_queue(
    method: str, epochs: int, changes: dict[str, object]
) -> None:
    """A run too short for its method: the same answer on both sides."""
    for preset in METHODS[method]:
        values = configs.config_for(method, "pc", preset, {}) | changes | {"epochs": epochs}
        try:
            TrainConfig.from_dict(values)
        except ConfigError:
            with pytest.raises(ConfigRefused):
                configs.config_for(method, "pc", preset, {"epochs": epochs, **changes})
        else:
            assert configs.config_for(method, "pc", preset, {"epochs": epochs, **changes}) == values


def test_weights_come_from_no_file_of_the_worker() -> None:
    with pytest.raises(ConfigRefused) as refused:
        configs.config_for(
            "clarinet", "cc", "paper", {"architecture": "resnet18", "pretrained": "weights.safetensors"}
        )

    assert refused.value.field == "pretrained"


@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_pretrained_weights_are_for_the_networks_that_the_library_has_them_for(architecture: str) -> None:
    values = {"architecture": architecture, "pretrained": "torchvision", "image_size": 224}

    if architecture in BACKBONES:
        TrainConfig.from_dict(configs.config_for("clarinet", "cc", "paper", values))
        return
    with pytest.raises(ConfigRefused):
        configs.config_for("clarinet", "cc", "paper", values)
    with pytest.raises(ConfigError, match="pretrained"):
        TrainConfig.from_dict(values)


@pytest.mark.parametrize(
    ("method", "setting", "preset"),
    [("x", "cc", "paper"), ("clarinet", "cc", "x"), ("clarinet", "x", "paper")],
)
def test_unknown_names_are_refused(method: str, setting: str, preset: str) -> None:
    with pytest.raises(ConfigRefused):
        configs.config_for(method, setting, preset, {})


@pytest.mark.parametrize(
    ("name", "value"), [("epochs", 1), ("complementary_loss", "none"), ("pseudo_label_share", 0.96)]
)
def test_what_two_steps_need_is_asked_for_before_the_queue(name: str, value: object) -> None:
    with pytest.raises(ConfigRefused):
        configs.config_for("gac+dan", "pc", "paper", {name: value})


@pytest.mark.parametrize("method", ["dan", "dann", "cdan_e"])
def test_a_method_of_true_labels_alone_is_refused_in_cc(method: str) -> None:
    with pytest.raises(ConfigRefused, match="PC") as refused:
        configs.config_for(method, "cc", "paper", {})

    assert refused.value.field == "setting"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("epochs", "12", 12),
        ("learning_rate", "1e-4", 1e-4),
        ("batch_norm", "true", True),
        ("optimizer", "sgd", "sgd"),
        ("image_size", "32", 32),
    ],
)
def test_a_forms_text_becomes_a_value(name: str, text: str, value: object) -> None:
    field = next(field for field in configs.fields() if field.name == name)

    assert field.parse(text) == value


@pytest.mark.parametrize(
    ("name", "text"), [("epochs", "many"), ("epochs", "1.5"), ("batch_norm", "maybe"), ("learning_rate", "")]
)
def test_a_text_that_is_no_value_is_refused_in_words(name: str, text: str) -> None:
    field = next(field for field in configs.fields() if field.name == name)

    with pytest.raises(ConfigRefused, match="must be"):
        field.parse(text)
