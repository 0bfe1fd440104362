"""Every test is run by some command: `make test` runs what `make check` leaves out, but for the slow ones."""

import os
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
    "ini_options"
]


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found
    return found[1]


def test_make_test_leaves_out_the_slow_ones_alone() -> None:
    """Which pyproject.toml does; the command itself chooses nothing but what is asked for."""
    assert OPTIONS["addopts"][-2:] == ["-m", "not slow"]
    assert OPTIONS["testpaths"] == ["tests"]
    assert recipe("test").split() == ["@$(PYTEST)", "$(ARGS)"]


def test_processes_take_whole_groups(request: pytest.FixtureRequest) -> None:
    """Else each makes what tests of a file share, and installs what those of the browser do, once more."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("one process runs all tests")

    assert request.node.nodeid.endswith(f"@{Path(__file__).parent / 'test_selection'}")


def test_make_check_leaves_out_by_markers_alone() -> None:
    words = re.search(r'-m "(.*)" \$\(ARGS\)$', recipe("check"), re.MULTILINE)
    assert words
    named = set(re.findall(r"\w+", words[1])) - {"not", "and", "or"}
    assert "not slow" in words[1]
    assert named <= {marker.partition(":")[0] for marker in OPTIONS["markers"]}
    assert recipe("check").split()[:3] == ["@$(PYTEST)", "-q", "-m"]


def test_the_cases_that_long_tests_leave_in_exist(request: pytest.FixtureRequest) -> None:
    if request.config.option.keyword:
        pytest.skip("only a part of the tests was asked for")
    left_in, there = dict[str, set[str]](), defaultdict[str, set[str]](set)
    for item in request.session.items:
        mark, case = item.get_closest_marker("long"), getattr(item, "callspec", None)
        if mark and case and "but" in mark.kwargs:
            function = item.nodeid.partition("[")[0]
            left_in[function] = set(mark.kwargs["but"])
            there[function].add(case.id)

    assert {
        function: ids - there[function] for function, ids in left_in.items() if ids - there[function]
    } == {}
