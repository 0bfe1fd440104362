"""TrainConfig, its schema and the presets: pure, and importable without torch."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from typing import Any, get_args

import pytest

from clarinet.recipes.choices import Method
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ClarinetError, ConfigError
from clarinet.recipes.methods import METHODS, config_for
from clarinet.recipes.schema import json_schema


def test_config_methods_and_errors_import_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['numpy'] = None\n"
        "from clarinet.recipes import config, errors, methods, schema\n"
        "schema.json_schema()"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_of_the_package_resolves() -> None:
    import clarinet

    for name in clarinet.__all__:
        assert getattr(clarinet, name) is not None


class TestTrainConfig:
    @pytest.mark.parametrize(("method", "epochs"), [("clarinet", 50), ("cdan_e", 1), ("gac+dann", 2)])
    def test_an_adaptation_that_would_never_begin_is_refused(self, method: str, epochs: int) -> None:
        """Else a run would be called by its method's name and be GAC, or the source alone."""
        setting = "cc" if "gac" in method else "pc"

        with pytest.raises(ConfigError, match="adversarial_start_epoch is"):
            config_for(method, setting=setting, epochs=epochs)
        assert config_for(method, setting=setting, epochs=epochs, adversarial_start_epoch=0)
        assert config_for("gac", epochs=epochs)

    def test_a_run_of_pretraining_alone_is_refused(self) -> None:
        """It would score a network that has seen no label."""
        with pytest.raises(ConfigError, match=r"pretraining is 0\.9, which of 4 epochs leaves none"):
            config_for("clarinet-plus", epochs=4, pretraining=0.9)
        assert config_for("clarinet-plus", epochs=4, pretraining=0.8).pretraining_epochs == 3

    def test_a_number_beyond_all_floats_is_a_sentence(self) -> None:
        with pytest.raises(ConfigError, match="learning_rate is larger"):
            config_for("clarinet", learning_rate=10**400)

    def test_defaults_are_the_papers_protocol(self) -> None:
        config = TrainConfig()

        assert (config.method, config.preset) == ("clarinet", "paper")
        assert (config.epochs, config.batch_size, config.optimizer, config.momentum) == (500, 128, "sgd", 0.9)
        assert (config.learning_rate, config.discriminator_learning_rate) == (5e-5, 5e-3)
        assert (config.weight_decay, config.sharpening) == (5e-5, 0.5)
        assert (config.trade_off, config.adversarial_start_epoch) == (0.01, 50)
        assert config.complementary_loss == "unbiased"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("epochs", 0),
            ("epochs", 1.5),
            ("epochs", True),
            ("epochs", "40"),
            ("learning_rate", float("nan")),
            ("learning_rate", -1.0),
            ("batch_norm", 1),
            ("method", "gacc"),
            ("setting", None),
            ("image_size", 15),
            ("image_size", True),
            ("seed", -1),
            ("sharpening", 0),
        ],
    )
    def test_a_refused_value_is_named_with_its_field(self, name: str, value: Any) -> None:
        with pytest.raises(ConfigError, match=name) as caught:
            TrainConfig(**{name: value})

        assert repr(value) in str(caught.value)
        assert isinstance(caught.value, ClarinetError)
        assert isinstance(caught.value, ValueError)

    def test_an_int_is_a_fine_float(self) -> None:
        config = TrainConfig(weight_decay=0)

        assert isinstance(config.weight_decay, float)

    def test_augmentation_cannot_be_full_before_it_starts(self) -> None:
        with pytest.raises(ConfigError, match="augmentation_full"):
            TrainConfig(augmentation_start=0.5, augmentation_full=0.4)

    @pytest.mark.parametrize("method", ["dan", "dann", "cdan_e"])
    def test_methods_of_true_labels_refuse_the_setting_without_them(self, method: str) -> None:
        with pytest.raises(ConfigError, match="choose the setting pc"):
            config_for(method, setting="cc")

        assert config_for(method).setting == "pc"

    def test_it_cannot_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            TrainConfig().epochs = 3  # type: ignore[misc] # that is the test

    def test_it_survives_json(self) -> None:
        config = config_for("clarinet-plus", "quick", setting="pc", seed=7, learning_rate=0.25)

        assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config

    def test_an_unknown_field_is_named(self) -> None:
        with pytest.raises(ConfigError, match="'learning_rte'; did you mean learning_rate"):
            TrainConfig.from_dict({"learning_rte": 0.1})
        with pytest.raises(ConfigError, match="'zzz'; see the fields of TrainConfig"):
            TrainConfig.from_dict({"zzz": 0.1})


class TestConfigFor:
    def test_without_a_preset_it_takes_the_methods_first(self) -> None:
        assert config_for("clarinet").preset == "paper"
        assert config_for("clarinet-plus").preset == "default"

    @pytest.mark.parametrize("method", sorted(METHODS.keys() - {"clarinet-plus"}))
    def test_short_changes_the_protocol_and_no_loss_of_the_paper(self, method: str) -> None:
        protocol = {"preset", "epochs", "steps_per_epoch", "learning_rate", "discriminator_learning_rate"}
        strength = {"trade_off", "adversarial_start_epoch"}
        paper, short = config_for(method).to_dict(), config_for(method, "short").to_dict()

        assert {name for name in paper if paper[name] != short[name]} <= protocol | strength
        assert (paper["trade_off"] > 0) == (short["trade_off"] > 0)

    def test_overrides_win(self) -> None:
        assert config_for("clarinet-plus", "quick", epochs=3).epochs == 3

    @pytest.mark.parametrize(
        ("method", "preset", "match"), [("gacc", None, "'gacc'"), ("clarinet", "quick", "'quick'")]
    )
    def test_an_unknown_name_is_refused_with_the_known_ones(
        self, method: str, preset: str | None, match: str
    ) -> None:
        with pytest.raises(ConfigError, match=match):
            config_for(method, preset)


class TestJsonSchema:
    def test_each_field_has_title_sentence_type_and_default(self) -> None:
        schema = json_schema()

        assert set(schema["properties"]) == {item.name for item in fields(TrainConfig)}
        for name, entry in schema["properties"].items():
            assert entry["title"], name
            assert entry["description"].endswith("."), name
            assert entry["default"] == getattr(TrainConfig(), name)
            assert entry["type"] in {"string", "integer", "number", "boolean"}

    def test_bounds_and_choices_are_those_that_the_config_enforces(self) -> None:
        for name, entry in json_schema()["properties"].items():
            if entry["type"] in {"integer", "number"} and "enum" not in entry:
                with pytest.raises(ConfigError, match=name):
                    TrainConfig(**{name: entry["minimum"] - 1})
                with pytest.raises(ConfigError, match=name):
                    TrainConfig(**{name: entry["maximum"] + 1})
            for choice in entry.get("enum", ()):
                large_enough = {"image_size": 32} if name == "architecture" else {}
                config = TrainConfig.from_dict({"setting": "pc", name: choice} | large_enough)
                assert getattr(config, name) == choice

    def test_presets_hold_the_whole_config(self) -> None:
        presets = json_schema()["x-presets"]

        assert presets.keys() == METHODS.keys() == set(get_args(Method))
        assert set(presets["clarinet-plus"]) == {"default", "quick"}
        for method, table in METHODS.items():
            for preset in table:
                assert TrainConfig.from_dict(presets[method][preset]) == config_for(method, preset)

    def test_each_method_has_a_title_and_one_sentence(self) -> None:
        methods = json_schema()["x-methods"]

        assert methods.keys() == METHODS.keys()
        assert len({words["title"] for words in methods.values()}) == len(METHODS)
        for method, words in methods.items():
            assert words["description"].endswith("."), method
            assert ". " not in words["description"], method

    def test_it_is_json(self) -> None:
        schema = json_schema()

        assert json.loads(json.dumps(schema)) == schema
