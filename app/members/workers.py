"""Outside workers: they come by a campaign's link that carries their id, and get a completion code."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Select, func, select, update
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.callers import digest
from app.accounts.models import Role, User
from app.annotation.models import Answer, Question
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign, CampaignMember, CampaignState
from app.campaigns.noting import note
from app.journal.models import Action
from app.members.errors import NoPlaceLeft, NotWelcome, WorkerIdNeeded, WorkerLinkNotFound
from app.members.models import MAX_WORKER_ID, OutsideWorker, WorkerLink

WORKER_DOMAIN = "worker.invalid"  # a reserved name: nobody has an address there
CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none is taken for another
_WORKER_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_WORKER_ID}}}")


@dataclass(frozen=True, slots=True)
class ShownWorker:
    """An outside worker as an admin sees them, who pays them by their platform's id."""

    user_id: UUID
    name: str
    worker_id: str
    link_id: UUID
    answers: int  # that count for the code
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Completion:
    """How far an outside worker is; `code` is None until they are done."""

    answers: int
    needed: int
    code: str | None


def make_link(
    session: Session,
    campaign: Campaign,
    *,
    answers_needed: int,
    max_workers: int,
    code: str = "",
    note_: str = "",
    by: User,
    now: datetime,
) -> tuple[WorkerLink, str]:
    """A link for outside workers, and its secret, which is shown once.

    Args:
        campaign: of which those who come are members, and of no other.
        answers_needed: until the code is shown.
        max_workers: accounts that it makes at most.
        code: that the platform expects; "": one is drawn.
        note_: which study it is for.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    secret = secrets.token_urlsafe(24)
    link = WorkerLink(
        campaign_id=campaign.id,
        token_hash=digest(secret),
        note=note_,
        answers_needed=answers_needed,
        code=code or "".join(secrets.choice(CODE_LETTERS) for _ in range(8)),
        max_workers=max_workers,
        created_by_id=by.id,
        created_at=now,
    )
    session.add(link)
    session.flush()
    facts = {"study": note_, "answers": answers_needed, "workers": max_workers}
    note(session, Action.WORKER_LINK_MADE, campaign, by=by, details=facts)
    return link, secret


def join_url(public_url: str, secret: str) -> str:
    """The link to hand on; the platform adds the worker's id as a parameter."""
    return f"{public_url.rstrip('/')}/join/{secret}"


def links_of(session: Session, campaign: Campaign, *, by: User) -> Sequence[WorkerLink]:
    """The links of a campaign, newest first.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    query = select(WorkerLink).where(WorkerLink.campaign_id == campaign.id)
    return session.scalars(query.order_by(WorkerLink.created_at.desc(), WorkerLink.id)).all()


def end_link(session: Session, campaign: Campaign, link_id: UUID, *, by: User, now: datetime) -> None:
    """Let nobody come by a link any more; who is at work goes on. Twice is once.

    Raises:
        NotAllowed: `by` is no admin.
        WorkerLinkNotFound: the campaign has no such link.
    """
    accounts.require_admin(by)
    link = session.get(WorkerLink, link_id)
    if link is None or link.campaign_id != campaign.id:
        raise WorkerLinkNotFound
    if link.ended_at is None:
        link.ended_at = now
        note(session, Action.WORKER_LINK_ENDED, campaign, by=by, details={"study": link.note})


def find_link(session: Session, secret: str) -> tuple[WorkerLink, Campaign]:
    """The link that can be used, and its campaign.

    Raises:
        WorkerLinkNotFound: unknown or ended, or the campaign is neither open nor paused.
    """
    link = session.scalar(select(WorkerLink).where(WorkerLink.token_hash == digest(secret)))
    if link is None or link.ended_at is not None:
        raise WorkerLinkNotFound
    campaign = campaigns.any_campaign(session, link.campaign_id)
    if campaign.state not in (CampaignState.OPEN, CampaignState.PAUSED):
        raise WorkerLinkNotFound
    return link, campaign


def worker_id_of(given: Sequence[str]) -> str | None:
    """The first of these that is a worker's id; platforms leave others empty or as a placeholder."""
    return next((text for text in given if _WORKER_ID.fullmatch(text)), None)


def join(session: Session, secret: str, worker_id: str, *, now: datetime) -> tuple[User, WorkerLink]:
    """The account of an outside worker in the link's campaign; made the first time, the same ever after.

    Only accounts that such links made are ever found here: no id opens anybody else's.

    Raises:
        WorkerLinkNotFound: the link cannot be used.
        WorkerIdNeeded: that is no id.
        NoPlaceLeft: as many came as it admits.
        NotWelcome: they were disabled or taken out of the campaign.
    """
    link, campaign = find_link(session, secret)
    if worker_id_of([worker_id]) is None:
        raise WorkerIdNeeded
    # One at a time, so that nobody comes twice and none is one too many.
    session.execute(select(WorkerLink.id).where(WorkerLink.campaign_id == campaign.id).with_for_update())
    known = session.scalar(
        select(OutsideWorker).where(
            OutsideWorker.campaign_id == campaign.id, OutsideWorker.worker_id == worker_id
        )
    )
    if known is None:
        return _new(session, link, worker_id, now=now), link
    user = session.get_one(User, known.user_id)
    is_member = session.get(CampaignMember, (campaign.id, user.id)) is not None
    if user.disabled_at is not None or not user.is_outside or not is_member:
        raise NotWelcome
    known.link_id = link.id
    return user, link


def _new(session: Session, link: WorkerLink, worker_id: str, *, now: datetime) -> User:
    place = session.scalar(
        update(WorkerLink)
        .where(WorkerLink.id == link.id, WorkerLink.workers < WorkerLink.max_workers)
        .values(workers=WorkerLink.workers + 1)
        .returning(WorkerLink.workers)
    )
    if place is None:
        raise NoPlaceLeft
    number = session.scalar(select(func.count()).where(User.is_outside)) or 0
    user = accounts.add_user(
        session,
        email=f"{uuid4().hex}@{WORKER_DOMAIN}",
        name=f"Worker {number + 1}",
        role=Role.ANNOTATOR,
        password_hash=None,
        is_outside=True,
        is_invited=True,
        now=now,
    )
    session.add(CampaignMember(campaign_id=link.campaign_id, user_id=user.id))
    session.add(
        OutsideWorker(user_id=user.id, campaign_id=link.campaign_id, link_id=link.id, worker_id=worker_id)
    )
    session.flush()
    return user


def workers_of(session: Session, campaign: Campaign, *, by: User) -> list[ShownWorker]:
    """Who came by the links of a campaign, in the order of their ids.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    counted = _counted(campaign.id).group_by(Answer.user_id).add_columns(Answer.user_id).subquery()
    answers = func.coalesce(counted.c.answers, 0)
    rows = session.execute(
        select(
            User.id,
            User.name,
            OutsideWorker.worker_id,
            OutsideWorker.link_id,
            answers,
            answers >= WorkerLink.answers_needed,
        )
        .join(OutsideWorker, OutsideWorker.user_id == User.id)
        .join(WorkerLink, WorkerLink.id == OutsideWorker.link_id)
        .outerjoin(counted, counted.c.user_id == User.id)
        .where(OutsideWorker.campaign_id == campaign.id)
        .order_by(OutsideWorker.worker_id)
    )
    return [ShownWorker(*row) for row in rows]


def completion(session: Session, campaign: Campaign, user: User) -> Completion | None:
    """How far an outside worker of this campaign is; None for anybody else."""
    link = session.scalar(
        select(WorkerLink)
        .join(OutsideWorker, OutsideWorker.link_id == WorkerLink.id)
        .where(OutsideWorker.user_id == user.id, OutsideWorker.campaign_id == campaign.id)
    )
    if link is None:
        return None
    answers = session.scalar(_counted(campaign.id).where(Answer.user_id == user.id)) or 0
    is_done = answers >= link.answers_needed
    return Completion(answers, link.answers_needed, link.code if is_done else None)


def _counted(campaign_id: UUID) -> Select[int]:
    """Answers that count for the code: live, and not faster than anybody can look."""
    return (
        select(func.count().label("answers"))
        .select_from(Answer)
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign_id, Answer.superseded_at.is_(None), ~Answer.is_hasty)
    )
