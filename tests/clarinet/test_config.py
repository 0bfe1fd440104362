"""TrainConfig, its groups and the presets: pure, and importable without torch."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields
from typing import Any, get_args

import pytest

from clarinet.recipes.choices import Method
from clarinet.recipes.config import DEFAULTS, GROUP_OF, GROUPS, TrainConfig, flattened
from clarinet.recipes.errors import ClarinetError, ConfigError
from clarinet.recipes.fields import kinds_of
from clarinet.recipes.identity import IDENTITIES
from clarinet.recipes.learning import Adaptation
from clarinet.recipes.methods import DESCRIPTIONS, config_for
from clarinet.recipes.presets import METHODS
from clarinet.recipes.upgrade import CONSTANT, OWN, RENAMED

EVERY_PRESET = [(method, preset) for method, presets in METHODS.items() for preset in presets]
every_preset = pytest.mark.parametrize(("method", "preset"), EVERY_PRESET)
BLOCKED = """
import importlib, pkgutil, sys
for name in {blocked!r}:
    sys.modules[name] = None
import clarinet
for package in {packages!r}:
    found = importlib.import_module(package)
    for module in pkgutil.iter_modules(found.__path__, package + "."):
        importlib.import_module(module.name)
"""


@pytest.mark.parametrize(
    ("packages", "blocked"),
    [
        (["clarinet.recipes"], ["torch", "torchvision", "numpy", "PIL"]),
        (["clarinet.recipes", "clarinet.files"], ["torch", "torchvision"]),
    ],
)
def test_a_fresh_process_reads_recipes_and_files_without_torch(
    packages: list[str], blocked: list[str]
) -> None:
    code = BLOCKED.format(packages=packages, blocked=blocked)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_every_public_name_of_the_package_resolves() -> None:
    import clarinet

    for name in clarinet.__all__:
        assert getattr(clarinet, name) is not None


class TestTrainConfig:
    @pytest.mark.parametrize(("method", "epochs"), [("clarinet", 50), ("cdan_e", 1), ("gac+dann", 2)])
    def test_an_adaptation_that_would_never_begin_is_refused(self, method: str, epochs: int) -> None:
        """Else a run would be called by its method's name and be GAC, or the source alone."""
        setting = "cc" if "gac" in method else "pc"

        with pytest.raises(ConfigError, match="adaptation_start_epoch is"):
            config_for(method, setting=setting, epochs=epochs)
        assert config_for(method, setting=setting, epochs=epochs, adaptation_start_epoch=0)
        assert config_for("gac", epochs=epochs)

    def test_a_run_of_pretraining_alone_is_refused(self) -> None:
        """It would score a network that has seen no label."""
        with pytest.raises(ConfigError, match=r"pretraining_share is 0\.9, which of 4 epochs leaves none"):
            config_for("clarinet-plus", epochs=4, pretraining_share=0.9)
        assert config_for("clarinet-plus", epochs=4, pretraining_share=0.8).pretraining_epochs == 3

    def test_pretraining_that_takes_all_of_one_of_two_steps_is_refused(self) -> None:
        """The run would be queued, and its second step refused when the first has ended."""
        with pytest.raises(ConfigError, match=r"pretraining_share is 0\.6, which of 1 epoch leaves none"):
            config_for("gac+dan", "short", epochs=2, pretraining_share=0.6, adaptation_start_epoch=0)

    def test_a_number_beyond_all_floats_is_a_sentence(self) -> None:
        with pytest.raises(ConfigError, match="learning_rate is larger"):
            config_for("clarinet", learning_rate=10**400)

    def test_defaults_are_the_papers_protocol(self) -> None:
        config = config_for("clarinet")

        assert (config.method, config.preset) == ("clarinet", "paper")
        assert (config.length.epochs, config.length.batch_size) == (500, 128)
        rates = config.optimisation
        assert (rates.optimizer, rates.learning_rate, rates.discriminator_learning_rate) == (
            "sgd",
            5e-5,
            5e-3,
        )
        assert (config.optimisation.weight_decay, config.adaptation.sharpening) == (5e-5, 0.5)
        assert (config.adaptation.adaptation_weight, config.adaptation.adaptation_start_epoch) == (0.01, 50)
        assert config.losses.complementary_loss == "unbiased"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("epochs", 0),
            ("epochs", 1.5),
            ("epochs", True),
            ("epochs", "40"),
            ("learning_rate", float("nan")),
            ("learning_rate", -1.0),
            ("norm_per_domain", 1),
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
            config_for("clarinet").changed(**{name: value})

        assert repr(value) in str(caught.value)
        assert isinstance(caught.value, ClarinetError)
        assert isinstance(caught.value, ValueError)

    def test_an_int_is_a_fine_float(self) -> None:
        config = config_for("clarinet", weight_decay=0)

        assert isinstance(config.optimisation.weight_decay, float)

    def test_distortion_cannot_be_full_before_it_starts(self) -> None:
        with pytest.raises(ConfigError, match="distortion_full"):
            config_for("clarinet", distortion_start=0.5, distortion_full=0.4)

    @pytest.mark.parametrize("method", ["dan", "dann", "cdan_e"])
    def test_methods_of_true_labels_refuse_the_setting_without_them(self, method: str) -> None:
        with pytest.raises(ConfigError, match="choose the setting pc"):
            config_for(method, setting="cc")

        assert config_for(method).setting == "pc"

    def test_it_cannot_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            config_for("clarinet").seed = 3  # type: ignore[misc] # that is the test
        with pytest.raises(FrozenInstanceError):
            config_for("clarinet").length.epochs = 3  # type: ignore[misc] # likewise

    @every_preset
    def test_every_preset_survives_json_in_groups_and_flat(self, method: str, preset: str) -> None:
        config = config_for(method, preset, setting="pc", seed=7, learning_rate=0.25)

        for values in (config.to_dict(), config.flat()):
            assert TrainConfig.from_dict(json.loads(json.dumps(values))) == config
        assert config.to_dict().keys() == {*OWN, *GROUPS}
        assert config.flat().keys() == {*OWN, *GROUP_OF}

    def test_single_values_change_by_their_names(self) -> None:
        config = config_for("clarinet")

        changed = config.changed(epochs=60, sharpening=0.4, seed=3)

        assert (changed.length.epochs, changed.adaptation.sharpening, changed.seed) == (60, 0.4, 3)
        assert changed.changed(epochs=500, sharpening=0.5, seed=0) == config

    def test_a_name_that_is_missing_is_named(self) -> None:
        with pytest.raises(ConfigError, match="method is missing"):
            TrainConfig.from_dict({"epochs": 3})


class TestNames:
    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("learning_rte", "'learning_rte'; did you mean learning_rate"),
            ("zzz", "'zzz'; there are adaptation_kind, adaptation_schedule, "),
            ("losses", "unknown hyper-parameter 'losses'"),
            ("trade_off", "trade_off is called adaptation_weight now"),
            ("averaging", "averaging is called average_decay now"),
            ("pretraining", "pretraining is called pretraining_share now"),
            ("rotation", r"rotation cannot be chosen; it is always 10\.0"),
        ],
    )
    def test_an_unknown_or_earlier_name_is_refused_with_a_hint(self, name: str, hint: str) -> None:
        value: dict[str, Any] = {name: 1}

        with pytest.raises(ConfigError, match=hint) as made:
            config_for("clarinet", **value)
        with pytest.raises(ConfigError, match=hint) as changed:
            config_for("gac").changed(**value)

        assert made.value.field == changed.value.field == name

    def test_each_earlier_name_leads_to_one_of_today(self) -> None:
        assert set(RENAMED.values()) <= set(GROUP_OF)
        assert not (set(RENAMED) | set(CONSTANT)) & set(GROUP_OF)

    def test_each_name_is_in_one_group_only(self) -> None:
        names = [item.name for group in GROUPS.values() for item in fields(group)]

        assert len(names) == len(set(names)) == len(GROUP_OF)
        assert not set(names) & {*OWN, *GROUPS}


class TestIdentity:
    """A configuration is that of its method, or it is refused."""

    def test_a_name_alone_makes_no_method(self) -> None:
        with pytest.raises(ConfigError, match="adaptation_kind is adversary, but gac has none"):
            TrainConfig(method="gac", preset="paper", setting="cc", seed=0)

    @pytest.mark.parametrize(
        ("method", "changes", "field"),
        [
            ("clarinet", {"method": "gac"}, "adaptation_kind"),
            ("clarinet", {"adaptation_kind": "discrepancy"}, "adaptation_kind"),
            ("clarinet", {"adaptation_kind": "none"}, "adaptation_kind"),
            ("clarinet", {"conditioning": False}, "conditioning"),
            ("clarinet", {"complementary_loss": "cross-entropy"}, "complementary_loss"),
            ("clarinet", {"complementary_loss": "none", "setting": "pc"}, "complementary_loss"),
            ("clarinet", {"first_step_share": 0.5}, "first_step_share"),
            ("gac+dan", {"first_step_share": 0.0}, "first_step_share"),
            ("gac+dann", {"conditioning": True}, "conditioning"),
            ("dann", {"complementary_loss": "unbiased"}, "complementary_loss"),
            ("clarinet-plus", {"adaptation_kind": "adversary"}, "adaptation_kind"),
            ("clarinet-ce", {"complementary_loss": "bounded"}, "complementary_loss"),
            ("clarinet-unconditioned", {"conditioning": True}, "conditioning"),
        ],
    )
    def test_what_would_be_another_method_is_refused(
        self, method: str, changes: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(ConfigError, match="its name promises this value") as caught:
            config_for(method).changed(**changes)

        assert caught.value.field == field

    def test_an_adaptation_without_weight_or_step_size_is_none(self) -> None:
        with pytest.raises(ConfigError, match="adaptation_weight is 0, which leaves no adaptation"):
            config_for("clarinet", adaptation_weight=0)
        with pytest.raises(ConfigError, match="learning_rate is 0, which leaves the reversal"):
            config_for("clarinet", learning_rate=0)
        assert config_for("dan", learning_rate=0)
        assert config_for("gac", learning_rate=0, adaptation_weight=0)

    def test_another_methods_recipe_is_refused_under_this_name(self) -> None:
        made = config_for("clarinet-plus").flat()
        values = {name: value for name, value in made.items() if name not in OWN}

        with pytest.raises(ConfigError, match=r"the values of clarinet-plus \(digits\), not of gac"):
            config_for("gac", **values)
        with pytest.raises(ConfigError, match=r"these are the values of gac \(paper\)"):
            TrainConfig(
                method="clarinet-plus",
                preset="digits",
                setting="cc",
                seed=0,
                adaptation=Adaptation(adaptation_kind="none"),
            )
        with pytest.raises(ConfigError, match="method gac has no preset 'digits'"):
            config_for("gac").changed(preset="digits")

    def test_other_losses_from_complementary_labels_keep_the_name(self) -> None:
        for loss in ("bounded", "forward", "scarce", "inverse"):
            assert config_for("clarinet", complementary_loss=loss).losses.complementary_loss == loss


class TestConfigFor:
    def test_without_a_preset_it_takes_the_methods_first(self) -> None:
        assert config_for("clarinet").preset == "paper"
        assert config_for("clarinet-plus").preset == "digits"

    @pytest.mark.parametrize("method", sorted(METHODS.keys() - {"clarinet-plus"}))
    def test_short_changes_the_protocol_and_no_loss_of_the_paper(self, method: str) -> None:
        protocol = {"preset", "epochs", "steps_per_epoch", "learning_rate", "discriminator_learning_rate"}
        strength = {"adaptation_weight", "adaptation_start_epoch"}
        paper, short = config_for(method).flat(), config_for(method, "short").flat()

        assert {name for name in paper if paper[name] != short[name]} <= protocol | strength

    def test_overrides_win(self) -> None:
        assert config_for("clarinet-plus", "digits-quick", epochs=3).length.epochs == 3

    @pytest.mark.parametrize(
        ("method", "preset", "match"), [("gacc", None, "'gacc'"), ("clarinet", "quick", "'quick'")]
    )
    def test_an_unknown_name_is_refused_with_the_known_ones(
        self, method: str, preset: str | None, match: str
    ) -> None:
        with pytest.raises(ConfigError, match=match):
            config_for(method, preset)


class TestFields:
    def test_each_has_a_sentence_and_a_default(self) -> None:
        for group in GROUPS.values():
            for item in fields(group):
                assert item.metadata["help"].endswith("."), item.name
                assert item.default == DEFAULTS[item.name]

    @pytest.mark.parametrize("name", ["timm/tf_efficientnet_lite0", "timm/resnet18.a1_in1k", "resnet50"])
    def test_any_network_of_timm_may_be_named(self, name: str) -> None:
        config = config_for("clarinet", architecture=name, pretrained="hub")

        assert config.network.architecture == name
        assert TrainConfig.from_dict(config.to_dict()) == config

    @pytest.mark.parametrize(
        "name",
        ["timm", "timm/", "timm/../x", "timm/a b", "timm/hf-hub:x/y", "timm/a.b.c", "Resnet18", 3, None],
    )
    def test_other_names_of_networks_are_refused(self, name: object) -> None:
        with pytest.raises(ConfigError, match=r"architecture is .* one of auto, .*, or timm/NAME") as refused:
            config_for("clarinet", architecture=name)

        assert refused.value.field == "architecture"

    def test_a_download_was_called_torchvision(self) -> None:
        config = config_for("clarinet", architecture="resnet18", pretrained="torchvision")
        kept = config.to_dict() | {"network": config.to_dict()["network"] | {"pretrained": "torchvision"}}

        assert config.network.pretrained == "hub"
        assert TrainConfig.from_dict(kept) == config
        assert flattened(kept)["pretrained"] == "hub"

    @pytest.mark.parametrize(
        ("pretrained", "digest"), [("", "0" * 64), ("x.pth", "0" * 63), ("x.pth", "G" * 64), ("hub", "SHA")]
    )
    def test_a_digest_is_one_and_of_weights(self, pretrained: str, digest: str) -> None:
        with pytest.raises(ConfigError) as refused:
            config_for("clarinet", architecture="resnet18", pretrained=pretrained, pretrained_digest=digest)

        assert refused.value.field == "pretrained_digest"

    def test_bounds_and_choices_are_enforced(self) -> None:
        for name, kind, told in every_field():
            if kind in {int, float}:
                for value in (told["minimum"] - 1, told["maximum"] + 1):
                    with pytest.raises(ConfigError, match=name) as caught:
                        GROUPS[GROUP_OF[name]](**{name: value})
                    assert caught.value.field == name
            for choice in get_args(kind):
                assert getattr(GROUPS[GROUP_OF[name]](**{name: choice}), name) == choice

    def test_the_papers_preset_has_the_defaults(self) -> None:
        assert {name: config_for("clarinet").flat()[name] for name in DEFAULTS} == DEFAULTS


class TestMethods:
    def test_each_has_presets_words_and_what_it_promises(self) -> None:
        assert METHODS.keys() == DESCRIPTIONS.keys() == IDENTITIES.keys() == set(get_args(Method))
        assert set(METHODS["clarinet-plus"]) == {
            "digits",
            "digits-quick",
            "photographs",
            "photographs-quick",
            "photographs-untrained",
        }

    def test_each_has_a_title_of_its_own_and_one_sentence(self) -> None:
        assert len({title for title, _ in DESCRIPTIONS.values()}) == len(METHODS)
        for method, (_, sentence) in DESCRIPTIONS.items():
            assert sentence.endswith("."), method
            assert ". " not in sentence, method


def every_field() -> list[tuple[str, Any, Mapping[str, Any]]]:
    """Name, type and metadata of each hyper-parameter."""
    return [
        (item.name, kinds_of(group)[item.name], item.metadata)
        for group in GROUPS.values()
        for item in fields(group)
    ]
