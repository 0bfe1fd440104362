"""What people name after a no: the class that the picture shows. No label is derived from it."""

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.errors import KeyReused, NothingToName
from app.annotation.models import Answer, AnswerValue, Naming, Question
from app.campaigns.models import Campaign, CampaignClass

NONE_OF_THEM = -1  # in what clients send: no class of the campaign, or they cannot tell


def keep_names(
    session: Session,
    campaign_id: UUID,
    named: Mapping[UUID, int],
    *,
    named_ms: Mapping[UUID, int | None] = MappingProxyType({}),
    by: User,
) -> None:
    """Keep what this person named beside their answers, by the keys of these; the same twice is once.

    An answer that was refused names nothing.

    Args:
        session: to write with.
        campaign_id: in which they answered.
        named: position of the class, or NONE_OF_THEM.
        named_ms: how long that took them after their no, where it is known.
        by: this person.

    Raises:
        NothingToName: the campaign does not ask for it, the answer is no no, or there is no such other class.
        KeyReused: they named something else before.
    """
    campaign = session.execute(
        select(Campaign.asks_which, func.count())
        .join(CampaignClass, CampaignClass.campaign_id == Campaign.id)
        .where(Campaign.id == campaign_id)
        .group_by(Campaign.id, Campaign.asks_which)
    ).one()
    asks_which, num_classes = campaign
    if not asks_which:
        raise NothingToName
    rows = session.execute(
        select(Answer.id, Answer.key, Answer.value, Question.candidate_class, Naming.answer_id, Naming.class_)
        .join(Question, Question.id == Answer.question_id)
        .outerjoin(Naming, Naming.answer_id == Answer.id)
        .where(Question.campaign_id == campaign_id, Answer.user_id == by.id, Answer.key.in_(list(named)))
    )
    fresh: list[dict[str, int | None]] = []
    for answer_id, key, value, asked, known_id, known in rows:
        class_ = None if named[key] == NONE_OF_THEM else named[key]
        if value is not AnswerValue.NO or class_ == asked or (class_ is not None and class_ >= num_classes):
            raise NothingToName
        if known_id is None:
            fresh.append({"answer_id": answer_id, "class_": class_, "named_ms": named_ms.get(key)})
        elif known != class_:
            raise KeyReused(key)
    if fresh:
        session.execute(insert(Naming), fresh)


def naming_ms(session: Session, campaign_id: UUID) -> dict[UUID, int]:
    """How long people took to name what pictures show, by person; of answers that were taken back nothing."""
    rows = session.execute(
        select(Answer.user_id, func.sum(Naming.named_ms))
        .join(Naming, Naming.answer_id == Answer.id)
        .join(Question, Question.id == Answer.question_id)
        .where(
            Question.campaign_id == campaign_id,
            Answer.superseded_at.is_(None),
            Naming.named_ms.is_not(None),
        )
        .group_by(Answer.user_id)
    )
    return {user_id: int(ms or 0) for user_id, ms in rows}
