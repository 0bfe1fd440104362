"""Whether outside workers can reach their code: whether enough is left to ask."""

import enum
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from app.annotation import service as annotation
from app.campaigns.models import Campaign, CampaignState
from app.members.models import WorkerLink
from app.members.workers import Completion, ShownWorker
from clarinet.recipes.counting import many


class Ending(enum.StrEnum):
    """How an outside worker's visit ends: whoever came must be able to end it at the platform."""

    NOT_YET = "not-yet"
    CODE = "code"  # enough was answered
    EARLY_CODE = "early-code"  # something was, with a look at most of it, and nothing is left to ask them
    RETURN = "return"  # less, and nothing more comes: they return the submission


def shortages(
    session: Session,
    campaign: Campaign,
    links: Sequence[WorkerLink],
    workers: Sequence[ShownWorker],
    *,
    now: datetime,
) -> list[str]:
    """Sentences for an admin: which codes cannot be reached as the campaign stands; none of a draft."""
    if campaign.state not in (CampaignState.OPEN, CampaignState.PAUSED):
        return []
    live = [link for link in links if link.ended_at is None and link.workers < link.max_workers]
    progress = annotation.progress(session, campaign, now=now)
    left = progress.waiting + progress.left_over  # what all at work have answered may be asked of who comes
    found = [
        f"{_named(link)} wants {link.answers_needed} answers of each worker, and "
        f"{many(left, 'question is', 'questions are')} left: nobody who comes now can reach "
        "its code. End it, or add questions."
        for link in live
        if link.answers_needed > left
    ]
    needed = {link.id: link.answers_needed for link in links}
    missing = sum((link.max_workers - link.workers) * link.answers_needed for link in live) + sum(
        needed[worker.link_id] - worker.answers for worker in workers if not worker.is_complete
    )
    to_come = None if progress.to_go is None else progress.to_go + progress.left_over
    if missing and not found and to_come is not None and missing > to_come:
        found.append(
            f"The codes of all these workers need {missing} more answers, and about {round(to_come)} "
            "are to come, of whomever: some will find nothing left to answer."
        )
    return found


def without_more(session: Session, campaign: Campaign, workers: Sequence[ShownWorker]) -> Collection[UUID]:
    """Workers who have no code by a link and may be asked nothing more, as the campaign stands."""
    without_code = {worker.user_id for worker in workers if not worker.is_complete}
    if campaign.state is CampaignState.CLOSED:
        return without_code
    paused = annotation.paused_among(session, campaign.id, without_code)
    return without_code.difference(annotation.with_more(session, campaign, without_code)) | paused


def may_come(session: Session, campaign: Campaign, user_id: UUID) -> bool:
    """Whether this person may be asked more, now or when others have answered."""
    if campaign.state is CampaignState.CLOSED or annotation.is_paused(session, campaign.id, user_id):
        return False
    return annotation.has_more(session, campaign, user_id)


def ending(session: Session, campaign: Campaign, user_id: UUID, completion: Completion) -> Ending:
    """How an outside worker's visit ends who is so far by the link by which they came last.

    Whoever throws questions away, answering faster than they look or always that they cannot tell, runs out
    of them by themselves: that is no early end.
    """
    if completion.code is not None:
        return Ending.CODE
    if may_come(session, campaign, user_id):
        return Ending.NOT_YET
    is_paid = completion.looked_at_most and not annotation.is_paused(session, campaign.id, user_id)
    return Ending.EARLY_CODE if is_paid else Ending.RETURN


def _named(link: WorkerLink) -> str:
    return f"The study “{link.note}”" if link.note else f"The link with the code {link.code}"
