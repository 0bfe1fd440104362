"""Whether anything is left for somebody, now or when others have answered, whoever holds it."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ColumnElement, TextClause, Uuid, bindparam, exists, literal_column, or_, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Answer, Question
from app.annotation.queue import IS_FIRST, IS_WAITING, RETURNS, not_met_as_known, not_met_as_known_by
from app.campaigns.models import Campaign

_CAMPAIGN, _ME = bindparam("campaign", type_=Uuid()), bindparam("me", type_=Uuid())


def _later_for(
    person: ColumnElement[UUID], met: ColumnElement[bool] | TextClause
) -> tuple[ColumnElement[bool] | TextClause, ...]:
    answered = exists().where(
        Answer.question_id == Question.id, Answer.user_id == person, Answer.superseded_at.is_(None)
    )
    return Question.campaign_id == _CAMPAIGN, IS_WAITING, ~answered, met


def _is_there(*which: ColumnElement[bool] | TextClause) -> ColumnElement[bool]:
    """Whether a question that waits is so: by the indexes of the queue, which hold no others."""
    return or_(exists().where(*which, IS_FIRST), exists().where(*which, RETURNS))


MINE_LATER = _later_for(_ME, not_met_as_known())
_HAS_MORE = select(_is_there(*MINE_LATER))
_WAITS = select(_is_there(Question.campaign_id == _CAMPAIGN, IS_WAITING))
# By its name: as a column it would join the statement's people anew, two levels below.
_PERSON = f'"{User.__tablename__}".id'
_WITH_MORE = select(User.id).where(
    User.id.in_(bindparam("people", expanding=True, type_=Uuid())),
    _is_there(*_later_for(literal_column(_PERSON, Uuid()), not_met_as_known_by(_PERSON))),
)


def has_more(session: Session, campaign: Campaign, user_id: UUID) -> bool:
    """Whether anything waits that this person has not answered, whoever holds it now."""
    return bool(session.scalar(_HAS_MORE, {"campaign": campaign.id, "me": user_id}))


def with_more(session: Session, campaign: Campaign, people: Collection[UUID]) -> Collection[UUID]:
    """Those of these people for whom anything waits, in two statements however many they are."""
    here = {"campaign": campaign.id}
    if not people or not session.scalar(_WAITS, here):
        return set()
    return set(session.scalars(_WITH_MORE, here | {"people": list(people)}))
