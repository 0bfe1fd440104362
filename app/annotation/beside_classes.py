"""Pictures that stand beside a class, and others of the same bytes: nobody is asked about them.

Annotators see them under their class, so a question about one asks for what the page tells; and a known
picture among them would be known to be one. They are drawn like all others, because a commitment counts the
images of a version, and are set aside before anybody sees their questions. Only a draft's pictures can be
chosen, so what stands beside a class stays there.
"""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.locking import LockedCampaign
from app.annotation.models import IS_SET_ASIDE, Purpose, Question
from app.annotation.setting_aside import set_aside
from app.campaigns.models import Campaign, CampaignClass
from app.datasets.models import Example

CHUNK = 500  # questions that are set aside at once
KNOWN = 1_000  # campaigns whose number is kept

# It changes with what was drawn alone, so who asks for questions need not count each time.
_known: dict[tuple[UUID, int], int] = {}  # by campaign and the number of its questions


def digests_beside_classes(session: Session, campaign_id: UUID) -> set[str]:
    """Of the bytes of the pictures that stand beside a class."""
    shown = session.scalars(select(CampaignClass.example_ids).where(CampaignClass.campaign_id == campaign_id))
    ids = {example_id for some in shown for example_id in some}
    return set(session.scalars(select(Example.digest).where(Example.id.in_(ids)))) if ids else set()


def stands_beside_class(session: Session, campaign_id: UUID, example_id: int) -> bool:
    """Whether a picture does, or one of the same bytes."""
    digest = session.scalar(select(Example.digest).where(Example.id == example_id))
    return digest in digests_beside_classes(session, campaign_id)


def set_aside_beside_classes(
    session: Session, campaign: Campaign, *, drawing: int, by: User, now: datetime
) -> None:
    """Ask nobody about such pictures by the questions of a drawing, which nobody has seen yet."""
    digests = digests_beside_classes(session, campaign.id)
    if not digests:
        return
    ids = session.scalars(_about(campaign.id, digests).where(Question.drawing == drawing)).all()
    for start in range(0, len(ids), CHUNK):
        set_aside(session, campaign, ids[start : start + CHUNK], by=by, now=now)


def count_beside_classes(session: Session, campaign_id: UUID) -> int:
    """How many drawn questions are about such pictures."""
    return beside_classes(session, campaign_id)[0]


def never_asked(session: Session, campaign: Campaign | LockedCampaign) -> int:
    """The same number, kept until more is drawn."""
    key = campaign.id, campaign.question_count
    if key not in _known:
        if len(_known) >= KNOWN:
            _known.clear()
        _known[key] = count_beside_classes(session, campaign.id)
    return _known[key]


def beside_classes(session: Session, campaign_id: UUID) -> tuple[int, int]:
    """How many drawn questions are about such pictures, and how many of the pictures were drawn."""
    digests = digests_beside_classes(session, campaign_id)
    if not digests:
        return 0, 0
    counts = func.count(), func.count(Question.example_id.distinct())
    about = _about(campaign_id, digests).where(IS_SET_ASIDE, Question.purpose != Purpose.GOLD)
    questions, pictures = session.execute(about.with_only_columns(*counts)).one()
    return questions, pictures


def questions_beside_classes(session: Session, campaign_ids: Collection[UUID]) -> dict[UUID, int]:
    """The same number of questions by campaign; those that have none are missing."""
    rows = session.execute(
        select(CampaignClass.campaign_id, CampaignClass.example_ids).where(
            CampaignClass.campaign_id.in_(campaign_ids)
        )
    )
    shown = {campaign_id for campaign_id, example_ids in rows if example_ids}
    counts = {campaign_id: count_beside_classes(session, campaign_id) for campaign_id in shown}
    return {campaign_id: count for campaign_id, count in counts.items() if count}


def _about(campaign_id: UUID, digests: Collection[str]) -> Select[int]:
    return (
        select(Question.id)
        .join(Example, Example.id == Question.example_id)
        .where(Question.campaign_id == campaign_id, Example.digest.in_(digests))
    )
