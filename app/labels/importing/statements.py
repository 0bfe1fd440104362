"""What a campaign's imports say, each statement once, and whose statements contradict each other."""

from collections.abc import Iterator
from uuid import UUID

from sqlalchemy import CTE, Subquery, and_, case, distinct, exists, func, or_, select
from sqlalchemy.orm import Session

from app.annotation import service as annotation
from app.annotation.consensus import verdict
from app.annotation.models import OF_CLASS, AnswerValue
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.labels.models import ImportedAnswer, ImportState, LabelImport
from clarinet.files.label_table import LabelRow

YES, NO = AnswerValue.YES, AnswerValue.NO


def statements(campaign_id: UUID, *, also: UUID | None = None) -> CTE:
    """Who says yes or no of which example and class: in imports that count, and in `also`, once each."""
    counts = and_(LabelImport.campaign_id == campaign_id, LabelImport.state == ImportState.READY)
    return (
        select(
            ImportedAnswer.example_id,
            ImportedAnswer.candidate_class,
            ImportedAnswer.value,
            ImportedAnswer.annotator,
        )
        .join(LabelImport, LabelImport.id == ImportedAnswer.import_id)
        .where(or_(counts, LabelImport.id == also) if also else counts, ImportedAnswer.value.in_(OF_CLASS))
        .distinct()
        .cte("statement")
    )


def contradicting(said: CTE, *, num_classes: int) -> Subquery:
    """Pictures and people who contradict themselves about them, among statements.

    Somebody who says yes and no of one class, yes of two, or no of all K.
    """
    yes = func.sum(case((said.c.value == YES, 1), else_=0))
    count = func.count()
    return (
        select(said.c.example_id, said.c.annotator)
        .group_by(said.c.example_id, said.c.annotator)
        .having(
            or_(
                yes > 1,
                count > func.count(distinct(said.c.candidate_class)),
                count - yes >= num_classes,
            )
        )
        .subquery("contradicting")
    )


def not_counting(session: Session, campaign: Campaign) -> dict[UUID, int]:
    """How much of each import that counts is yes or no and yet counts nothing now, by its id; 0 left out.

    Who gave it contradicts themselves about the picture, be it in a later import. Such files are taken only
    where something is left out, so that a campaign without one is asked nothing more.
    """
    here = LabelImport.campaign_id == campaign.id, LabelImport.state == ImportState.READY
    if not session.scalar(select(exists().where(*here, LabelImport.left_out > 0))):
        return {}
    bad = contradicting(statements(campaign.id), num_classes=campaign.num_classes)
    each = (
        select(
            ImportedAnswer.import_id,
            ImportedAnswer.example_id,
            ImportedAnswer.candidate_class,
            ImportedAnswer.value,
            ImportedAnswer.annotator,
        )
        .join(LabelImport, LabelImport.id == ImportedAnswer.import_id)
        .join(
            bad,
            and_(bad.c.example_id == ImportedAnswer.example_id, bad.c.annotator == ImportedAnswer.annotator),
        )
        .where(*here, ImportedAnswer.value.in_(OF_CLASS))
        .distinct()
        .subquery()
    )
    rows = session.execute(select(each.c.import_id, func.count()).group_by(each.c.import_id))
    return {row[0]: row[1] for row in rows}


def imported_labels(session: Session, campaign: Campaign) -> Iterator[LabelRow]:
    """What the majority of those in a campaign's imports says of each example and class; streamed.

    By position. A tie, "can't tell" and "cannot be used" say nothing, nor does who contradicts themselves
    about a picture, nor what is said of pictures set aside.
    """
    said = statements(campaign.id)
    bad = contradicting(said, num_classes=campaign.num_classes)
    yes = func.sum(case((said.c.value == YES, 1), else_=0))
    no = func.sum(case((said.c.value == NO, 1), else_=0))
    rows = session.execute(
        select(
            said.c.example_id,
            Example.position,
            said.c.candidate_class,
            yes.label("yes"),
            no.label("no"),
        )
        .join(Example, Example.id == said.c.example_id)
        .outerjoin(bad, and_(bad.c.example_id == said.c.example_id, bad.c.annotator == said.c.annotator))
        .where(
            bad.c.example_id.is_(None),
            said.c.example_id.not_in(annotation.pictures_set_aside(campaign.id)),
        )
        .group_by(said.c.example_id, Example.position, said.c.candidate_class)
        .order_by(Example.position, said.c.candidate_class)
        .execution_options(yield_per=5_000)
    )
    for row in rows:
        found = verdict(int(row.yes), int(row.no), confirm_yes=False)
        if found.kind is not None:
            yield LabelRow(
                row.position,
                found.kind,
                row.candidate_class,
                1.0,
                example_id=row.example_id,
                answers=found.answers,
                imported=True,
            )
