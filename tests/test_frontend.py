"""What the pages may weigh and what their templates may not do."""

import re
from pathlib import Path

import pytest

import frontend

ROOT = Path(frontend.__file__).parent
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STYLES = sorted((ROOT / "static" / "css").glob("*.css"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
KILOBYTE = 1024


def read(paths: list[Path]) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


# What a page loads beside the sheets that all pages share.
@pytest.mark.parametrize("own", ["reports", "screen"])
def test_stylesheets_stay_small(own: str) -> None:
    names = ("tokens", "base", "components", own)
    assert {path.stem for path in STYLES} == {"tokens", "base", "components", "reports", "screen"}
    # Sent compressed, that is a third of it.
    assert sum(path.stat().st_size for path in STYLES if path.stem in names) <= 24 * KILOBYTE
    assert read(STYLES).count("\n") <= 500


@pytest.mark.parametrize("mode", ["card", "grid"])
def test_what_the_first_question_needs_stays_small(mode: str) -> None:
    page = (ROOT / "templates" / "annotation" / "screen.html").read_text(encoding="utf-8")
    parts = re.search(r"parts = (\[.*?\]) \+ \((\[.*?\]) if mode == \"card\" else (\[.*?\])\)", page)
    assert parts
    preloaded = {*re.findall(r"\w+", parts[1]), *re.findall(r"\w+", parts[2 if mode == "card" else 3])}

    entry = read([ROOT / "static" / "js" / "annotate.js"])
    view = re.search(rf"async {mode}\(\) {{.*?\n  }},", entry, re.DOTALL)
    assert view
    loads = re.findall(r"await load\(([^)]*)\)", entry.split("const main")[0] + view[0])
    assert preloaded == {name for names in loads for name in re.findall(r"\w+", names)}
    paths = [ROOT / "static" / "js" / f"{name}.js" for name in (*preloaded, "annotate")]
    assert sum(path.stat().st_size for path in paths) <= 30 * KILOBYTE


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_stay_readable(path: Path) -> None:
    assert read([path]).count("\n") <= 400


def test_every_class_of_the_stylesheet_is_used() -> None:
    css = re.sub(r"/\*.*?\*/|\"[^\"]*\"", "", read(STYLES), flags=re.DOTALL)
    selectors = " ".join(re.findall(r"([^{}]*)\{", css))
    defined = set(re.findall(r"\.([a-z][\w-]*)", selectors))
    used = {name for value in re.findall(r'class="([^"]*)"', read(TEMPLATES)) for name in value.split()}
    used |= set(re.findall(r"class=\"([\w-]+)", read(TEMPLATES)))

    assert defined - used == set(), "a selector that no template uses is deleted"


def test_every_class_of_a_template_is_in_the_stylesheet() -> None:
    css = read(STYLES)
    used = {name for value in re.findall(r'class="([\w\s-]*)"', read(TEMPLATES)) for name in value.split()}

    assert {name for name in used if f".{name}" not in css} == set()


def test_every_attribute_of_the_stylesheet_is_used() -> None:
    attributes = set(re.findall(r"\[(data-[\w-]+)", read(STYLES)))
    drawings = sorted((ROOT / "templates").rglob("*.svg"))
    sources = read(TEMPLATES) + read(drawings) + read(SCRIPTS)
    by_dataset = {
        f"data-{re.sub(r'(?=[A-Z])', '-', name).lower()}" for name in re.findall(r"dataset\.(\w+)", sources)
    }

    assert {name for name in attributes - by_dataset if name not in sources} == set()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_templates_obey_the_content_security_policy(path: Path) -> None:
    source = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)

    assert "|safe" not in source.replace(" ", "")
    assert "autoescape" not in source
    assert not re.search(r"\sstyle=", source)
    assert "<style" not in source
    assert not re.search(r"\son[a-z]+=", source)
    inline = re.findall(r"<script(?![^>]*\bsrc=)([^>]*)>", source)
    assert all('type="application/json"' in attributes for attributes in inline)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_links_are_made_by_url_for(path: Path) -> None:
    source = path.read_text(encoding="utf-8")

    assert re.findall(r'(?:href|src|action|hx-get|hx-post|data-[a-z-]*url)="(/[^"]*)"', source) == []


def test_what_can_be_refused_is_made_by_the_forms_macro() -> None:
    for path in TEMPLATES:
        source = re.sub(
            r"\{% call forms\.form.*?\{% endcall %\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        if path.name != "forms.html":
            assert "error=" not in source, f"{path.name}: a summary with the focus belongs above such a field"


def test_every_wide_table_scrolls_under_a_name() -> None:
    for path in TEMPLATES:
        if path.name != "tables.html":
            source = path.read_text(encoding="utf-8")
            assert 'class="scroll"' not in source
            assert "<table" not in source.replace('<table class="shares">', ""), path.name


def test_what_leads_elsewhere_is_a_link_and_no_button_that_ignores_the_space_bar() -> None:
    for path in TEMPLATES:
        assert not re.search(r"<a\b[^>]*\brole=.button", path.read_text()), path


def test_scripts_build_no_html() -> None:
    source = read(SCRIPTS)

    for forbidden in ("innerHTML", "outerHTML =", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in source.replace('swap: "innerHTML"', "")


def test_a_page_that_fetches_itself_again_folds_no_question_away() -> None:
    source = read([ROOT / "templates" / "macros" / "forms.html"])
    macro = source.partition("{% macro risk(")[2].partition("{%- endmacro")[0]

    # tests/browser/test_loop.py watches a run to its end with such a question open.
    assert re.search(r'<details id="{{ .*url.*\|as_id }}" hx-preserve="true">', macro), (
        "else it closes each second"
    )


def test_what_takes_something_away_asks_once_more() -> None:
    ends = "Delete|Close|Cancel|Revoke|Withdraw|Disable|Sign out there|Take the second factor"
    ends += "|Remove|End|Stop|Forget|Drop|Erase"
    source = read(TEMPLATES)

    assert re.findall(rf'forms\.act\([^\n]*?, (?:_\()?"(?:{ends})', source) == [], "forms.risk names it first"
    assert re.findall(rf"<button[^>]*>(?:{ends})", source) == [], "forms.choice names it first"


def test_a_page_that_shows_a_secret_once_minds_its_reload() -> None:
    for path in TEMPLATES:
        source = path.read_text(encoding="utf-8")
        if '{% include "accounts/_secret.html" %}' in source and path.name != "_code.html":  # which is kept
            assert "{{ forms.once(new_key()) }}" in source, f"{path.name}: a reload would make a second one"


def test_a_button_of_a_row_is_named_with_what_it_is_about() -> None:
    pieces = r"{%-?\s*(?P<begin>for)\b|{%-?\s*(?P<end>endfor)\b|forms\.act\((?P<act>.*?)\) }}"
    pieces += r"|<button(?P<button>[^>]*(?:{{[^}]*}}[^>]*)*)>(?P<words>.*?)</button>"

    for path in TEMPLATES:
        source = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        depth = 0
        for piece in re.finditer(pieces, source, re.DOTALL):
            depth += bool(piece["begin"]) - bool(piece["end"])
            if depth and piece["act"]:
                assert "about=" in piece["act"], f"{path.name}: {piece[0]}"
            elif depth and piece["words"] is not None:
                is_named = "aria-label" in piece["button"] or "{{" in piece["words"]
                assert is_named, f"{path.name}: {piece[0]}"
