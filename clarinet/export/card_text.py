"""Model cards as Markdown, for people, behind a header for programs, as Hugging Face reads it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from clarinet.export.cards import card_digest
from clarinet.files.arrays import RGB
from clarinet.recipes.config import flattened
from clarinet.recipes.counting import many
from clarinet.recipes.scoring import ScoredOn
from clarinet.recipes.source_accuracy import SourceEstimate, in_words, upgraded_figures


def card_markdown(card: Mapping[str, Any]) -> str:
    """The card of `model_card` as a page of Markdown, with the header that Hugging Face reads.

    A licence is not known, and so left out.
    """
    name = f"{card['method']} ({card['preset']}, {str(card['setting']).upper()}, seed {card['seed']})"
    parts = [
        _header(card),
        f"# Model card: {name}",
        _what(card),
        "## How well it does",
        _accuracy(card),
        _by_class(card),
        "## What it learnt from",
        _learnt_from(card),
        _origin(card),
        "## What it keeps of the paper",
        _paper(card),
        "## How to get it again",
        _again(card),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(card: Mapping[str, Any]) -> str:
    """YAML between lines of dashes. Each value is written as JSON, which YAML holds."""
    datasets = _dataset_names(card)
    parts: dict[str, Any] = {
        "library_name": "clarinet",
        "pipeline_tag": "image-classification",
        "tags": ["clarinet", "domain-adaptation", "complementary-labels", card["method"], card["setting"]],
        "datasets": list(dict.fromkeys(datasets.values())),
        "metrics": ["accuracy"],
        "model-index": _index(card, datasets.get("target", "target")),
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in parts.items() if value]
    return "\n".join(["---", *lines, "---"])


def _index(card: Mapping[str, Any], target: str) -> list[dict[str, Any]]:
    """What was measured, as Hugging Face lists results; nothing where nothing was."""
    accuracy, scored = card["metrics"]["target_accuracy"], _scored_on(card)
    if accuracy is None:
        return []
    task, metric = "image-classification", {"type": "accuracy", "value": round(accuracy, 6)}
    data = {"name": target, "type": target} | ({"split": scored.split} if scored else {})
    name = f"{card['method']}-{card['preset']}-{card['setting']}-seed{card['seed']}"
    return [{"name": name, "results": [{"task": {"type": task}, "dataset": data, "metrics": [metric]}]}]


def _dataset_names(card: Mapping[str, Any]) -> dict[str, str]:
    """What source and target are called, where somebody has told; a card of before has no origin."""
    named = (card.get("origin") or {}).get("datasets", {})
    return {domain: item["name"] for domain, item in named.items()}


def _origin(card: Mapping[str, Any]) -> str:
    """What whoever keeps the data calls it, by the digests that stand on their pages, too."""
    origin = card.get("origin")
    if not origin:
        return ""
    rows = [
        (f"{_words(domain)} dataset", f"{_plain(item['name'])}, version {item['version']}", item["digest"])
        for domain, item in origin.get("datasets", {}).items()
    ]
    rows += [("Labels", "frozen", origin["labels"])] if "labels" in origin else []
    known = [(name, origin[name]) for name in ("campaign", "run") if name in origin]
    told = "; ".join(f"{name} {_plain(str(value))}" for name, value in known)
    table = _table(("From", "Which", "SHA-256"), [(*row[:2], f"`{row[2]}`") for row in rows]) if rows else ""
    return "\n\n".join(part for part in ("## Where it comes from", table, _sentence(told)) if part)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _what(card: Mapping[str, Any]) -> str:
    network = card["network"]
    kind = "colour" if network["channels"] > 1 else "grey"
    return (
        f"Tells {len(card['classes'])} classes apart: {', '.join(map(_plain, card['classes']))}. "
        f"Network: {network['architecture']}, {kind} images of {network['image_size']} x "
        f"{network['image_size']} pixels; other sizes are resized. {_onnx(card)}{_recipe(card)}"
        f"{_ink(network)}It was made "
        "for images like those of its target domain; on others its accuracy is unknown."
    )


def _onnx(card: Mapping[str, Any]) -> str:
    """What the ONNX file beside this card takes; a card of before has no digest, and files of one size."""
    if "tensors_digest" not in card:
        return ""
    shape = card["data"]["target"]["shape"] if card["data"] else [None] * card["network"]["channels"]
    planes = RGB if len(shape) == RGB else 1
    return f"`model.onnx` takes bytes (N, H, W, {planes}), any N, H and W. "


def _recipe(card: Mapping[str, Any]) -> str:
    """A sentence, or nothing; cards from before there was a choice lack the field."""
    recipe = card.get("recipe")
    return f"Recipe: {recipe}. " if recipe else ""


def _ink(network: Mapping[str, Any]) -> str:
    """A sentence, or nothing; cards from before there was ink lack the field."""
    tones = {"ink": "light on dark", "dark-ink": "dark on light"}.get(network.get("greying", ""))
    if tones is None:
        return ""
    return f"Images in colour are seen {tones}, each pixel by its distance from the colour of its ground. "


def _accuracy(card: Mapping[str, Any]) -> str:
    metrics = card["metrics"]
    known = metrics["target_accuracy"]
    scored = _scored_on(card)
    told = (
        "not measured: no image of the target has one of these classes" if known is None else _percent(known)
    )
    on = ""
    if known is not None and scored is not None:
        on = f" with its 95 % interval, on {scored.in_words()}"
        told += f" ({scored.interval_in_words(known)})"
    rows = [("Accuracy on the target" + on, told)]
    criteria = upgraded_figures(
        metrics["without_target_labels"], num_classes=len(card["classes"]), config=flattened(card["config"])
    )
    estimate = criteria.pop("source_estimate", None)
    if estimate is not None:
        told = in_words(SourceEstimate.from_dict(estimate))
        rows.append(("Accuracy on the source, estimated from held-out answers, with its 95 % interval", told))
    rows += [(_words(name), _value(value)) for name, value in criteria.items() if value is not None]
    return _table(("Measure", "Value"), rows) + "\n\nOnly the first line has seen labels of the target."


def _scored_on(card: Mapping[str, Any]) -> ScoredOn | None:
    """The images that scored; cards from before there was a choice tell of test images alone, if they do."""
    told = card["metrics"].get("scored_on")
    if told is not None:
        return ScoredOn.from_dict(told)
    test = (card["data"] or {}).get("target_test")
    return ScoredOn(split="test", images=test["images"], of=test["images"]) if test else None


def _by_class(card: Mapping[str, Any]) -> str:
    accuracy, labels = card["metrics"]["per_class_accuracy"], card["labels"]
    columns: list[tuple[str, list[str]]] = []
    if accuracy is not None:
        columns.append(("Accuracy", ["-" if share is None else _percent(share) for share in accuracy]))
    if labels is not None:
        for kind in _used(card):
            columns.append((f"{_words(kind)} labels", [f"{count:,}" for count in labels[kind]]))
    if not columns:
        return ""
    rows = zip(map(_plain, card["classes"]), *(values for _, values in columns), strict=True)
    return _table(("Class", *(title for title, _ in columns)), rows)


def _used(card: Mapping[str, Any]) -> list[str]:
    """The kinds of labels that the method learns from; the data may have others."""
    complementary = ["complementary"] if flattened(card["config"])["complementary_loss"] != "none" else []
    return complementary + (["true"] if card["setting"] == "pc" else [])


def _learnt_from(card: Mapping[str, Any]) -> str:
    learnt, began = _learnt(card), card.get("pretrained")  # cards before the key existed have none
    if began is None:
        return learnt
    told = f"Its network began with trained weights, the file {_plain(began['name'])}: `{began['digest']}`."
    return f"{learnt}\n\n{told}"


def _learnt(card: Mapping[str, Any]) -> str:
    data, labels = card["data"], card["labels"]
    if data is None or labels is None:
        return "Not recorded."
    rows = []
    for domain in ("source", "target", "target_test"):
        facts = data[domain]
        if facts is not None:
            shape = " x ".join(map(str, facts["shape"]))
            made = facts.get("made")  # cards before the key existed have none
            name = f"{_words(domain)} ({_plain(made)})" if made else _words(domain)
            rows.append((name, f"{facts['images']:,} of {shape}", f"`{facts['digest']}`"))
    given = " and ".join(many(sum(labels[kind]), f"{kind} label") for kind in _used(card))
    drawn = labels["simulated"]
    told = ", ".join(f"{_words(name).lower()} {_value(value)}" for name, value in (drawn or {}).items())
    origin = f"They were simulated: {told}." if drawn else "The card knows of no simulation."
    held_out = labels["held_out"]
    share = _percent(flattened(card["config"])["held_out_share"])
    kept = f"{held_out:,} of them" if held_out is not None else f"{share} of the complementary ones"
    weights = "weighted" if labels["weighted"] else "of equal weight"
    alpha = labels.get("alpha")  # cards before the key existed have none
    weighed = f" True labels together weighed alpha = {alpha:.3f}, the others the rest." if alpha else ""
    sentence = (
        f"{given}, {weights}.{weighed} {origin} {kept} only estimated the accuracy. "
        f"Labels: `{labels['digest']}`."
    )
    return _table(("Images", "How many", "Digest"), rows) + "\n\n" + sentence


def _paper(card: Mapping[str, Any]) -> str:
    kept = [f"* {'yes' if has else 'no'}: {part}" for part, has in card["of_the_paper"].items()]
    different = [
        (f"`{name}`", _value(item["value"]), _value(item["paper"]), item["meaning"])
        for name, item in card["departures"].items()
    ]
    table = _table(("Hyper-parameter", "Here", "Paper's preset", "Meaning"), different) if different else ""
    told = f"{'Every other' if different else 'Every'} hyper-parameter is as in the preset `paper`."
    return "\n".join(kept) + "\n\n" + (table + "\n\n" if table else "") + told


def _again(card: Mapping[str, Any]) -> str:
    training = card["training"]
    used = ", ".join(f"{name} {number}" for name, number in card["versions"].items())
    digest = f" Data: `{card['data']['digest']}`." if card["data"] else ""
    weights = card.get("tensors_digest")  # cards before the key existed have none
    equal = (
        f" Weights: `{weights}`, SHA-256 over the tensors: equal weights have equal digests."
        if weights
        else ""
    )
    return (
        f"Seed {card['seed']}, {many(training['epochs'], 'epoch')}, {many(training['steps'], 'step')}, "
        f"{training['seconds']:,.0f} s of training in {training['computed_in']}; {used}.{digest} "
        f"The whole configuration stands in the header of the weights.{equal}\n\nCard: `{card_digest(card)}`."
    )


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(titles)
    lines = [head, ["---"] * len(head), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _plain(text: str) -> str:
    """A name that ends no cell and starts no markup, HTML's included."""
    for mark in "\\|`*_[]<>#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _value(value: object) -> str:
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
