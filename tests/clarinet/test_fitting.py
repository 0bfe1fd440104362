"""Which recipe fits which images, and how that is said."""

from typing import Any

import pytest

from clarinet.recipes.choices import BACKBONES, Architecture, Looks
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.fitting import (
    ASKED,
    TITLES,
    architecture_for,
    is_for,
    misfit,
    preset_for,
    sentence_of,
)
from clarinet.recipes.methods import config_for
from clarinet.recipes.presets import METHODS
from tests.clarinet.test_config import every_preset


class TestFitting:
    """Which preset is meant, and the words for it."""

    @pytest.mark.parametrize(
        ("method", "asked", "looks", "preset"),
        [
            ("clarinet-plus", None, "digits", "digits"),
            ("clarinet-plus", None, "photographs", "photographs"),
            ("clarinet-plus", "default", "photographs", "photographs"),
            ("clarinet-plus", "quick", "digits", "digits-quick"),
            ("clarinet-plus", "quick", "photographs", "photographs-quick"),
            ("clarinet-plus", "digits", "photographs", "digits"),
            ("clarinet-plus", "photographs", "digits", "photographs"),
            ("clarinet", None, "digits", "paper"),
            ("clarinet", None, "photographs", "photographs"),
            ("clarinet", "default", "photographs", "photographs"),
            ("clarinet", "digits", "photographs", "paper"),
            ("clarinet", "short", "photographs", "short"),
            ("mcc", "digits", "photographs", "digits"),
            ("gac+dan", None, "photographs", "photographs"),
        ],
    )
    def test_the_images_choose_where_nothing_else_was_asked_for(
        self, method: str, asked: str | None, looks: Looks, preset: str
    ) -> None:
        assert preset_for(method, asked, looks) == preset
        assert config_for(method, asked, looks=looks).preset == preset

    @pytest.mark.parametrize(
        ("asked", "named"), [("default", "digits or photographs"), ("quick", "digits-quick")]
    )
    def test_what_fits_images_that_nobody_looked_at_is_not_known(self, asked: str, named: str) -> None:
        with pytest.raises(
            ConfigError, match=f"preset {asked} of clarinet-plus means .* take {named}"
        ) as caught:
            config_for("clarinet-plus", asked)

        assert caught.value.field == "preset"

    def test_no_preset_is_called_by_a_name_that_means_what_fits(self) -> None:
        """It would be taken for itself, and train digits on photographs."""
        for presets in METHODS.values():
            assert not set(presets) & set(ASKED)

    @every_preset
    def test_each_preset_is_for_the_images_in_its_name(self, method: str, preset: str) -> None:
        config = config_for(method, preset)
        looks: Looks = "photographs" if preset.startswith("photographs") else "digits"

        assert is_for(config) == config.distortion.distortion_kind == looks
        assert misfit(config, looks) == ""
        assert sentence_of(config).startswith(f"{looks}: ")

    @pytest.mark.parametrize(
        ("changes", "architecture", "sentence"),
        [
            ({}, None, "digits: LeNet or the network of DANN at 28 pixels"),
            ({}, "lenet", "digits: LeNet at 28 pixels"),
            ({}, "dann", "digits: the network of DANN at 28 pixels"),
            ({"architecture": "dtn", "image_size": 32}, None, "digits: DTN at 32 pixels"),
            (
                {"architecture": "conv-large", "image_size": 32},
                None,
                "photographs: the network of mean teacher at 32 pixels",
            ),
            (
                {"architecture": "efficientnet_b0", "image_size": 128, "pretrained": "torchvision"},
                None,
                "photographs: EfficientNet at 128 pixels, trained weights of ImageNet",
            ),
            (
                {"architecture": "resnet50", "image_size": 64, "pretrained": "weights.pth"},
                None,
                "photographs: ResNet-50 at 64 pixels, trained weights from a file",
            ),
            (
                {"architecture": "resnet18", "image_size": 64},
                None,
                "photographs: ResNet-18 at 64 pixels, untrained weights",
            ),
            (
                {"architecture": "timm/resnet18", "image_size": 64, "pretrained": "hub"},
                None,
                "photographs: timm/resnet18 at 64 pixels, trained weights from the hub",
            ),
        ],
    )
    def test_the_choice_is_one_sentence(
        self, changes: dict[str, Any], architecture: Architecture | None, sentence: str
    ) -> None:
        assert sentence_of(config_for("clarinet", **changes), architecture) == sentence

    def test_every_network_has_a_name(self) -> None:
        assert set(TITLES) >= BACKBONES | {"lenet", "dann", "dtn", "conv-large"}

    @pytest.mark.parametrize(
        ("source", "target", "ink", "network"),
        [
            (False, False, True, "lenet"),
            (False, True, True, "dann"),
            (True, True, True, "dann"),
            (True, False, True, "lenet"),
            (True, False, False, "dann"),
        ],
    )
    def test_the_network_for_digits_follows_from_their_colours(
        self, *, source: bool, target: bool, ink: bool, network: str
    ) -> None:
        config = config_for("clarinet-plus", ink_of_colours=ink)

        assert architecture_for(config, source_in_colour=source, target_in_colour=target) == network

    def test_a_recipe_for_other_images_is_told_with_one_that_fits(self) -> None:
        told = misfit(config_for("gac", "short"), "photographs")

        assert told == (
            "the images look like photographs, but preset short is made for digits; preset photographs is "
            "made for photographs"
        )
        assert misfit(config_for("gac", "short", architecture="resnet18"), "photographs") == ""
        assert misfit(config_for("clarinet-plus", "digits", architecture="resnet18"), "digits") == (
            "the images look like digits, but resnet18 is a network for photographs"
        )
        assert misfit(config_for("clarinet-plus", "photographs"), "digits").endswith(
            "preset digits is made for digits"
        )
