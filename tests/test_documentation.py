"""The README names every setting and every type of problem, and its commands exist."""

import re
from pathlib import Path

import pytest

from app.problems import problem_types
from app.settings import Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_settings_are_documented(name: str) -> None:
    assert f"`CLARINET_{name.upper()}`" in README


def test_problem_types_are_documented() -> None:
    import app.main  # noqa: F401  (imports every feature, and with it every error)

    documented = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", README))
    assert set(problem_types()) - documented == set()


def test_make_targets_in_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert set(re.findall(r"`make ([a-z]+)", README)) <= targets


def test_the_readme_begins_with_what_it_is_then_demo_then_test() -> None:
    order = [README.index(part) for part in ("# Clarinet", "make demo", "make test")]

    assert order == sorted(order)


def test_links_between_documents_lead_somewhere() -> None:
    documents = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    links = [
        (document, link)
        for document in documents
        for link in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
        if link and "://" not in link
    ]

    assert links
    assert [f"{document}: {link}" for document, link in links if not (document.parent / link).exists()] == []
