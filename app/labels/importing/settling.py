"""The end of an import: what it says that is new, was here already, or contradicts what somebody said."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Subquery, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.annotation.models import OF_CLASS, AnswerValue
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.labels.importing.statements import NO, YES, contradicting, statements
from app.labels.models import ImportedAnswer, ImportState, LabelImport
from clarinet.files.names import in_a_row, sameness
from clarinet.recipes.counting import is_or_are, many

_SHOWN = 80  # characters of a stranger's word in a sentence
LEAVE_OUT = "leave-out"  # both sides of a contradiction
MEND = (
    "Mend them; name people in a column annotator where several said it; or import the file with "
    f"contradictions={LEAVE_OUT}, and neither side counts"
)


@dataclass(frozen=True, slots=True)
class Settled:
    """What an import comes to, each answer once.

    Args:
        counts: how often each value was said, without what was left out.
        known: how many of these a campaign's other imports said before.
        left_out: answers of people who contradict themselves about the picture.
        faults: the lines that contradict earlier ones: number, and with what, continuing a sentence.
        beside: how many of those left out contradict nothing: earlier imports alone contradict themselves.
        earlier: what these imports are called.
    """

    counts: Counter[AnswerValue]
    known: int
    left_out: int
    faults: Sequence[tuple[int, str]]
    beside: int = 0
    earlier: Sequence[str] = ()

    def words(self, noun: str, *, written: int) -> list[str]:
        """What the admin should know of it, in sentences. `written`: things that the file says."""
        told, new = [], self.counts.total() - self.known
        if self.known:
            was = "was" if self.known == 1 else "were"
            told.append(f"{many(self.known, 'answer')} {was} here already, {new:,} {is_or_are(new)} new.")
        if twice := written - self.counts.total() - self.left_out:
            says = "says" if twice == 1 else "say"
            told.append(f"{many(twice, noun)} {says} what an earlier one says, and counted once.")
        if own := self.left_out - self.beside:
            told.append(
                f"{many(own, 'answer')} left out: who gave them contradicts themselves about the "
                "picture, and nothing that they say of it counts."
            )
        if self.beside:
            files = in_a_row([repr(name[:_SHOWN]) for name in self.earlier])
            told.append(
                f"{many(self.beside, 'answer')} left out: who gave them contradicts themselves about the "
                f"picture in what was imported before, from {files}. Take that back, and they count."
            )
        return told


def settle(session: Session, made: LabelImport, campaign: Campaign) -> Settled:
    """Compare an import with itself and with those that count; one import of a campaign at a time."""
    # What another import adds at the same time is there, or waits for our end.
    session.execute(select(Campaign.id).where(Campaign.id == campaign.id).with_for_update(key_share=True))
    _call_people_alike(session, made, campaign)
    bad = contradicting(statements(campaign.id, also=made.id), num_classes=campaign.num_classes)
    own = ImportedAnswer.import_id == made.id
    counts: Counter[AnswerValue] = Counter()
    left_out = 0
    rows = session.execute(
        select(ImportedAnswer.value, bad.c.example_id.is_not(None), func.count())
        .outerjoin(bad, _is_by(bad))
        .where(own)
        .group_by(ImportedAnswer.value, bad.c.example_id.is_not(None))
    )
    for value, is_bad, count in rows:
        if is_bad and value in OF_CLASS:
            left_out += count
        else:
            counts[value] += count
    other, others = aliased(ImportedAnswer), aliased(LabelImport)
    same = exists().where(
        other.example_id == ImportedAnswer.example_id,
        other.candidate_class == ImportedAnswer.candidate_class,
        other.value == ImportedAnswer.value,
        other.annotator == ImportedAnswer.annotator,
        other.import_id == others.id,
        others.id != made.id,
        others.campaign_id == campaign.id,
        others.state == ImportState.READY,
    )
    known = session.scalar(
        select(func.count())
        .select_from(ImportedAnswer)
        .outerjoin(bad, _is_by(bad))
        .where(own, same, or_(bad.c.example_id.is_(None), ImportedAnswer.value.not_in(OF_CLASS)))
    )
    found = _look(session, made, campaign, bad) if left_out else _Found()
    return Settled(counts, known or 0, left_out, found.faults, found.beside, list(found.earlier))


def _call_people_alike(session: Session, made: LabelImport, campaign: Campaign) -> None:
    """Give people of an import the names that earlier ones have them by, where these are the same but for
    case, composed accents and spaces. Within an import each has one name.
    """
    query = (
        select(ImportedAnswer.annotator)
        .join(LabelImport, LabelImport.id == ImportedAnswer.import_id)
        .group_by(ImportedAnswer.annotator)
        .order_by(func.min(ImportedAnswer.id))
    )
    known: dict[str, str] = {}
    is_earlier = LabelImport.campaign_id == campaign.id, LabelImport.state == ImportState.READY
    for name in session.scalars(query.where(*is_earlier, LabelImport.id != made.id)):
        known.setdefault(sameness(name), name)
    for name in session.scalars(query.where(LabelImport.id == made.id)).all():
        other = known.get(sameness(name), name)
        if other != name:
            own = ImportedAnswer.import_id == made.id, ImportedAnswer.annotator == name
            session.execute(update(ImportedAnswer).where(*own).values(annotator=other))


def _is_by(bad: Subquery) -> ColumnElement[bool]:
    return and_(bad.c.example_id == ImportedAnswer.example_id, bad.c.annotator == ImportedAnswer.annotator)


class _Said(NamedTuple):
    """A statement of somebody who contradicts themselves about a picture."""

    import_id: UUID
    file: str  # the import's
    noun: str
    line: int | None
    example_id: int
    picture: str | None
    position: int
    class_: int
    value: AnswerValue
    annotator: str

    @property
    def where(self) -> str:
        """Its line and file."""
        place = f"{self.noun} {self.line} of " if self.line is not None else ""
        return f"{place}{self.file[:_SHOWN]!r}"

    def contradicts(self, other: "_Said") -> bool:
        """Whether both cannot be true."""
        if self.class_ == other.class_:
            return self.value is not other.value
        return self.value is YES and other.value is YES


@dataclass(slots=True)
class _Found:
    """What an import has to do with contradictions; see `Settled`. `earlier`: names, each once."""

    faults: list[tuple[int, str]] = field(default_factory=list)
    beside: int = 0
    earlier: dict[str, None] = field(default_factory=dict)


def _look(session: Session, made: LabelImport, campaign: Campaign, bad: Subquery) -> _Found:
    """Each statement of the import that contradicts another one; and those that stand beside others which do.

    Of other pictures and people, who contradict themselves in earlier imports alone, nothing is read.
    """
    is_own = ImportedAnswer.import_id == made.id
    mine = aliased(ImportedAnswer)
    is_about_mine = exists().where(
        mine.import_id == made.id,
        mine.example_id == ImportedAnswer.example_id,
        mine.annotator == ImportedAnswer.annotator,
        mine.value.in_(OF_CLASS),
    )
    rows = session.execute(
        select(
            LabelImport.id,
            LabelImport.filename,
            LabelImport.noun,
            ImportedAnswer.line,
            ImportedAnswer.example_id,
            Example.filename,
            Example.position,
            ImportedAnswer.candidate_class,
            ImportedAnswer.value,
            ImportedAnswer.annotator,
        )
        .join(LabelImport, LabelImport.id == ImportedAnswer.import_id)
        .join(Example, Example.id == ImportedAnswer.example_id)
        .join(bad, _is_by(bad))
        .where(
            or_(is_own, and_(LabelImport.campaign_id == campaign.id, LabelImport.state == ImportState.READY)),
            ImportedAnswer.value.in_(OF_CLASS),
            is_about_mine,
        )
        .order_by(ImportedAnswer.example_id, ImportedAnswer.annotator, is_own, ImportedAnswer.id)
    )
    found = _Found()
    for _, group in groupby(
        (_Said._make(row) for row in rows), key=lambda one: (one.example_id, one.annotator)
    ):
        said = list(group)
        earlier = [one for one in said if one.import_id != made.id]
        faults = list(_of_one(earlier, said[len(earlier) :], campaign.class_names))
        found.faults += faults
        if not faults:
            found.beside += len(said) - len(earlier)
            at_odds = [one for one in earlier if any(map(one.contradicts, earlier))]
            found.earlier |= dict.fromkeys(one.file for one in at_odds or earlier)
    return found


def _of_one(
    earlier: Sequence[_Said], own: Sequence[_Said], names: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """What an import says of one picture for one person, in its order, that contradicts what was said."""
    is_found = False
    for place, one in enumerate(own):
        before = next((other for other in (*earlier, *own[:place]) if one.contradicts(other)), None)
        if before is not None:
            is_found = True
            yield one.line or 0, _told(one, before, names)
    denied = [{one.class_ for one in some if one.value is NO} for some in (earlier, (*earlier, *own))]
    if not is_found and len(denied[0]) < len(denied[1]) == len(names):
        first = next(one for one in (*earlier, *own) if one.value is NO)
        yield own[-1].line or 0, f"{_told(own[-1], first, names)}, so that no class is left"


def _told(one: _Said, before: _Said, names: Sequence[str]) -> str:
    picture = f"{one.picture[:_SHOWN]!r}" if one.picture else f"the picture at position {one.position}"
    by = f", both by {one.annotator[:_SHOWN]!r}" if one.annotator else ""
    return (
        f"says that {picture} is {_class(one, names)}, but {before.where} says that it is "
        f"{_class(before, names)}{by}"
    )


def _class(one: _Said, names: Sequence[str]) -> str:
    return f"{'not ' if one.value is NO else ''}{names[one.class_][:_SHOWN]!r}"
