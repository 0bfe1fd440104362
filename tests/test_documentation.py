"""Every setting and every type of problem has its page, and the commands that documents name exist."""

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.problems import STATUS, problem_types
from app.settings import Settings

LINE = 120  # characters
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def page(name: str) -> str:
    """A page under docs/."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_settings_are_documented_as_they_are(name: str) -> None:
    field = Settings.model_fields[name]
    default = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    shown = "none" if default in ((), {}, None) else f"`{default}`" if default != "" else ""

    assert f"| `CLARINET_{name.upper()}` | {shown} | {field.description} |" in page("settings.md")


def test_problem_types_are_documented_under_their_status() -> None:
    import app.main  # noqa: F401  (imports every feature, and with it every error)

    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page("problems.md"), re.MULTILINE)
    documented = {slug: int(status) for status, types in rows for slug in re.findall(r"`([a-z-]+)`", types)}
    assert documented == {
        slug: next(status for family, status in STATUS.items() if issubclass(kind, family))
        for slug, kind in problem_types().items()
    }


def test_make_targets_in_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert set(re.findall(r"`make ([a-z]+)", README)) <= targets


def test_the_readme_begins_with_what_it_is_then_demo_then_test() -> None:
    order = [README.index(part) for part in ("# Clarinet", "make demo", "make test")]

    assert order == sorted(order)


def test_pages_that_everybody_reads_stay_short() -> None:
    assert README.count("\n") <= 150
    assert page("style.md").count("\n") <= 250


def test_lines_of_pages_that_people_edit_are_short() -> None:
    """Those of tables and of code are as long as they must be; results and decisions stay as they were."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "app/fast/README.md"]
    long = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in pages
        for line in re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL).splitlines()
        if len(line) > LINE and not line.lstrip().startswith("|")
    ]

    assert long == []


def headings_of(document: Path) -> set[str]:
    """What links name the headings of a document by."""
    found = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_links_between_documents_lead_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    links = [
        (document, link, heading)
        for document in documents
        for link, heading in LINK.findall(document.read_text(encoding="utf-8"))
        if "://" not in link
    ]

    assert links
    lost = [
        f"{document}: {link}#{heading}"
        for document, link, heading in links
        for target in [document.parent / link if link else document]
        if not target.exists() or (target.suffix == ".md" and heading and heading not in headings_of(target))
    ]
    assert lost == []


def test_functions_and_files_that_pages_name_exist() -> None:
    """`path: name` is a function, class or table of that file; other paths are files or folders."""
    text = page("architecture.md") + page("contributing.md") + page("style.md")
    passed = re.findall(r"`([\w/.-]+\.(?:py|js)):\s+(\w+)`", text)
    paths = re.findall(r"`((?:app|worker|clarinet|frontend|tests)/[\w/.-]+)`", text)
    paths = [path for path in paths if not re.search(r"\b[A-Z]+\b", path)]  # FEATURE, NAME, TAG stand for any

    assert len(passed) > 50
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert [f"{path}: {name}" for path, name in passed if not _defines(ROOT / path, name)] == []


def _defines(path: Path, name: str) -> bool:
    pattern = rf"^ *(export )?(async )?(def|class|function|const) {name}\b|^{name}(: [^\n]+)? = "
    return path.exists() and bool(re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE))
