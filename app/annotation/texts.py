"""What the scripts of the annotation screen say. Names in braces are filled in by the browser."""

from app.languages import gettext as _
from app.languages import ngettext


def screen_texts() -> dict[str, str | list[str]]:
    """Messages by name in the language that speaks now; two forms, for one and more, of what is counted."""
    return {
        # "a cat", "an owl"; languages without this difference use one sentence twice.
        "ask_a": _("Is this a {name}?"),
        "ask_an": _("Is this an {name}?"),
        "mark": _("Tap every {name}"),
        "yes": _("yes"),
        "no": _("no"),
        "unsure": _("can't tell"),
        "unusable": _("cannot be used"),
        "own": _("{yes} yes, {no} no, {unsure} can't tell, {unusable} cannot be used."),
        "own_pace": _("{seconds} s an answer."),
        "own_agreement": _("Others said the same in {percent} % of your first {count} answers."),
        "practice": _several("{count} picture to practise", "{count} pictures to practise"),
        "practice_detail": _("After each you are told what is right. They do not count."),
        "practice_right": _("That is right."),
        "practice_wrong": _("Not quite."),
        "practice_unsure": _("That is an answer, too."),
        "practice_shows": _("This picture shows: {name}."),
        "progress": _("{done} of {all}"),
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
        "stopped": _("This campaign takes no answers now"),
        "tile": _("Picture {number}: {answer}"),
        "submit_none": _("None of these"),
        "submit": _several("Send, {count} marked", "Send, {count} marked"),
        "press_key": _("Press a key"),
    }


def answer_words() -> dict[str, str]:
    """What each answer is called."""
    return {"yes": _("yes"), "no": _("no"), "unsure": _("can't tell"), "unusable": _("cannot be used")}


def _several(one: str, many: str) -> list[str]:
    return [ngettext(one, many, 1), ngettext(one, many, 2)]
