"""HTML routes: several runs beside each other, and what is shown of them as files."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.accounts.models import User
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep, StorageDep
from app.pages import render, templates, with_query
from app.runs import configs, words
from app.runs.comparing import Compared, Comparison, compare
from app.runs.curves import drawing_of
from app.runs.differences import Difference
from app.runs.errors import RunNotFound, TooManyToCompare
from app.runs.files import csv_file
from app.runs.summary import Summary
from app.storage import Storage
from clarinet.files.tables import guarded
from clarinet.recipes.config import title_of

router = APIRouter(include_in_schema=False)

Runs = Annotated[list[UUID], Query(default_factory=list, max_length=200)]
TOO_FEW = 2


class Table(StrEnum):
    """What of a comparison is there as CSV."""

    RESULTS = "results"
    CURVES = "curves"
    SETTINGS = "settings"
    LABELS = "labels"


@router.get("/runs/compare")
@admin_only
def compare_runs(
    request: Request, session: SessionDep, storage: StorageDep, user: CurrentUser, run: Runs
) -> Response:
    """Two to twenty runs: curves, results, and how they differ from the first."""
    comparison, wrong = _asked(session, storage, run, user)
    ids = list(dict.fromkeys(str(id_) for id_ in run))
    return render(
        request,
        "runs/compare.html",
        status=422 if wrong else 200,
        comparison=comparison,
        in_words=words.in_table,
        wrong=wrong,
        drawing=drawing_of(comparison) if comparison else None,
        settings=_settings(comparison) if comparison else [],
        chart=with_query(request, "draw_comparison", run=ids),
        files={
            table.value: with_query(request, "download_comparison", path={"table": table.value}, run=ids)
            for table in Table
        },
        first_urls={
            UUID(id_): with_query(
                request, "compare_runs", run=[id_, *(other for other in ids if other != id_)]
            )
            for id_ in ids
        },
    )


@router.get("/runs/compare/curves.svg")
@admin_only
def draw_comparison(session: SessionDep, storage: StorageDep, user: CurrentUser, run: Runs) -> Response:
    """The curves as a drawing."""
    comparison = compare(session, storage, run, by=user, now=utc_now())
    template = templates.env.get_template("runs/curves.svg")
    return Response(
        template.render(drawing=drawing_of(comparison), alone=True),
        media_type="image/svg+xml",
        headers={"Content-Disposition": 'attachment; filename="curves.svg"', "Cache-Control": "no-store"},
    )


@router.get("/runs/compare/{table}.csv")
@admin_only
def download_comparison(
    table: Table, session: SessionDep, storage: StorageDep, user: CurrentUser, run: Runs
) -> Response:
    """A table of the comparison as a file."""
    comparison = compare(session, storage, run, by=user, now=utc_now())
    rows = {
        Table.RESULTS: _result_rows,
        Table.CURVES: _curve_rows,
        Table.SETTINGS: _setting_rows,
        Table.LABELS: _label_rows,
    }[table](comparison)
    return csv_file(f"{table.value}.csv", rows)


def _asked(
    session: Session, storage: Storage, run_ids: Sequence[UUID], user: User
) -> tuple[Comparison | None, str]:
    if len(set(run_ids)) < TOO_FEW:
        return None, "Mark at least two runs to compare." if run_ids else ""
    try:
        return compare(session, storage, run_ids, by=user, now=utc_now()), ""
    except RunNotFound:
        return None, "One of these runs is not there any more. Mark the others again."
    except TooManyToCompare as error:
        return None, error.detail


def _settings(comparison: Comparison) -> list[tuple[str, str, list[str]]]:
    """Name, title and values in words."""
    return [
        (name, title_of(name), [configs.shown(value) for value in values])
        for name, values in comparison.settings
    ]


def _result_rows(comparison: Comparison) -> Iterator[list[str]]:
    ends = [f"by_{what}{end}" for what in ("images", "seeds") for end in ("", "_low", "_high")]
    yield [
        *("run", "name", "method", "preset", "setting", "state", "seeds", "mean_accuracy"),
        *("interval_low", "interval_high", "lowest_accuracy", "highest_accuracy", *ends),
        *("people_accuracy", "people_low", "people_high"),
    ]
    for each in comparison.runs:
        run, summary = each.run, each.summary
        figures = (summary.mean, summary.low, summary.high, summary.lowest, summary.highest)
        texts = [str(run.number), guarded(each.label), run.method, run.preset, run.setting, run.state.value]
        yield [
            *texts,
            str(summary.seeds),
            *map(_written, figures),
            *_ends(each.by_images),
            *_ends(each.by_seeds),
            *_ends_of_people(summary),
        ]


def _ends_of_people(summary: Summary) -> list[str]:
    told = summary.people and summary.people.interval
    return [_written(value) for value in ((told.estimate, told.low, told.high) if told else [None] * 3)]


def _ends(found: Difference | None) -> list[str]:
    return [_written(value) for value in ((found.value, found.low, found.high) if found else [None] * 3)]


def _curve_rows(comparison: Comparison) -> Iterator[list[str]]:
    yield ["run", "epoch", "mean_accuracy", "lowest_accuracy", "highest_accuracy", "seeds"]
    for each in comparison.runs:
        for point in each.points:
            figures = (point.mean, point.low, point.high)
            yield [str(each.run.number), str(point.epoch), *map(_written, figures), str(point.seeds)]


def _setting_rows(comparison: Comparison) -> Iterator[list[str]]:
    yield ["setting", *(f"run {each.run.number}" for each in comparison.runs)]
    for name, _, values in _settings(comparison):
        yield [name, *map(guarded, values)]


def _label_rows(comparison: Comparison) -> Iterator[list[str]]:
    kinds = [f"{kind}_{where}" for kind in ("complementary", "true") for where in ("here", "first")]
    yield ["run", "label_snapshot", "equal", *kinds, "shared", "reweighted", "examples"]
    for each in comparison.runs:
        yield [str(each.run.number), each.run.snapshot_digest, *_label_cells(each)]


def _label_cells(each: Compared) -> list[str]:
    found = each.labels
    if found is None:
        return [""] * 8
    counts = [side[kind] for kind in ("complementary", "true") for side in (found.mine, found.others)]
    cells = [found.are_equal, *counts, found.shared, found.reweighted, found.examples]
    return [str(cell).lower() for cell in cells]


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
