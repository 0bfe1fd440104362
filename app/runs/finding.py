"""Which runs a list shows, and in which order: filters and sorts that the database carries out."""

import enum
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, String, Subquery, Text, and_, case, cast, false, func, or_, select
from sqlalchemy.orm import Session, selectinload

from app.accounts import service as accounts
from app.accounts.models import User
from app.runs.models import Run, Trial, TrialState
from app.runs.scoring import accuracies_by_people

# A list needs no confusions, which of many classes are megabytes.
WITHOUT_RESULTS = selectinload(Run.trials).defer(Trial.result, raiseload=True)
MOST_DIGITS = 10  # of a number that the column can hold
UNKNOWN = -1.0  # below every accuracy: what is not measured comes after what is
NOT_COUNTED = (TrialState.FAILED, TrialState.CANCELLED)  # as in `summary.summarise`


class Sort(enum.StrEnum):
    """What a list is sorted by; with a minus the other way round."""

    NEWEST = "-number"
    OLDEST = "number"
    HIGHEST = "-accuracy"
    LOWEST = "accuracy"
    NAME = "name"
    NAME_BACK = "-name"
    METHOD = "method"
    METHOD_BACK = "-method"

    @property
    def is_down(self) -> bool:
        """Whether the greatest comes first."""
        return self.value.startswith("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What runs must be to be listed; what is None or empty does not matter.

    Args:
        dataset_id: their source or their target.
        state: of the run, which follows from its trials.
        sweep_id: what they were launched with.
        text: in their name or note, in any case; or their number.
        archived: put away (True), or not (False).
    """

    campaign_id: UUID | None = None
    dataset_id: UUID | None = None
    method: str | None = None
    setting: str | None = None
    state: TrialState | None = None
    tag: str | None = None
    sweep_id: UUID | None = None
    text: str | None = None
    archived: bool | None = None


def find_runs(
    session: Session,
    wanted: Wanted,
    *,
    by: User,
    sort: Sort = Sort.NEWEST,
    after: int | None = None,
    limit: int,
) -> tuple[list[Run], int | None]:
    """Runs with their trials (without their results), and the number to give as `after` for the next page.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    figures = _figures()
    accuracy: ColumnElement[Any] = figures.c.accuracy
    if sort in {Sort.HIGHEST, Sort.LOWEST} and (people := accuracies_by_people(session)):
        accuracy = case(people, value=Run.id, else_=accuracy)
    of_run = figures.c.run_id == Run.id
    value = {
        "number": Run.number,
        "accuracy": accuracy,
        "name": func.lower(Run.name),
        "method": Run.method,
    }[sort.removeprefix("-")]
    query = select(Run).options(WITHOUT_RESULTS).where(*_conditions(wanted))
    if wanted.state is not None or value is accuracy:
        query = query.join(figures, of_run)
    if wanted.state is not None:
        query = query.where(figures.c.state == wanted.state.value)
    if after is not None:
        place = session.execute(
            select(value).select_from(Run).join(figures, of_run).where(Run.number == after)
        )
        [known] = place.one_or_none() or (None,)
        query = query.where(_behind(value, known, after, is_down=sort.is_down))
    order = (value, Run.number)
    query = query.order_by(*(column.desc() if sort.is_down else column.asc() for column in order))
    found = list(session.scalars(query.limit(limit + 1)))
    return found[:limit], found[limit - 1].number if len(found) > limit else None


def known_tags(session: Session, *, by: User) -> list[str]:
    """Every tag that a run has, in alphabetical order."""
    accounts.require_admin(by)
    rows = session.scalars(select(Run.tags).where(cast(Run.tags, Text) != "[]"))
    return sorted({tag for tags in rows for tag in tags}, key=str.casefold)


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    same = {
        Run.campaign_id: wanted.campaign_id,
        Run.method: wanted.method,
        Run.setting: wanted.setting,
        Run.sweep_id: wanted.sweep_id,
    }
    found: list[ColumnElement[bool]] = [
        column == value for column, value in same.items() if value is not None
    ]
    if wanted.dataset_id is not None:
        found.append(
            or_(Run.source_dataset_id == wanted.dataset_id, Run.target_dataset_id == wanted.dataset_id)
        )
    if wanted.archived is not None:
        found.append(Run.archived_at.is_not(None) if wanted.archived else Run.archived_at.is_(None))
    if wanted.tag:
        # As JSON it has quotes around it, and none inside that are not escaped: no other tag holds it.
        found.append(cast(Run.tags, Text).contains(json.dumps(wanted.tag), autoescape=True))
    if wanted.text:
        words = wanted.text.strip()
        texts = [column.icontains(words, autoescape=True) for column in (Run.name, Run.note)]
        digits = words.removeprefix("run").removeprefix("Run").strip()
        is_number = digits.isascii() and digits.isdigit() and len(digits) < MOST_DIGITS
        found.append(or_(*texts, *([Run.number == int(digits)] if is_number else [])))
    return found


def _figures() -> Subquery:
    """By run: its mean accuracy as the list shows it, and its state as `Run.state` has it."""
    counts = {state: func.sum(case((Trial.state == state, 1), else_=0)) for state in TrialState}
    waits = counts[TrialState.QUEUED] > 0
    state = case(
        (
            or_(counts[TrialState.RUNNING] > 0, and_(waits, counts[TrialState.QUEUED] < func.count())),
            "running",
        ),
        (waits, "queued"),
        (counts[TrialState.FAILED] > 0, "failed"),
        (counts[TrialState.CANCELLED] > 0, "cancelled"),
        else_="succeeded",
    )
    counted = case((Trial.state.not_in(NOT_COUNTED), Trial.target_accuracy))
    return (
        select(
            Trial.run_id,
            func.coalesce(func.avg(counted), UNKNOWN).label("accuracy"),
            cast(state, String).label("state"),
        )
        .group_by(Trial.run_id)
        .subquery()
    )


def _behind(value: Any, known: Any, number: int, *, is_down: bool) -> ColumnElement[bool]:
    """Whether a run comes after that of a number, whose value is known; no run where that is gone."""
    if known is None:
        return false()
    further = value < known if is_down else value > known
    beside = Run.number < number if is_down else Run.number > number
    return or_(further, and_(value == known, beside))
