"""What uses a thing, and what somebody made: rows that point to it, by the names that people know."""

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, String, Table, cast, func, literal, select
from sqlalchemy.orm import Session, object_session

from app.db import Base
from app.errors import Use, Uses

MOST_NAMED = 20  # of each kind; how many there are is told as well
PAGES = ("dataset", "campaign", "run")  # what has one of its own, and so a name


def itself(row: Any) -> Uses:
    """A thing as what stands in the way, for an error that names it."""
    kind = row.__tablename__
    return Uses((Use(kind, row.id, row.name),), {kind: 1})


def uses_of(row: Base) -> Uses:
    """What points to a row of a session and would lose it: foreign keys that the database restricts."""
    session = object_session(row)
    table = row.__table__
    if session is None or not isinstance(table, Table):
        raise ValueError(f"{row!r} belongs to no session")
    found: list[Use] = []
    counts: dict[str, int] = {}
    for other, column in restricting(table):
        name = name_column(other)
        if name is None:
            continue
        condition = column == row.id  # type: ignore[attr-defined]  # every table that is pointed to has one
        count = session.scalar(select(func.count()).select_from(other).where(condition)) or 0
        if count:
            newest = other.c.created_at.desc()
            rows = session.execute(
                select(other.c.id, name).where(condition).order_by(newest).limit(MOST_NAMED)
            )
            found += [Use(other.name, id_, words) for id_, words in rows]
            counts[other.name] = counts.get(other.name, 0) + count
    return Uses(tuple(found), counts)


# What people make, by table: in words, and the column that says who did.
MADE = {
    "dataset": ("dataset", "created_by_id"),
    "dataset_version": ("dataset version", "created_by_id"),
    "campaign": ("campaign", "created_by_id"),
    "campaign_drawing": ("further drawing", "requested_by_id"),
    "label_import": ("label import", "created_by_id"),
    "worker_link": ("worker link", "created_by_id"),
    "run": ("run", "created_by_id"),
    "evaluation": ("evaluation", "created_by_id"),
    "prediction": ("prediction", "created_by_id"),
    "subscription": ("subscription", "created_by_id"),
    "invitation": ("invitation", "invited_by_id"),
    "api_token": ("token", "user_id"),
    "decision": ("decision", "user_id"),
    "picture_review": ("picture review", "user_id"),
}


def made_by(session: Session, user_id: UUID) -> tuple[Uses, dict[str, int]]:
    """What somebody made: datasets, campaigns and runs by name, and how many of what has no name."""
    found: list[Use] = []
    counts: dict[str, int] = {}
    others: dict[str, int] = {}
    for name, (words, column) in MADE.items():
        table = Base.metadata.tables[name]
        theirs = table.c[column] == user_id
        count = session.scalar(select(func.count()).select_from(table).where(theirs)) or 0
        if not count:
            continue
        called_by = name_column(table)
        if name not in PAGES or called_by is None:
            others[words] = count
            continue
        counts[words] = count
        newest = select(table.c.id, called_by).where(theirs).order_by(table.c.created_at.desc())
        found += [Use(words, id_, called) for id_, called in session.execute(newest.limit(MOST_NAMED))]
    return Uses(tuple(found), counts), others


def restricting(table: Table) -> list[tuple[Table, ColumnElement[Any]]]:
    """Tables that keep rows of this one from being deleted, with the column that points to them."""
    return [
        (other, key.parent)
        for other in Base.metadata.sorted_tables
        for key in sorted(other.foreign_keys, key=lambda key: key.parent.name)
        if key.column.table is table and key.ondelete == "RESTRICT"
    ]


def name_column(table: Table) -> ColumnElement[str] | None:
    """What people call a row; None where it has no name and no page."""
    if table.name == "run":  # which may have a name as well, but always has its number
        return literal("Run ") + cast(table.c.number, String)
    if table.name == "evaluation":
        return literal("Evaluation of ") + cast(table.c.sample_size, String) + literal(" pictures")
    if "name" in table.c and "created_at" in table.c:
        return table.c.name
    return None


def evaluations_that_use(session: Session, campaign_id: UUID) -> Uses:
    """Evaluations that count answers of this campaign, which is not their own."""
    tables = Base.metadata.tables
    evaluation, image, question = tables["evaluation"], tables["evaluated_image"], tables["question"]
    asked_here = (
        select(image.c.evaluation_id)
        .join(question, question.c.id == image.c.question_id)
        .where(question.c.campaign_id == campaign_id)
    )
    name = name_column(evaluation)
    assert name is not None
    rows = session.execute(
        select(evaluation.c.id, name)
        .where(evaluation.c.id.in_(asked_here), evaluation.c.campaign_id.is_distinct_from(campaign_id))
        .order_by(evaluation.c.created_at.desc())
    ).all()
    found = tuple(Use("evaluation", id_, words) for id_, words in rows[:MOST_NAMED])
    return Uses(found, {"evaluation": len(rows)} if rows else {})


def named(session: Session, kind: type[Any], name: str) -> Uses:
    """The row of this mapped class that has this name, as `itself`."""
    row = session.scalar(select(kind).where(kind.name == name))
    return Uses() if row is None else itself(row)
