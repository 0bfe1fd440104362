"""Configurations, checkpoints, models and records of the version before groups, read by this one."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from clarinet import CheckpointMismatch, ConfigError, Interrupted, TrainConfig, TrainData, config_for, train
from clarinet.export.card_text import card_markdown
from clarinet.export.cards import model_card
from clarinet.export.models import load_card, load_model, save_model
from clarinet.recipes.config import flattened
from clarinet.recipes.upgrade import (
    CONSTANT,
    GRADIENTS,
    PRESETS,
    RENAMED,
    STRENGTHS,
    UNTOLD,
    upgraded_preset,
)
from clarinet.reproduction.grouping import grouped
from clarinet.reproduction.report import markdown
from clarinet.reproduction.results import stem_of, upgraded
from clarinet.run.tensor_files import read_tensors, write_tensors
from tests.clarinet.factories import equal_weights, make_config, make_data, make_record

# What the last version before groups wrote: the values of `clarinet`, and what other presets have in them.
WRITTEN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "earlier_presets.json").read_text(encoding="utf-8")
)

# What that version had no name for.
NEW = {
    "pretrained_digest",
    "kept_features",
    "bottleneck",
    "fine_tuning_turns",
    "fine_tuning_steps",
    "fine_tuning_size",
}


def earlier(method: str, preset: str, **changes: Any) -> dict[str, Any]:
    """The configuration of a preset as that version wrote it."""
    return WRITTEN["clarinet/paper"] | WRITTEN[f"{method}/{preset}"] | changes


def as_earlier(config: TrainConfig) -> dict[str, Any]:
    """A configuration as that version would have written it."""
    values = {name: value for name, value in config.flat().items() if name not in {*UNTOLD, *NEW}}
    kind, weight = values.pop("adaptation_kind"), values.pop("adaptation_weight")
    names = {today: name for name, today in RENAMED.items() if name not in {*STRENGTHS, "entropy_gradient"}}
    renamed = {names.get(name, name): value for name, value in values.items()}
    weights = {name: weight if kind == of else 0.0 for name, of in STRENGTHS.items()}
    by_today = {today: name for name, today in GRADIENTS.items()}
    gradient = {"entropy_gradient": by_today.get(config.adaptation.adversarial_gradient, "none")}
    called = {(method, now): then for (method, then), now in PRESETS.items()}
    preset = called.get((config.method, config.preset), config.preset)
    return renamed | weights | gradient | dict(CONSTANT) | {"preset": preset}


# What the presets of that version did, in words that came later: with these they are those of today.
CLARINET: dict[str, Any] = {"adversarial_gradient": "features"}
DAN: dict[str, Any] = {"drop_last": False}
DANN = DAN | {"discriminator_weights": "uniform"}
CDAN_E = DANN | {"entropy_epsilon": 0.0, "entropy_schedule_lead": 0}
BEFORE: dict[str, dict[str, Any]] = {
    f"{method}/{preset}": changes
    for method, changes in {
        "clarinet": CLARINET,
        "clarinet-ce": CLARINET,
        "clarinet-unsharpened": CLARINET,
        "dan": DAN,
        "gac+dan": DAN,
        "dann": DANN,
        "gac+dann": DANN,
        "cdan_e": CDAN_E,
        "gac+cdan_e": CDAN_E,
    }.items()
    for preset in ("paper", "short")
} | {"clarinet/published": CDAN_E | {"second_decay": False}, "gac/published": DAN}


def as_then(method: str, preset: str) -> TrainConfig:
    """The configuration of a preset as it was before."""
    return config_for(method, upgraded_preset(method, preset), **BEFORE.get(f"{method}/{preset}", {}))


@pytest.mark.parametrize(("method", "preset"), [tuple(name.split("/")) for name in WRITTEN])
class TestPresets:
    def test_each_is_todays_with_what_has_changed(self, method: str, preset: str) -> None:
        assert TrainConfig.from_dict(earlier(method, preset)) == as_then(method, preset)

    def test_each_is_written_as_this_file_says(self, method: str, preset: str) -> None:
        """So that what the tests below write is what that version wrote."""
        given = earlier(method, preset)
        if as_then(method, preset).adaptation.adversarial_gradient == "whole":
            given["entropy_gradient"] = "none"  # where it decided nothing
        assert as_earlier(as_then(method, preset)) == given


@pytest.mark.parametrize(
    ("method", "changes", "terms"),
    [
        ("clarinet", {"setting": "pc"}, "mean"),
        ("clarinet", {"setting": "cc"}, "sum"),
        ("clarinet-unconditioned", {"setting": "pc"}, "mean"),
        ("clarinet-plus", {"setting": "pc"}, "sum"),
        ("cdan_e", {"setting": "pc"}, "sum"),
        ("gac+cdan_e", {"setting": "pc"}, "sum"),
    ],
)
def test_two_source_terms_were_averaged_where_there_were_two(
    method: str, changes: dict[str, Any], terms: str
) -> None:
    preset = next(name.partition("/")[2] for name in WRITTEN if name.startswith(f"{method}/"))

    config = TrainConfig.from_dict(earlier(method, preset, **changes))

    assert config.adaptation.source_terms == terms


class TestPresetsOfDigits:
    """Until there were presets for photographs, those for digits had names that said nothing of images."""

    @pytest.mark.parametrize(
        ("method", "then", "now"),
        [
            ("clarinet-plus", "default", "digits"),
            ("clarinet-plus", "quick", "digits-quick"),
            ("mcc", "default", "digits"),
            ("gac+mcc", "default", "digits"),
        ],
    )
    def test_a_configuration_of_0_1_0_is_that_of_digits(self, method: str, then: str, now: str) -> None:
        """In groups, as checkpoints, cards and rows of that version have it, and flat, as its records."""
        config = config_for(method, now, setting="pc", seed=7)

        for written in (config.to_dict(), config.flat()):
            assert TrainConfig.from_dict(written | {"preset": then}) == config

    def test_names_that_other_methods_had_too_stay(self) -> None:
        assert upgraded_preset("clarinet", "paper") == "paper"
        assert upgraded_preset("gac", "default") == "default"

    def test_a_record_has_the_name_and_the_place_of_todays(self) -> None:
        now, then = make_record(0.9), make_record(0.9)
        then["trial"]["preset"] = then["config"]["preset"] = "default"

        assert now["trial"]["preset"] == "digits"
        assert upgraded(then) == upgraded(now)
        assert stem_of(upgraded(then)) == stem_of(upgraded(now))


class TestValuesWithoutAPlace:
    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"rotation": 20.0}, r"rotation cannot be chosen; it is always 10\.0"),
            ({"discrepancy_weight": 1.0}, "trade_off is called adaptation_weight now"),
            ({"trade_off": 0.0}, "adaptation_kind is none, but clarinet has adversary"),
            ({"entropy_gradient": ["none"]}, r"adversarial_gradient is \['none'\], but must be one of"),
        ],
    )
    def test_they_are_kept_for_the_reader_and_not_trained(self, changes: dict[str, Any], match: str) -> None:
        values = earlier("clarinet", "paper", **changes)

        if not changes.keys() & {"trade_off", "entropy_gradient"}:
            assert flattened(values).items() >= changes.items()
        with pytest.raises(ConfigError, match=match):
            TrainConfig.from_dict(values)


def stopping_after(steps: int) -> Callable[[], bool]:
    asked = count()
    return lambda: next(asked) >= steps


def write_earlier_checkpoint(path: Path, config: TrainConfig, data: TrainData, **changes: Any) -> None:
    """Of a run that was stopped in its third epoch, with the configuration under its earlier names."""
    with pytest.raises(Interrupted):
        train(config, data, checkpoint=path, should_stop=stopping_after(10))
    tensors, header = read_tensors(path, kind="checkpoint")
    write_tensors(path, tensors, header | {"config": as_earlier(config) | changes}, kind="checkpoint")


@pytest.mark.long
class TestCheckpoints:
    def test_an_earlier_one_is_not_continued_by_what_its_preset_has_become(self, tmp_path: Path) -> None:
        data, path = make_data(), tmp_path / "checkpoint.safetensors"
        write_earlier_checkpoint(path, make_config("clarinet", **CLARINET), data)

        with pytest.raises(
            CheckpointMismatch, match="adversarial_gradient = 'features', this run has 'whole'"
        ):
            train(make_config("clarinet"), data, checkpoint=path)

    @pytest.mark.parametrize("method", ["clarinet", "clarinet-plus", "gac", "dan", "gac+cdan_e"])
    def test_an_earlier_one_goes_on_and_ends_bit_equal(self, method: str, tmp_path: Path) -> None:
        """The header alone is rewritten here: files that the earlier version wrote have megabytes."""
        epochs = 4 if method.startswith("gac+") else 3
        config = make_config(method, epochs=epochs, **BEFORE.get(f"{method}/paper", {}))
        data = make_data(true_rows=40)
        path = tmp_path / "checkpoint.safetensors"
        write_earlier_checkpoint(path, config, data)
        epochs_left: list[int] = []

        resumed = train(
            config, data, checkpoint=path, on_epoch=lambda report: epochs_left.append(report.epoch)
        )

        assert epochs_left == list(range(3, epochs + 1))
        assert equal_weights(resumed.model, train(config, data).model)

    def test_one_before_a_field_existed_has_it_off(self, tmp_path: Path) -> None:
        config, data = make_config("gac"), make_data()
        path = tmp_path / "checkpoint.safetensors"
        write_earlier_checkpoint(path, config, data)
        tensors, header = read_tensors(path, kind="checkpoint")
        for name in ("ink_of_colours", "step_share", "extra_stroke"):
            del header["config"][name]
        write_tensors(path, tensors, header, kind="checkpoint")

        assert train(config, data, checkpoint=path).steps == 12

    @pytest.mark.parametrize(
        ("changes", "named"),
        [({"trade_off": 0.5}, "adaptation_weight"), ({"rotation": 20.0}, "rotation")],
    )
    def test_one_of_other_values_is_refused(
        self, changes: dict[str, Any], named: str, tmp_path: Path
    ) -> None:
        config, data = make_config("clarinet", **CLARINET), make_data()
        path = tmp_path / "checkpoint.safetensors"
        write_earlier_checkpoint(path, config, data, **changes)

        with pytest.raises(CheckpointMismatch, match=named):
            train(config, data, checkpoint=path)


def test_a_model_file_and_its_card_are_read_under_earlier_names(tmp_path: Path) -> None:
    result = train(make_config(epochs=1), make_data())
    path = tmp_path / "model.safetensors"
    card = model_card(result, make_data())
    save_model(path, result, card=card | {"config": as_earlier(result.config)})
    tensors, header = read_tensors(path, kind="model")
    header["spec"]["batch_norm"] = header["spec"].pop("norm_per_domain")
    write_tensors(path, tensors, header, kind="model")

    assert equal_weights(load_model(path), result.model)
    assert load_model(path).spec == result.model.spec
    told = [line for line in card_markdown(card).splitlines() if "labels" in line]
    assert [line for line in card_markdown(load_card(path)).splitlines() if "labels" in line] == told


class TestRecords:
    def test_an_earlier_one_is_the_same_trial(self) -> None:
        changed = (("adaptation_weight", 0.5), ("adversarial_gradient", "features"))
        now = make_record(0.9, method="clarinet", preset="paper", changes=changed)
        then = make_record(0.9, method="clarinet", preset="paper", changes=())
        then["trial"]["changes"] = {"trade_off": 0.5}
        then["config"] = earlier("clarinet", "paper", architecture="lenet", trade_off=0.5)

        assert upgraded(then)["trial"] == now["trial"]
        assert upgraded(then)["config"] == now["config"]

    def test_one_of_before_is_not_told_as_what_its_preset_has_become(self) -> None:
        now = make_record(0.9, method="clarinet", preset="paper", changes=())
        then = make_record(0.8, method="clarinet", preset="paper", changes=())
        then["config"] = earlier("clarinet", "paper", architecture="lenet")

        text = markdown([upgraded(then), upgraded(now)])

        assert "| clarinet | paper (6 steps; 5 % of the complementary labels held out)" in text
        assert "| clarinet | paper, adversarial_gradient=features (6 steps; not the paper's)" in text
        assert "* clarinet, paper (U->M): `--set 'adversarial_gradient=\"features\"'`" in text

    @pytest.mark.parametrize("changes", [{"rotation": 20.0}, {"trade_off": 0.0}])
    def test_one_that_this_version_cannot_train_is_still_reported(self, changes: dict[str, Any]) -> None:
        record = make_record(0.9, method="clarinet", preset="paper", changes=())
        record["trial"]["changes"] = changes
        record["config"] = earlier("clarinet", "paper", architecture="lenet", **changes)

        records = [upgraded(record)]

        (group,) = grouped(records)
        assert group.config is None
        assert "| 90.00" in markdown(records)
