"""Model cards: what they say must be so."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard

from clarinet import TrainConfig, config_for, train
from clarinet.data.domains import prepare
from clarinet.data.fingerprint import digest_of
from clarinet.export.card_text import card_markdown
from clarinet.export.cards import card_digest, departures, model_card, paper_parts
from clarinet.export.models import load_card, save_model
from clarinet.recipes.errors import DataError
from clarinet.run.tensor_files import tensors_digest
from tests.clarinet.factories import in_memory, make_config, make_data


def tiny(setting: str = "cc") -> TrainConfig:
    return config_for(
        "clarinet-plus", setting=setting, epochs=1, steps_per_epoch=2, batch_size=16, precision="float32"
    )


def test_a_card_counts_labels_and_names_the_data_it_was_trained_on() -> None:
    data = make_data(true_rows=10)
    result = train(tiny("pc"), data)

    card = model_card(result, data, class_names=["low", "middle", "high"])

    assert (sum(card["labels"]["true"]), sum(card["labels"]["complementary"])) == (10, 86)
    assert card["data"]["source"]["digest"] == digest_of(data.source_images)
    assert card["metrics"]["target_accuracy"] == result.target_accuracy
    assert "of_the_paper" in card
    text = card_markdown(card)
    assert "low, middle, high" in text
    assert "86 complementary labels and 10 true labels" in text
    trained = len(prepare(data, tiny("pc"), torch.device("cpu")).complementary_rows)  # the rest is held out
    assert card["labels"]["alpha"] == result.alpha == pytest.approx(10 / (10 + trained / 2))
    assert f"alpha = {result.alpha:.3f}" in text
    assert train(tiny("cc"), data).alpha is None  # labels of one kind alone
    assert card["data"]["digest"] in text


@pytest.mark.parametrize(("light_ground", "tones"), [(False, "light on dark"), (True, "dark on light")])
def test_a_card_says_how_pictures_in_colour_are_seen(light_ground: bool, tones: str) -> None:
    data = make_data()
    target = in_memory(data.target_images)
    coloured = replace(
        data,
        source_images=in_memory(data.source_images)[..., None].expand(-1, -1, -1, 3),
        target_images=255 - target if light_ground else target,
    )

    grey, seen = (card_markdown(model_card(train(tiny(), given), given)) for given in (data, coloured))

    assert f"Images in colour are seen {tones}" in seen
    assert "Images in colour" not in grey


def test_a_card_begins_with_the_header_that_hugging_face_reads_and_says_where_the_model_comes_from(
    tmp_path: Path,
) -> None:
    data = make_data()
    result = train(tiny(), data)
    named = {
        "source": {"name": 'Shop: "spring"', "version": 2, "digest": "5f" * 32},
        "target": {"name": "- phones", "version": 1, "digest": "6e" * 32},
    }
    origin = {"run": 7, "campaign": "chairs|lamps", "datasets": named, "labels": "7d" * 32}
    plain, told = (model_card(result, data, origin=item) for item in (None, origin))
    (tmp_path / "README.md").write_text(card_markdown(told), encoding="utf-8")

    read = ModelCard.load(tmp_path / "README.md")
    [measured] = read.data.eval_results

    assert (read.data.datasets, read.data.metrics) == (['Shop: "spring"', "- phones"], ["accuracy"])
    assert (read.data.pipeline_tag, read.data.license) == ("image-classification", None)
    assert {"clarinet-plus", "cc"} <= set(read.data.tags)
    assert (measured.dataset_name, measured.dataset_split) == ("- phones", "test")
    assert measured.metric_value == pytest.approx(result.target_accuracy, abs=1e-6)
    for said in ("| Source dataset |", "5f" * 32, "6e" * 32, "7d" * 32, "Campaign chairs\\|lamps; run 7."):
        assert said in read.text
    without = card_markdown(plain)
    assert without.startswith("---\nlibrary_name:")
    assert "datasets:" not in without.split("---")[1]
    assert "Where it comes from" not in without
    assert f"`{tensors_digest(result.model.state_dict())}`, SHA-256 over the tensors" in without
    assert "`model.onnx` takes bytes (N, H, W, 1), any N, H and W." in without


def test_equal_weights_have_equal_digests_whatever_their_files_say(tmp_path: Path) -> None:
    data = make_data()
    result = train(tiny(), data)
    for number, names in enumerate((["a", "b", "c"], None)):
        save_model(tmp_path / f"{number}", result, card=model_card(result, data, class_names=names))
    files = [(tmp_path / f"{number}").read_bytes() for number in (0, 1)]
    weights = result.model.state_dict()
    digests = {load_card(tmp_path / f"{number}")["tensors_digest"] for number in (0, 1)}

    assert files[0] != files[1]
    assert digests == {tensors_digest(weights)}
    assert tensors_digest(dict(reversed(weights.items()))) in digests
    first = next(iter(weights))
    for other in (weights[first] + 1, weights[first].double(), weights[first].reshape(-1)):
        assert tensors_digest(weights | {first: other}) not in digests
    assert tensors_digest({f"{name}.": value for name, value in weights.items()}) not in digests


def test_a_card_names_no_labels_that_the_method_leaves_out() -> None:
    data = make_data(true_rows=20)

    text = card_markdown(model_card(train(make_config("dann", setting="pc", epochs=2), data), data))

    assert "20 true labels, of equal weight" in text
    assert "76 complementary labels" not in text
    assert "| Complementary labels" not in text


def test_another_image_is_another_digest_and_the_order_of_entries_is_not() -> None:
    data = make_data()
    other = in_memory(data.source_images).clone()
    other[0, 0, 0] ^= 1
    card = model_card(train(tiny(), data), data)

    changed = model_card(train(tiny(), data), replace(data, source_images=other))

    assert card["data"]["source"]["digest"] != changed["data"]["source"]["digest"]
    assert card_digest(dict(reversed(card.items()))) == card_digest(card)


def test_a_card_holds_the_whole_configuration() -> None:
    result = train(tiny("pc"), make_data(true_rows=10))

    card = model_card(result)

    assert TrainConfig.from_dict(card["config"]) == result.config
    assert (card["method"], card["preset"]) == (result.config.method, result.config.preset)
    assert (card["setting"], card["seed"]) == ("pc", 0)


def test_every_kind_of_label_is_in_the_labels_digest() -> None:
    data = make_data(true_rows=10, held_out=torch.arange(96) > 80)
    result = train(tiny("pc"), data)
    others = [
        replace(data, complementary=torch.where(data.complementary < 0, -1, (data.complementary + 1) % 3)),
        replace(data, true=torch.where(data.true < 0, -1, (data.true + 1) % 3)),
        replace(data, weights=data.weights * 2),
        replace(data, held_out=torch.arange(96) > 90),
        replace(data, example=torch.arange(96).flip(0)),
    ]

    digests = [model_card(result, each)["labels"]["digest"] for each in (data, *others)]

    assert model_card(result, replace(data, weights=data.weights.clone()))["labels"]["digest"] == digests[0]
    assert len(set(digests)) == 6


def test_what_departs_from_the_paper_is_listed_and_nothing_else() -> None:
    assert departures(config_for("clarinet")) == {}
    assert set(departures(config_for("clarinet", epochs=60, seed=9))) == {"epochs"}
    assert departures(config_for("clarinet", epochs=60))["epochs"]["paper"] == 500
    assert all(paper_parts(config_for("clarinet", setting="pc")).values())
    assert not any(paper_parts(config_for("clarinet-plus")).values())
    # Its prior of the loss's class makes the risk biased.
    assert list(paper_parts(config_for("clarinet", "published")).values()) == [False, True, True, False]


@pytest.mark.parametrize(
    ("method", "kept"),
    [
        ("gac", [True, False, False, False]),
        ("clarinet-unconditioned", [True, False, False, False]),
        ("clarinet-unsharpened", [True, True, False, False]),
        ("gac+dann", [True, False, False, False]),
        ("dann", [False, False, False, False]),
        ("cdan_e", [False, True, False, False]),
    ],
)
def test_the_parts_of_the_paper_that_other_methods_keep(method: str, kept: list[bool]) -> None:
    assert list(paper_parts(config_for(method)).values()) == kept


def test_names_that_would_be_markup_are_shown_as_they_are() -> None:
    data = make_data()

    text = card_markdown(model_card(train(tiny(), data), data, class_names=["a|b", "<b>", "c`"]))

    assert "a\\|b" in text
    assert "<b>" not in text.replace("\\<b\\>", "")


def test_a_wrong_number_of_names_is_refused() -> None:
    data = make_data()

    with pytest.raises(DataError, match="2 class names, but the model has 3"):
        model_card(train(tiny(), data), data, class_names=["a", "b"])


def test_an_estimate_stands_with_its_interval_whatever_version_made_the_card() -> None:
    data = make_data()
    card = model_card(train(tiny(), data), data)
    criteria = card["metrics"]["without_target_labels"]

    lacking = card_markdown(card)
    old = {name: value for name, value in criteria.items() if name != "source_estimate"}
    old |= {"source_accuracy_estimate": 0.979, "source_accuracy_error": 0.0085}
    shown = card_markdown(card | {"metrics": card["metrics"] | {"without_target_labels": old}})
    old |= {"source_accuracy_estimate": -0.499, "source_accuracy_error": 0.469}
    hidden = card_markdown(card | {"metrics": card["metrics"] | {"without_target_labels": old}})

    assert criteria["source_estimate"]["held_out"] == 5
    assert "an estimate needs 200 held-out answers; there are 5: about 3,744 more" in lacking
    assert re.search(r"with its 95 % interval \| 97\.9 % \(9\d\.\d to 9\d\.\d %\)", shown)
    assert "an estimate needs 200 held-out answers" in hidden
    assert not any(mark in shown + hidden for mark in ("+-", "-49.9", "Source accuracy"))


def test_without_data_a_card_says_so() -> None:
    data = make_data(target_test_images=None, target_test_labels=None)

    text = card_markdown(model_card(train(tiny(), data)))

    assert "Not recorded." in text
    assert "not measured: no image of the target has one of these classes" in text
