"""Every message is translated, with the same placeholders, and people get their language."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from fastapi.testclient import TestClient

from app.languages import LANGUAGES, MESSAGES, SOURCE, choose, gettext, ngettext, speaking

ROOT = Path(__file__).parent.parent
TRANSLATIONS = [language for language in LANGUAGES if language != SOURCE]
FOUND_IN = [("app/**.py", "python"), ("frontend/templates/**.html", "jinja2")]
KEYWORDS = {"_": None, "gettext": None, "translatable": None, "ngettext": (1, 2), "_several": (1, 2)}
PLACEHOLDER = re.compile(r"\{\w+\}|%\(\w+\)s")
Message = str | tuple[str, ...]


@cache
def written() -> frozenset[Message]:
    """Every message in templates and code."""
    found = extract_from_dir(
        ROOT,
        FOUND_IN,
        {"frontend/templates/**.html": {"trimmed": "true"}},
        KEYWORDS,
        directory_filter=lambda path: Path(path).name not in {".venv", "node_modules", "vendor"},
    )
    return frozenset(message for _, _, message, _, _ in found)


def catalogue(language: str) -> Catalog:
    """What is translated."""
    with (MESSAGES / f"{language}.po").open("rb") as file:
        return read_po(file)


def forms(message: str | Sequence[str] | None) -> tuple[str, ...]:
    """One sentence, or one per count."""
    return (message,) if isinstance(message, str) else tuple(message or ())


def test_there_are_catalogues_for_five_languages() -> None:
    assert set(LANGUAGES) == {"en", "de", "es", "fr", "zh-Hans"}
    assert {path.stem for path in MESSAGES.glob("*.po")} == set(TRANSLATIONS)


@pytest.mark.parametrize("language", TRANSLATIONS)
def test_every_message_is_translated_and_none_is_left_over(language: str) -> None:
    known = {message.id: message for message in catalogue(language) if message.id}

    assert set(known) == written()
    assert [message.id for message in known.values() if not all(forms(message.string) or [""])] == []
    assert [message.id for message in known.values() if message.fuzzy] == []


@pytest.mark.parametrize("language", TRANSLATIONS)
def test_placeholders_agree(language: str) -> None:
    for message in catalogue(language):
        needed = set(PLACEHOLDER.findall(forms(message.id)[-1])) if message.id else set()
        for form in forms(message.string) if message.id else ():
            assert set(PLACEHOLDER.findall(form)) == needed, message.id


def test_counts_take_the_form_of_their_language() -> None:
    said = {}
    for language in LANGUAGES:
        with speaking(language):
            said[language] = [ngettext("{count} question", "{count} questions", count) for count in (0, 1, 2)]

    assert said == {
        "en": ["{count} questions", "{count} question", "{count} questions"],
        "de": ["{count} Fragen", "{count} Frage", "{count} Fragen"],
        "es": ["{count} preguntas", "{count} pregunta", "{count} preguntas"],
        "fr": ["{count} question", "{count} question", "{count} questions"],
        "zh-Hans": ["{count} 个问题"] * 3,
    }
    assert gettext("Undo") == "Undo", "nobody speaks another language outside"


@pytest.mark.parametrize(
    ("cookie", "accepted", "chosen"),
    [
        (None, "", "en"),
        (None, "de-AT,de;q=0.9,en;q=0.8", "de"),
        (None, "fr-CA, en;q=0.8", "fr"),
        (None, "it, en;q=0.5, es;q=0.7", "es"),
        (None, "zh-CN", "zh-Hans"),
        (None, "zh-Hans-SG;q=1", "zh-Hans"),
        (None, "it;q=x, *, xx", "en"),
        ("es", "de", "es"),
        ("../secret", "de", "de"),
    ],
)
def test_the_language_is_what_the_person_asked_for(cookie: str | None, accepted: str, chosen: str) -> None:
    assert choose(cookie, accepted) == chosen


def test_a_page_speaks_the_browsers_language_and_says_so(anonymous: TestClient) -> None:
    page = anonymous.get("/sign-in", headers={"Accept-Language": "de"})

    assert '<html lang="de">' in page.text
    assert "<h1>Anmelden</h1>" in page.text


def test_a_chosen_language_stays(anonymous: TestClient) -> None:
    answer = anonymous.post(
        "/language", data={"language": "zh-Hans", "next": "/sign-in"}, follow_redirects=False
    )

    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    page = anonymous.get("/sign-in", headers={"Accept-Language": "de"})
    assert '<html lang="zh-Hans">' in page.text
    assert (
        anonymous.get("/nothing-here", headers={"Accept": "text/html"}).text.count("此地址没有任何内容。")
        == 1
    )


def test_an_unknown_language_and_another_host_change_nothing(anonymous: TestClient) -> None:
    answer = anonymous.post(
        "/language", data={"language": "xx", "next": "//evil.example"}, follow_redirects=False
    )

    assert answer.headers["location"] == "/"
    assert "set-cookie" not in answer.headers


def test_pages_for_admins_stay_in_english(client: TestClient) -> None:
    page = client.get("/datasets", headers={"Accept-Language": "de"})

    assert '<html lang="en">' in page.text
    assert ">Campaigns</a>" in page.text
    assert "This page is in English; what annotators read is in Deutsch, too." in page.text
    german = {"Accept-Language": "de", "Accept": "text/html"}
    refused = client.post("/groups", data={"name": "x" * 200}, headers=german).text
    assert "At most 120 characters fit here." in refused
    assert "No group was made." in refused
    assert "1 value below cannot be used; the reason stands beside it." in refused
    gone = client.get(f"/campaigns/{uuid4()}", headers=german).text
    assert '<html lang="en">' in gone
    assert "Go to the start" in gone
    assert "what annotators read is in Deutsch, too." in gone
    in_english = client.get("/datasets", headers={"Accept-Language": "en"})
    assert "This page is in English" not in in_english.text


def test_errors_speak_too(anonymous: TestClient) -> None:
    problem = anonymous.get("/api/v1/campaigns", headers={"Accept-Language": "es"}).json()

    assert problem["title"] == "Sesión no iniciada"
