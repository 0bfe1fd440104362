"""The languages of the annotator's screens: their message catalogues, and which one speaks now.

Messages are written in English in templates and code; `frontend/messages/LANGUAGE.po` holds the translations.
They are compiled when they are first used, so there is no compiled file that could be missing or old.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import frontend

MESSAGES = Path(frontend.__file__).parent / "messages"
SOURCE = "en"
LANGUAGES = {SOURCE: "English", "de": "Deutsch", "es": "Español", "fr": "Français", "zh-Hans": "中文"}
_current: ContextVar[str] = ContextVar("language", default=SOURCE)


@cache
def _catalogue(language: str) -> NullTranslations:
    if language == SOURCE:
        return NullTranslations()
    compiled = BytesIO()
    with (MESSAGES / f"{language}.po").open("rb") as file:
        write_mo(compiled, read_po(file))
    compiled.seek(0)
    return GNUTranslations(compiled)


def current_language() -> str:
    """The tag of the language that speaks now, as in `lang` attributes."""
    return _current.get()


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Let everything inside speak one of LANGUAGES."""
    before = _current.set(language)
    try:
        yield
    finally:
        _current.reset(before)


def gettext(message: str) -> str:
    """The message in the language that speaks now; itself where there is no translation."""
    return _catalogue(_current.get()).gettext(message)


def ngettext(one: str, many: str, count: int) -> str:
    """The form of the message that goes with this count."""
    return _catalogue(_current.get()).ngettext(one, many, count)


def translatable(message: str) -> str:
    """Mark a message that is translated where it is shown, not where it is written."""
    return message


def choose(cookie: str | None, accepted: str) -> str:
    """The language that our cookie names, else the first known one of the browser's Accept-Language."""
    if cookie in LANGUAGES:
        return cookie
    wishes = []
    for part in accepted.split(",")[:20]:
        tag, _, weight = part.partition(";q=")
        try:
            wishes.append((-float(weight or 1), tag.strip().lower()))
        except ValueError:
            continue
    known = {language.split("-")[0]: language for language in LANGUAGES}
    for _, tag in sorted(wishes, key=lambda wish: wish[0]):
        if language := known.get(tag.split("-")[0]):
            return language
    return SOURCE
