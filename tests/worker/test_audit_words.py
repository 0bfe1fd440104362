"""What `clarinet audit` says of an audit whose secrets stay secret until the campaign is closed."""

from typing import Any, cast

from worker.cli.simulate import _report


def test_a_version_that_is_not_told_yet_is_said_to_come() -> None:
    drawing: dict[str, Any] = {
        "law": None,
        "draws_match": None,
        "commitment": "c" * 64,
        "commitment_matches": None,
    }
    found: dict[str, Any] = {
        "dataset_unchanged": None,
        "draws_match": None,
        "commitment": "c" * 64,
        "commitment_matches": None,
        "uniformity": {"statistic": 1.0, "p_value": 0.5},
        "uniformity_of": 1,
        "alarms": [],
        "passed": True,
        "drawings": [
            {"number": 1, "dataset_version": 1} | drawing,
            {"number": 2, "dataset_version": None} | drawing,
        ],
    }

    told = _report(cast("Any", found))  # of an audit what is looked at

    assert "Drawing 1, over version 1: " in told
    assert "Drawing 2, over a version told once the campaign is closed: " in told
    assert "None" not in told
