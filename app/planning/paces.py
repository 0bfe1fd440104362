"""How long a question takes people: alone on a card, and on a page of several pictures."""

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.annotation.models import Answer, Question
from app.campaigns.models import Campaign

LATEST = 5_000  # answers that tell it
ENOUGH = 12  # on pages, before they tell anything: the smallest page


@dataclass(frozen=True, slots=True)
class Paces:
    """Mean seconds for a question; None where too few were measured."""

    card: float | None
    page: float | None


def paces_of(session: Session, campaign: Campaign) -> Paces:
    """From a campaign's latest answers whose time is known.

    The answers of a page come together, and each has the page's time by the number of its pictures. So those
    of one person that came at one moment with one time stood on a page.
    """
    latest = (
        select(Answer.user_id, Answer.created_at, Answer.response_ms)
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign.id, Answer.response_ms.is_not(None))
        .order_by(Answer.id.desc())
        .limit(LATEST)
        .subquery()
    )
    together = (
        select(func.count().label("pictures"), latest.c.response_ms)
        .group_by(latest.c.user_id, latest.c.created_at, latest.c.response_ms)
        .subquery()
    )
    is_page = together.c.pictures > 1
    sums = {
        on_page: (int(count), int(ms))
        for on_page, count, ms in session.execute(
            select(
                is_page,
                func.sum(together.c.pictures),
                func.sum(together.c.pictures * together.c.response_ms),
            ).group_by(is_page)
        )
    }
    return Paces(card=_mean(sums.get(False), least=1), page=_mean(sums.get(True), least=ENOUGH))


def _mean(found: tuple[int, int] | None, *, least: int) -> float | None:
    """In seconds, of a number of questions and their milliseconds in all."""
    if found is None or found[0] < least:
        return None
    return max(found[1] / found[0] / 1000, 0.01)
