"""What the web process adds to the library's recipes: fields of a form, refusals in sentences, old runs."""

import json
import re
from typing import Any

import pytest

from app.runs import configs
from app.runs.configs import ConfigField, ConfigRefused, ConfigRow
from clarinet.recipes.choices import ARCHITECTURES, BACKBONES
from clarinet.recipes.config import DEFAULTS, GROUPS, TrainConfig, title_of
from clarinet.recipes.methods import DESCRIPTIONS, config_for
from clarinet.recipes.presets import METHODS


def field_named(name: str) -> ConfigField:
    return next(field for field in configs.form_fields() if field.name == name)


@pytest.mark.parametrize(
    ("method", "preset"), [(method, preset) for method, table in METHODS.items() for preset in table]
)
def test_a_run_keeps_a_config_that_its_worker_reads(method: str, preset: str) -> None:
    values = configs.config_for(method, "pc", preset, {"epochs": 80}, looks="digits")

    config = TrainConfig.from_dict(json.loads(json.dumps(values)) | {"seed": 3})

    assert config == config_for(method, preset, setting="pc", epochs=80, seed=3)


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("epochs", 0),
            ("epochs", 1.5),
            ("epochs", True),
            ("epochs", "7"),
            ("learning_rate", float("nan")),
            ("learning_rate", -1),
            ("optimizer", "adam"),
            ("norm_per_domain", 1),
            ("image_size", 15),
            ("distortion_full", -0.1),
            ("adaptation_kind", "adversary"),
            ("sed", 1),
            ("batch_norm", True),
            ("rotation", 5.0),
            ("losses", {"label_noise": 0.1}),
        ],
    )
    def test_each_names_its_field_in_a_sentence(self, name: str, value: object) -> None:
        with pytest.raises(ConfigRefused) as refused:
            configs.config_for("clarinet-plus", "cc", "digits", {name: value}, looks="digits")

        assert refused.value.field == name
        assert name in refused.value.message.lower().replace(" ", "_")
        assert refused.value.message[0].isupper()
        assert refused.value.message.endswith(".")

    @pytest.mark.parametrize("name", ["method", "preset", "setting", "seed"])
    def test_what_is_chosen_beside_the_config_is_not_in_it(self, name: str) -> None:
        with pytest.raises(ConfigRefused, match="is chosen beside the configuration") as refused:
            configs.config_for("clarinet", "cc", "paper", {name: "clarinet"}, looks="digits")

        assert refused.value.field == name

    def test_of_two_values_that_contradict_each_other_one_is_named(self) -> None:
        with pytest.raises(ConfigRefused, match=r"before “Distortion start” \(0\.5\)") as refused:
            configs.config_for("clarinet-plus", "cc", "digits", {"distortion_start": 0.5}, looks="digits")

        assert refused.value.field == "distortion_full"

    def test_they_speak_no_python(self) -> None:
        plus = configs.preset_values("clarinet-plus", "digits", "digits")
        cases: list[tuple[str, dict[str, Any]]] = [
            ("clarinet", {"conditioning": False}),
            ("gac", {name: plus[name] for name in DEFAULTS}),
        ]

        for method, values in cases:
            with pytest.raises(ConfigRefused) as refused:
                configs.config_for(method, "cc", "paper", values, looks="digits")
            assert "choose" in refused.value.message
            assert not re.search(r"True|False|config_for|_", refused.value.message)

    @pytest.mark.parametrize(
        "where",
        ["weights.safetensors", "/etc/passwd", "../a.pth", "./a.pth", "a.pth ", " hub", None, ["hub"]],
    )
    def test_weights_come_from_no_other_file_of_the_worker(self, where: object) -> None:
        values = {"architecture": "resnet18", "pretrained": where}

        with pytest.raises(ConfigRefused) as refused:
            configs.config_for("clarinet", "cc", "paper", values, looks="digits", weights={"a.pth": "0" * 64})

        assert refused.value.field == "pretrained"

    def test_a_file_of_weights_is_kept_with_its_digest(self) -> None:
        values = {"architecture": "timm/resnet18", "pretrained": "a.pth"}
        wanted = values | {"pretrained_digest": "0" * 64}

        kept = configs.config_for(
            "clarinet", "cc", "paper", values, looks="digits", weights={"a.pth": "0" * 64}
        )

        assert kept["network"].items() >= wanted.items()
        assert (
            configs.config_for("clarinet", "cc", "paper", wanted, looks="digits", weights={"a.pth": "0" * 64})
            == kept
        )
        with pytest.raises(ConfigRefused, match=f"has another SHA-256 than was asked for: {'1' * 64}"):
            configs.config_for("clarinet", "cc", "paper", wanted, looks="digits", weights={"a.pth": "1" * 64})

    def test_a_file_that_is_being_written_is_none_yet(self) -> None:
        values = {"architecture": "resnet18", "pretrained": "a.pth"}

        with pytest.raises(ConfigRefused, match=r"a\.pth is being written"):
            configs.config_for("clarinet", "cc", "paper", values, looks="digits", weights={"a.pth": None})

    def test_a_download_may_be_called_as_earlier(self) -> None:
        values = {"architecture": "resnet18", "pretrained": "torchvision"}

        assert (
            configs.config_for("clarinet", "cc", "paper", values, looks="digits")["network"]["pretrained"]
            == "hub"
        )

    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_pretrained_weights_are_for_networks_that_have_them(self, architecture: str) -> None:
        values = {"architecture": architecture, "pretrained": "hub", "image_size": 224}

        if architecture in BACKBONES:
            assert (
                configs.config_for("clarinet", "cc", "paper", values, looks="digits")["network"].items()
                >= values.items()
            )
            return
        with pytest.raises(ConfigRefused) as refused:
            configs.config_for("clarinet", "cc", "paper", values, looks="digits")
        assert refused.value.field == "pretrained"

    @pytest.mark.parametrize(
        ("method", "setting", "preset", "field"),
        [
            ("x", "cc", "paper", "method"),
            ("clarinet", "cc", "x", "preset"),
            ("clarinet", "x", "paper", "setting"),
            ("dann", "cc", "paper", "setting"),
        ],
    )
    def test_unknown_and_unfitting_choices_are_named(
        self, method: str, setting: str, preset: str, field: str
    ) -> None:
        with pytest.raises(ConfigRefused) as refused:
            configs.config_for(method, setting, preset, {}, looks="digits")

        assert refused.value.field == field


class TestForm:
    def test_every_hyper_parameter_has_a_field_in_the_librarys_order(self) -> None:
        fields = configs.form_fields()

        # The digest follows from the file.
        assert [field.name for field in fields] == [name for name in DEFAULTS if name != "pretrained_digest"]
        assert [group.title for group in configs.form_groups()] == [title_of(name) for name in GROUPS]
        assert all(text.endswith(".") for text in [field.help for field in fields])
        assert all(group.sentence.endswith(".") for group in configs.form_groups())

    def test_no_help_speaks_of_python(self) -> None:
        raw = {name for name in DEFAULTS if "_" in name} | {"True", "False"}

        assert [name for field in configs.form_fields() for name in raw if name in field.help] == []
        assert "larger batches than “Batch size”." in field_named("step_share").help

    def test_choices_and_bounds_are_the_librarys(self) -> None:
        assert field_named("optimizer").choices == ("sgd", "adamw")
        assert field_named("pretrained").choices == ("", "hub")
        assert field_named("architecture").choices == ()
        assert field_named("architecture").suggestions == ARCHITECTURES
        assert field_named("architecture").help.endswith("shows when the training begins.")
        assert not field_named("pretrained").help.endswith("shows when the training begins.")
        assert (field_named("epochs").minimum, field_named("epochs").maximum) == (1, 100_000)
        assert field_named("norm_per_domain").kind == "boolean"

    def test_each_method_has_its_words(self) -> None:
        assert configs.methods() == DESCRIPTIONS

    @pytest.mark.parametrize(
        ("name", "text", "value"),
        [
            ("epochs", " 12 ", 12),
            ("learning_rate", "1e-4", 1e-4),
            ("norm_per_domain", "true", True),
            ("norm_per_domain", "False", False),
            ("optimizer", "sgd", "sgd"),
            ("image_size", "32", 32),
        ],
    )
    def test_a_forms_text_becomes_a_value(self, name: str, text: str, value: object) -> None:
        parsed = field_named(name).parse(text)

        assert parsed == value
        assert type(parsed) is type(value)

    @pytest.mark.parametrize(
        ("name", "text"),
        [("epochs", "many"), ("epochs", "1.5"), ("norm_per_domain", "maybe"), ("learning_rate", "x")],
    )
    def test_a_text_that_is_no_value_is_refused_in_the_librarys_words(self, name: str, text: str) -> None:
        value = field_named(name).parse(text)

        with pytest.raises(ConfigRefused, match=f"{title_of(name)} is '{text}', but must be") as refused:
            configs.config_for("clarinet", "cc", "paper", {name: value}, looks="digits")
        assert refused.value.field == name
        assert configs.refusal_of(name, value) == refused.value.message

    def test_a_value_alone_is_refused_whatever_the_others_are(self) -> None:
        assert configs.refusal_of("epochs", 3) == ""
        assert configs.refusal_of("epochs", 0) == "Epochs is 0, but must lie between 1 and 100000."


class TestKeptConfigs:
    """Runs of earlier versions have theirs flat, and under earlier names."""

    EARLIER: dict[str, Any] = {  # noqa: RUF012 - never changed
        "method": "clarinet",
        "preset": "paper",
        "setting": "cc",
        "epochs": 30,
        "trade_off": 0.5,
        "discrepancy_weight": 0.0,
        "averaging": 0.0,
        "momentum": 0.9,
    }

    def test_epochs_are_found_in_each(self) -> None:
        assert configs.epochs_of(configs.config_for("clarinet", "cc", "short", {}, looks="digits")) == 20
        assert configs.epochs_of(self.EARLIER) == 30
        assert configs.epochs_of({}) == 0

    def test_todays_is_shown_whole_in_its_groups(self) -> None:
        shown = configs.in_groups(
            configs.config_for("clarinet", "cc", "paper", {"epochs": 60}, looks="digits")
        )

        assert [title for title, _ in shown] == [title_of(name) for name in GROUPS]
        rows = {row.name: row for _, group in shown for row in group}
        assert list(rows) == list(DEFAULTS)
        assert all(row.title == title_of(name) for name, row in rows.items())
        assert {
            name: rows[name].value for name in ("epochs", "learning_rate", "pretrained", "conditioning")
        } == {
            "epochs": "60",
            "learning_rate": "0.00005",
            "pretrained": "none",
            "conditioning": "yes",
        }

    def test_an_earlier_one_is_shown_under_todays_names(self) -> None:
        assert configs.in_groups(self.EARLIER) == [
            ("Length", [ConfigRow("epochs", "Epochs", "30")]),
            ("Optimisation", [ConfigRow("average_decay", "Average decay", "0")]),
            (
                "Adaptation",
                [
                    ConfigRow("adaptation_kind", "Adaptation kind", "adversary"),
                    ConfigRow("adaptation_weight", "Adaptation weight", "0.5"),
                ],
            ),
        ]

    def test_what_has_no_place_any_more_is_shown_apart(self) -> None:
        shown = dict(configs.in_groups(self.EARLIER | {"momentum": 0.5}))

        assert shown["Of an earlier version"] == [ConfigRow("momentum", "Momentum", "0.5")]

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (True, "yes"),
            (False, "no"),
            ("", "none"),
            (None, "none"),
            ("sgd", "sgd"),
            (500, "500"),
            (0.0, "0"),
            (10.0, "10"),
            (5e-05, "0.00005"),
            (0.99999, "0.99999"),
            (float("inf"), "Infinity"),
        ],
    )
    def test_values_are_as_people_write_them(self, value: object, words: str) -> None:
        assert configs.shown(value) == words


def test_a_configuration_of_an_earlier_version_is_read_in_groups() -> None:
    old = {"method": "clarinet", "setting": "cc", "preset": "paper", "epochs": 7, "trade_off": 0.01}

    shown = configs.readable(old)

    assert (shown["method"], shown["length"], shown["adaptation"]["adaptation_weight"]) == (
        "clarinet",
        {"epochs": 7},
        0.01,
    )
    assert "earlier" not in shown
    assert configs.readable(old | {"momentum": 0.5})["earlier"] == {"momentum": 0.5}
    now = configs.config_for("clarinet", "cc", "paper", {}, looks="digits")
    assert configs.readable(now) == now
