"""Known pictures at no question's cost: whom a picture is shown as a known one may not be asked about it.

So best is a picture whose drawn questions wait for nobody any more; next best one whose questions most other
people at work may still be asked. One that nobody else may be asked about is spared, and this person is asked
instead. Whoever is alone at work gets any: others may come.
"""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, literal_column, or_, select
from sqlalchemy.orm import Session, aliased

from app.accounts.models import User
from app.annotation.left_to_ask import people_at_work
from app.annotation.locking import LockedCampaign
from app.annotation.models import Lease, Question


def lost_to(
    session: Session, campaign: LockedCampaign, classes: Collection[int], *, by: User
) -> dict[int, int | None]:
    """Of the known pictures with a question about these classes that wait for an answer: how many others at
    work may not be asked any more; None: nobody else may be. Pictures that wait for nobody are left out."""
    others = people_at_work(session, campaign.id) - {by.id}
    return {
        picture: None if others and spent >= len(others) else spent
        for picture, spent in _spent(session, campaign.id, classes, others)
    }


def _spent(
    session: Session, campaign_id: UUID, classes: Collection[int], others: Collection[UUID]
) -> list[tuple[int, int]]:
    """Picture, and how many of these people met it as a known one or answered what waits about it."""
    known, met = aliased(Question), aliased(Question)
    is_gold: ColumnElement[str] = literal_column("'gold'")  # as in the partial index
    pictures = select(known.example_id).where(
        known.campaign_id == campaign_id, known.purpose == is_gold, known.candidate_class.in_(classes)
    )
    query = (
        select(Question.example_id, func.count(Lease.user_id.distinct()))
        .select_from(Question)
        .join(
            met,
            and_(
                met.campaign_id == Question.campaign_id,
                met.example_id == Question.example_id,
                or_(met.purpose == is_gold, met.id == Question.id),
            ),
        )
        .outerjoin(
            Lease,
            and_(
                Lease.question_id == met.id,
                Lease.user_id.in_(others),
                or_(met.purpose == is_gold, Lease.expires_at.is_(None)),
            ),
        )
        .where(
            Question.campaign_id == campaign_id,
            Question.purpose != is_gold,
            Question.is_waiting,
            Question.example_id.in_(pictures),
        )
        .group_by(Question.id, Question.example_id)
        .order_by(func.count(Lease.user_id.distinct()))  # of several rounds the worst comes last
    )
    return [(picture, int(spent)) for picture, spent in session.execute(query)]
