"""The form that starts a run: generated from the library's hyper-parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from starlette.datastructures import FormData

from app.datasets.models import Dataset
from app.pages import read_form
from app.runs import configs
from app.runs.configs import ConfigField
from app.runs.models import Run
from app.runs.schemas import MOST_PROCESSES, NoteForm
from app.runs.weights import file_for
from app.runs.words import PRESETS
from app.spelling import CSRF_FIELD, no_such
from clarinet.recipes.choices import HUB, Looks
from clarinet.recipes.config import GROUP_OF, flattened
from clarinet.recipes.fitting import asked_of, preset_for
from clarinet.recipes.presets import METHODS

OWN_FIELDS = (
    "recipe",
    "loaded",
    "offered",
    "setting",
    "imported_labels",
    "uniform_only",
    "target_dataset_id",
    "seeds",
    "note",
    "processes",
    "download_weights",
    "reload",  # the button of browsers without scripts
)
SEPARATOR = "/"
MOST_DIGITS = 10  # of a seed; the service knows the exact bound
USUAL_METHOD = "clarinet-plus"
USUAL = f"{USUAL_METHOD}{SEPARATOR}default"
RECOMMENDED = (USUAL, f"{USUAL_METHOD}{SEPARATOR}quick", f"{USUAL_METHOD}{SEPARATOR}{configs.UNTRAINED}")
FITTING = {"default": "what fits the images", "quick": "what fits the images, quickly"}
PREFIX = "config."  # so that no hyper-parameter can take the name of another field


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a form asked for; `offered` is the file of trained weights that it had chosen, or ""."""

    method: str
    setting: str
    imported_labels: bool
    uniform_only: bool
    preset: str
    seeds: list[int]
    target_dataset_id: UUID
    config: dict[str, Any]
    offered: str
    note: str
    processes: int
    download_weights: bool

    def config_on(self, looks: Looks) -> dict[str, Any]:
        """The single values for a run on such images.

        A file that was only offered stays where the recipe would download weights, and not with another one,
        for which the form was not reloaded.
        """
        values = configs.preset_values(self.method, self.preset, looks)
        if values["pretrained"] == HUB or self.config.get("pretrained") != self.offered:
            return self.config
        return {name: value for name, value in self.config.items() if name != "pretrained"}


@dataclass(frozen=True, slots=True)
class FieldInput:
    """One hyper-parameter with what its input shows, and what the preset says, in words."""

    field: ConfigField
    text: str
    preset: str

    @property
    def name(self) -> str:
        """Of the input."""
        return PREFIX + self.field.name

    @property
    def options(self) -> list[tuple[str, str]]:
        """Value and words of each choice; empty where something is typed."""
        choices = (True, False) if self.field.kind == "boolean" else self.field.choices
        return [(configs.written(choice), configs.shown(choice)) for choice in choices]


@dataclass(frozen=True, slots=True)
class InputGroup:
    """Inputs that belong together, under a title and a sentence."""

    title: str
    sentence: str
    inputs: list[FieldInput]


def settings() -> list[tuple[str, str]]:
    """Value and words of each setting."""
    words = {
        "cc": "CC: only what images are not",
        "pc": "PC: also what images are, where somebody said yes",
    }
    return [(setting, words.get(setting, setting)) for setting in configs.settings()]


def recipe_groups() -> list[tuple[str, list[tuple[str, str]]]]:
    """Groups of recipes under their titles: what we recommend, then each method with all of its presets."""
    titles = {method: title for method, (title, _) in configs.methods().items()}

    def option(recipe: str) -> tuple[str, str]:
        method, _, preset = recipe.partition(SEPARATOR)
        return recipe, f"{titles[method]}, {FITTING.get(preset) or PRESETS.get(preset, preset)}"

    rest = {
        titles[method]: [f"{method}{SEPARATOR}{preset}" for preset in (*asked_of(method), *table)]
        for method, table in METHODS.items()
    }
    return [("Recommended", list(map(option, RECOMMENDED)))] + [
        (title, [option(recipe) for recipe in known if recipe not in RECOMMENDED])
        for title, known in rest.items()
    ]


def known_recipe(value: str | None) -> str:
    """The recipe of that value, or CLARINET plus with what fits the images when there is none."""
    known = {recipe for _, group in recipe_groups() for recipe, _ in group}
    return value if value in known else USUAL


def resolved(recipe: str, looks: Looks) -> str:
    """A known recipe by the name of a preset, that which fits the images where it means that."""
    method, _, preset = recipe.partition(SEPARATOR)
    return f"{method}{SEPARATOR}{preset_for(method, preset, looks)}"


def trained(
    recipe: str, looks: Looks, datasets: Sequence[Dataset], *, weights: Sequence[str] = ()
) -> configs.Recipe | None:
    """What the form offers to train on a source and, if there is one, a target.

    Args:
        recipe: a known one, by the name of a preset.
        looks: of the images.
        datasets: the source and, if there is one, the target.
        weights: files of trained weights that may be chosen.
    """
    source, target = datasets[0], datasets[-1]
    return configs.recipe_of(_offered(recipe, weights), looks, (source.in_colour, target.in_colour))


def input_groups(recipe: str, typed: Mapping[str, Any], *, weights: Sequence[str] = ()) -> list[InputGroup]:
    """An input for each hyper-parameter: what was typed, else what is offered, mostly the recipe's value.

    Args:
        recipe: a known one, by the name of a preset.
        typed: texts by input name.
        weights: files of trained weights that may be chosen.
    """
    preset, offered = _defaults(recipe), _offered(recipe, weights)

    def input_of(field: ConfigField) -> FieldInput:
        text = str(typed.get(PREFIX + field.name, configs.written(offered[field.name])))
        return FieldInput(field, text, configs.shown(preset[field.name]))

    return [
        InputGroup(group.title, group.sentence, [input_of(field) for field in group.fields])
        for group in configs.form_groups(tuple(weights))
    ]


def offered_weights(recipe: str, weights: Sequence[str]) -> str:
    """The file that the form offers in the place of a recipe's download; "" where it offers none."""
    values = _defaults(recipe)
    return file_for(values["architecture"], weights) or "" if values["pretrained"] == HUB else ""


def architecture_of(recipe: str) -> str:
    """The network of a known recipe, by the name of a preset."""
    return str(_defaults(recipe)["architecture"])


def without_weights(recipe: str) -> str:
    """The recipe for photographs that needs no trained weights: by the same method where it has one."""
    method, _, _ = recipe.partition(SEPARATOR)
    return f"{method if configs.UNTRAINED in METHODS[method] else USUAL_METHOD}{SEPARATOR}{configs.UNTRAINED}"


def place_of(field: str) -> str:
    """The input beside which a refusal of the library about that field stands; "" where there is none."""
    if field in GROUP_OF:
        return PREFIX + field
    return {
        "method": "recipe",
        "preset": "recipe",
        "setting": "setting",
        "seed": "seeds",
        "processes": "processes",
        "download_weights": "download_weights",
    }.get(field, "")


def typed_like(run: Run) -> FormData:
    """The form as somebody would fill it to start a run once more, over the labels that there are now."""
    values = flattened(run.config)
    own = {
        "recipe": f"{run.method}{SEPARATOR}{run.preset}",
        "setting": run.setting,
        "target_dataset_id": str(run.target_dataset_id),
        "seeds": ", ".join(str(trial.seed) for trial in run.trials),
        "processes": str(run.processes),
        "imported_labels": "true" if run.snapshot_facts.get("imported") else "",
        "uniform_only": "true" if run.snapshot_facts.get("left_out") else "",
    }
    names = [field.name for field in configs.form_fields() if field.name in values]
    return FormData(own | {PREFIX + name: configs.written(values[name]) for name in names})


def fields() -> list[str]:
    """What the form's inputs are called."""
    return [*OWN_FIELDS, *(PREFIX + field.name for field in configs.form_fields())]


def read_run_form(form: FormData) -> tuple[RunRequest | None, dict[str, str]]:
    """What the form asks for, or messages by field.

    The form was filled with the values of the recipe in `loaded`; only what differs from them replaces values
    of the recipe that was chosen. So another recipe brings its values, whether the form was reloaded or not.
    """
    known = fields()
    errors = {name: no_such(name, known) for name in form if name not in {*known, CSRF_FIELD}}
    recipe = known_recipe(_text(form, "recipe"))
    method, _, preset = recipe.partition(SEPARATOR)
    loaded = _defaults(known_recipe(_text(form, "loaded")))
    overrides: dict[str, Any] = {}
    for field in configs.form_fields():
        typed = _text(form, PREFIX + field.name)
        is_chosen = typed or (PREFIX + field.name in form and typed in field.choices)
        if not is_chosen or typed == configs.written(loaded[field.name]):
            continue
        overrides[field.name] = field.parse(typed)
        if refused := configs.refusal_of(field.name, overrides[field.name]):
            errors[PREFIX + field.name] = refused
    seeds = _seeds(_text(form, "seeds"), errors)
    target = _target(_text(form, "target_dataset_id"), errors)
    processes = _processes(_text(form, "processes"), errors)
    setting = _text(form, "setting") or configs.settings()[0]
    noted, faults = read_form(FormData({"note": _text(form, "note")}), NoteForm)
    errors |= faults
    if errors or target is None or noted is None:
        return None, errors
    return (
        RunRequest(
            method=method,
            setting=setting,
            imported_labels=_text(form, "imported_labels") == "true",
            uniform_only=_text(form, "uniform_only") == "true",
            preset=preset,
            seeds=seeds,
            target_dataset_id=target,
            config=overrides,
            offered=_text(form, "offered"),
            note=noted.note,
            processes=processes,
            download_weights=_text(form, "download_weights") == "true",
        ),
        {},
    )


def _defaults(recipe: str) -> Mapping[str, Any]:
    """The values of a recipe; of one that means what fits, those for digits."""
    method, _, preset = recipe.partition(SEPARATOR)
    return configs.preset_values(method, preset, "digits")


def _offered(recipe: str, weights: Sequence[str]) -> Mapping[str, Any]:
    """The values of a recipe, with a file of trained weights that is here in the place of a download."""
    found = offered_weights(recipe, weights)
    return {**_defaults(recipe), "pretrained": found} if found else _defaults(recipe)


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value.strip() if isinstance(value, str) else ""


def _seeds(text: str, errors: dict[str, str]) -> list[int]:
    words = text.replace(",", " ").split()
    if not words or not all(word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS for word in words):
        errors["seeds"] = "Please give whole numbers, for example 0, 1, 2."
        return []
    return [int(word) for word in words]


def _processes(text: str, errors: dict[str, str]) -> int:
    """How many; one where nobody says it."""
    if not text:
        return 1
    is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    if not is_number or not 1 <= int(text) <= MOST_PROCESSES:
        errors["processes"] = f"Please give a whole number from 1 to {MOST_PROCESSES}."
        return 1
    return int(text)


def _target(text: str, errors: dict[str, str]) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        errors["target_dataset_id"] = "Please choose a dataset."
        return None
