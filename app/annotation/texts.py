"""What the scripts of the annotation screen say. Names in braces are filled in by the browser."""

import re

from app.languages import current_language, ngettext, same_language
from app.languages import gettext as _

# The first letter of "yes", where it is another than in English.
YES_KEYS = {"de": "j", "es": "s", "fr": "o"}

# As in static/js/card.js: "an owl", but "a unicorn", "a one-way sign".
_SOUNDS_LIKE_A_VOWEL = re.compile(
    r"^(?!one\b|once\b|uni(?!n|m|de)|us[aeu]|ut[ei]|uk[ru]|ufo|eu|ew)[aeiou]", re.IGNORECASE
)


def yes_key() -> str:
    """The key that says yes until somebody chooses another, in the language that speaks now."""
    return YES_KEYS.get(current_language(), "y")


def screen_texts(class_language: str) -> dict[str, str | list[str]]:
    """Messages by name in the language that speaks now; two forms, for one and more, of what is counted.

    `class_language`: of the names that the questions are about; empty where nobody said it.
    """
    return question_texts(class_language) | {
        "yes": _("yes"),
        "no": _("no"),
        "unsure": _("can't tell"),
        "unusable": _("cannot be used"),
        "own": _("{yes} yes, {no} no, {unsure} can't tell, {unusable} cannot be used."),
        "own_pace": _("{seconds} s an answer."),
        "own_agreement": _(
            "Others answered {judged} of your first {count} questions, too; {percent} % of their answers say "
            "the same."
        ),
        "practice": _several("{count} picture to practise", "{count} pictures to practise"),
        "practice_card": _("Practice, {number} of {all}"),
        "practice_detail": _("After each you are told what is right. They do not count."),
        "practice_right": _("That is right."),
        "practice_wrong": _("Not quite."),
        "practice_unsure": _("That is an answer, too."),
        "practice_shows": _("This picture shows: {name}."),
        "progress": _("{done} of ~{all}"),
        "all": _("{done} of {all}"),
        "minutes": _several("~{count} min", "~{count} min"),
        "hours": _several("~{count} h", "~{count} h"),
        "questions": _several("{count} question", "{count} questions"),
        "kept": _several(
            "{count} answer waits for the network, kept on this device.",
            "{count} answers wait for the network, kept on this device.",
        ),
        "kept_here": _several(
            "{count} answer waits for the network, in this page only; do not close it.",
            "{count} answers wait for the network, in this page only; do not close it.",
        ),
        "sent": _("Everything is sent."),
        "refused": _several("{count} answer did not count.", "{count} answers did not count."),
        "undone": _("Undone: you had said “{answer}”."),
        "page_undone": _("The last page is back."),
        "undo_offline": _("Undo needs the network. Nothing was changed."),
        "which_offline": _(
            "The classes could not be loaded, so this no was not taken. Answer again, or reload."
        ),
        "stopped": _("This campaign takes no answers now"),
        "tile": _("Picture {number}: {answer}"),
        "submit_none": _("None of these"),
        "submit": _several("Send, {count} marked", "Send, {count} marked"),
        "press_key": _("Press a key"),
    }


def question_texts(class_language: str) -> dict[str, str | list[str]]:
    """The questions. A name of another language, or of one that nobody said, gets no article of ours."""
    if not same_language(class_language, current_language()):
        asked = _("Is this: {name}?")
        return {"ask_a": asked, "ask_an": asked, "mark": _("Tap each one that is: {name}")}
    return {
        # "a cat", "an owl"; languages without this difference use one sentence twice.
        "ask_a": _("Is this a {name}?"),
        "ask_an": _("Is this an {name}?"),
        "mark": _("Tap every {name}"),
    }


def english_question(name: str, class_language: str) -> str:
    """What people are asked about a class, on pages that are English alone."""
    if not same_language(class_language, "en"):
        return f"Is this: {name}?"
    return f"Is this {'an' if _SOUNDS_LIKE_A_VOWEL.match(name) else 'a'} {name}?"


def answer_words() -> dict[str, str]:
    """What each answer is called."""
    return {"yes": _("yes"), "no": _("no"), "unsure": _("can't tell"), "unusable": _("cannot be used")}


def _several(one: str, many: str) -> list[str]:
    return [ngettext(one, many, 1), ngettext(one, many, 2)]
