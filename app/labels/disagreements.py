"""Pictures about which people of imports differ, among themselves or from answers here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import and_, case, func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation.models import Question
from app.annotation.service import pictures_set_aside
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.labels.importing.accepting import has_imports
from app.labels.importing.statements import NO, YES, contradicting, statements
from app.quality.service import judge_of, question_answers
from clarinet.files.label_table import LabelKind
from clarinet.files.refusal import MOST_NAMED
from clarinet.recipes.counting import many

PIECE = 5_000  # rows that are fetched at once
KINDS = {LabelKind.TRUE: "yes", LabelKind.COMPLEMENTARY: "no"}


class Disagreement(NamedTuple):
    """A picture about which people differ."""

    example_id: int
    position: int
    filename: str | None
    why: str  # a clause


@dataclass(frozen=True, slots=True)
class Disagreements:
    """All of a campaign."""

    count: int
    named: Sequence[Disagreement]  # of many the first, by position


class _Votes(NamedTuple):
    example_id: int
    position: int
    filename: str | None
    class_: int
    yes: int
    no: int


class _Here(NamedTuple):
    example_id: int
    position: int
    class_: int
    kind: LabelKind


def disagreements(session: Session, campaign: Campaign, *, by: User) -> Disagreements:
    """Where a campaign's imports differ among people or from its answers; `campaign` has its classes.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    if not has_imports(session, campaign):
        return Disagreements(0, [])
    count = 0
    named: list[Disagreement] = []
    for one in _differing(_votes(session, campaign), _answers(session, campaign), campaign.class_names):
        count += 1
        if count <= MOST_NAMED:
            named.append(one)
    return Disagreements(count, named)


def _votes(session: Session, campaign: Campaign) -> Iterator[_Votes]:
    """What the imports say of each picture and class, by position, without who contradicts themselves."""
    said = statements(campaign.id)
    bad = contradicting(said, num_classes=campaign.num_classes)
    rows = session.execute(
        select(
            said.c.example_id,
            Example.position,
            Example.filename,
            said.c.candidate_class,
            func.sum(case((said.c.value == YES, 1), else_=0)),
            func.sum(case((said.c.value == NO, 1), else_=0)),
        )
        .join(Example, Example.id == said.c.example_id)
        .outerjoin(bad, and_(bad.c.example_id == said.c.example_id, bad.c.annotator == said.c.annotator))
        .where(bad.c.example_id.is_(None), said.c.example_id.not_in(pictures_set_aside(campaign.id)))
        .group_by(said.c.example_id, Example.position, Example.filename, said.c.candidate_class)
        .order_by(Example.position, said.c.candidate_class)
        .execution_options(yield_per=PIECE)
    )
    return (_Votes(*row) for row in rows)


def _answers(session: Session, campaign: Campaign) -> Iterator[_Here]:
    """What the answers here say of the pictures of which imports say something, by position."""
    judge = judge_of(session, campaign, num_classes=campaign.num_classes)
    imported = Question.example_id.in_(select(statements(campaign.id).c.example_id))
    rows = session.execute(question_answers(campaign.id).where(imported).execution_options(yield_per=PIECE))
    for row in rows:
        if kind := judge(row).kind:
            yield _Here(row.example_id, row.position, row.candidate_class, LabelKind(kind))


def _differing(
    votes: Iterator[_Votes | _Here], here: Iterator[_Votes | _Here], names: Sequence[str]
) -> Iterator[Disagreement]:
    """One for each picture about which somebody says what another denies; both come by position. Pure."""
    together = merge(votes, here, key=attrgetter("position"))
    for example_id, group in groupby(together, key=attrgetter("example_id")):
        rows: list[_Votes] = []
        answered: dict[int, LabelKind] = {}
        for one in group:
            if isinstance(one, _Votes):
                rows.append(one)
            else:
                answered[one.class_] = one.kind
        told = [*_among_imports(rows, names), *_with_answers(rows, answered, names)]
        if told:
            yield Disagreement(example_id, rows[0].position, rows[0].filename, "; ".join(told))


def _among_imports(rows: Sequence[_Votes], names: Sequence[str]) -> Iterator[str]:
    for row in rows:
        if row.yes and row.no:
            yield f"imports say {names[row.class_]!r:.80}: {row.yes} yes, {row.no} no"
    chosen = [row for row in rows if row.yes > row.no]
    if len(chosen) > 1:
        yield "imports say " + " and ".join(f"{names[row.class_]!r:.80} ({row.yes} yes)" for row in chosen)


def _with_answers(
    rows: Sequence[_Votes], here: Mapping[int, LabelKind], names: Sequence[str]
) -> Iterator[str]:
    true = [class_ for class_, kind in here.items() if kind is LabelKind.TRUE]
    for row in rows:
        if row.yes == row.no:
            continue
        name, says_yes = f"{names[row.class_]!r:.80}", row.yes > row.no
        answered = here.get(row.class_)
        if answered is not None and (answered is LabelKind.TRUE) != says_yes:
            yield f"imports say {'yes' if says_yes else 'no'} to {name}, answers here {KINDS[answered]}"
        elif says_yes and true and row.class_ not in true:
            yield f"imports say {name}, answers here {names[true[0]]!r:.80}"


def words_of(found: Disagreements) -> str:
    """How many there are and what becomes of them, in a sentence; "" where there are none."""
    if not found.count:
        return ""
    return (
        f"About {many(found.count, 'picture')} people differ. Of each class the majority of the imports "
        "counts; a tie, two classes, or an answer here that denies it leaves nothing known."
    )
