"""The languages of the annotator's screens: their message catalogues, and which one speaks now.

Messages are written in English in templates and code; `frontend/messages/LANGUAGE.po` holds the translations.
They are compiled when they are first used, so there is no compiled file that could be missing or old.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import frontend

MESSAGES = Path(frontend.__file__).parent / "messages"
SOURCE = "en"
LANGUAGES = {SOURCE: "English", "de": "Deutsch", "es": "Español", "fr": "Français", "zh-Hans": "中文"}
# Offered for the names of classes beside any other tag: the languages of most people who are online.
CLASS_LANGUAGES: tuple[str, ...] = (
    *("ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr"),
    *("hu", "id", "it", "ja", "ko", "lt", "lv", "ms", "nb", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sr"),
    *("sv", "ta", "th", "tr", "uk", "ur", "vi", "zh-Hans", "zh-Hant"),
)
TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,4}")
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


def speak(language: str) -> None:
    """Speak one of LANGUAGES from here on, as far as the context of the caller reaches."""
    _current.set(language)


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


def day_in_words(at: date) -> str:
    """A date as the language that speaks now writes it: 2026-11-28, but 28.11.2026 and 28 nov 2026."""
    language = _current.get()
    if language == SOURCE:
        return f"{at:%Y-%m-%d}"
    return format_date(at, "medium", locale=Locale.parse(language, sep="-"))


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


def language_tag(tag: str) -> str:
    """A language tag of the usual form, or nothing.

    Raises:
        ValueError: it is another text.
    """
    if tag and not TAG.fullmatch(tag):
        raise ValueError("A language tag looks like en, pt-BR or zh-Hans")
    return tag


def same_language(one: str, other: str) -> bool:
    """Whether two tags name one language, wherever it is spoken; one that is not said is none."""
    return bool(one) and one.lower().split("-")[0] == other.lower().split("-")[0]


def language_name(tag: str) -> str:
    """What the language of a tag is called in English; the tag where nobody knows."""
    try:
        return Locale.parse(tag, sep="-").get_display_name(SOURCE) or tag
    except (ValueError, UnknownLocaleError):
        return tag
