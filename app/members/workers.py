"""Outside workers: they come by a campaign's link that carries their id, and get a completion code."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    Subquery,
    and_,
    case,
    exists,
    func,
    not_,
    null,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session, aliased

from app.accounts import service as accounts
from app.accounts.callers import digest
from app.accounts.models import Role, User
from app.annotation.models import OF_CLASS, Answer, Question
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign, CampaignMember, CampaignState
from app.campaigns.noting import note
from app.journal.models import Action
from app.members.errors import NoPlaceLeft, NothingLeft, NotWelcome, WorkerIdNeeded, WorkerLinkNotFound
from app.members.models import MAX_WORKER_ID, OutsideWorker, WorkerLink, WorkerVisit

WORKER_DOMAIN = "worker.invalid"  # a reserved name: nobody has an address there
CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none is taken for another
UNTOLD_PART = 5  # of the answers for a code one in so many may say neither yes nor no
_WORKER_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_WORKER_ID}}}")


@dataclass(frozen=True, slots=True)
class ShownWorker:
    """An outside worker as an admin sees them, who pays them by their platform's id: by each link once."""

    user_id: UUID
    name: str
    worker_id: str
    link_id: UUID
    study: str  # for which the link is
    answers: int  # that count for the code; see _counts
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Completion:
    """How far an outside worker is by one link; `code` is None until they are done.

    `early_code` is for whom nothing is left to ask before they are, though they looked at most of it.
    """

    answers: int
    needed: int
    untold_most: int  # of these may say no more than that nobody can tell, or that a picture cannot be used
    code: str | None
    early_code: str
    looked_at_most: bool  # whether most answers count, of those by this link and of all here


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
    accounts.require_admin_throughout(session, by)
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


def early_code(link: WorkerLink) -> str:
    """What an outside worker hands in who looked, and answered something, before nothing was left to ask.

    Another one than the link's code, so that the platform tells both apart. It follows from the row: who
    comes by the link knows its secret alone, and not its id.
    """
    letters = sha256(f"early {link.id} {link.token_hash}".encode()).digest()[:8]
    return "".join(CODE_LETTERS[letter % len(CODE_LETTERS)] for letter in letters)


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
    """Let nobody come by a link any more; who is at work by it goes on. Twice is once.

    What they answer counts for it until they come by another one.

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
        WorkerLinkNotFound: unknown or ended, whoever made it is no admin any more, or the campaign is neither
            open nor paused.
    """
    link = session.scalar(
        select(WorkerLink)
        .join(User, User.id == WorkerLink.created_by_id)
        .where(WorkerLink.token_hash == digest(secret), User.role == Role.ADMIN, User.disabled_at.is_(None))
    )
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

    The same whichever of the campaign's links they come by: nobody confirms their own answers. What they
    answer from now on counts for this one.

    Only accounts that such links made are ever found here: no id opens anybody else's.

    Raises:
        WorkerLinkNotFound: the link cannot be used.
        WorkerIdNeeded: that is no id.
        NoPlaceLeft: as many came as it admits.
        NothingLeft: somebody new could be asked nothing, and would have come for no code.
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
        waits = exists().where(Question.campaign_id == campaign.id, Question.is_waiting)
        if not session.scalar(select(waits)):
            raise NothingLeft
        return _new(session, link, worker_id, now=now), link
    user = session.get_one(User, known.user_id)
    is_member = session.get(CampaignMember, (campaign.id, user.id)) is not None
    if user.disabled_at is not None or not user.is_outside or not is_member:
        raise NotWelcome
    if not session.scalar(select(exists().where(WorkerVisit.user_id == user.id))):
        session.add(WorkerVisit(user_id=user.id, link_id=known.link_id))  # see _visits
        session.flush()
    now_by = select(WorkerVisit.link_id).where(WorkerVisit.user_id == user.id, WorkerVisit.ended_at.is_(None))
    if session.scalar(now_by) != link.id:
        _change_link(session, known, link, now=now)
    return user, link


def _change_link(session: Session, worker: OutsideWorker, link: WorkerLink, *, now: datetime) -> None:
    here = WorkerVisit.user_id == worker.user_id
    was_here = select(WorkerVisit.id).where(here, WorkerVisit.link_id == link.id)
    if session.scalar(was_here.limit(1)) is None:
        _take_place(session, link)
    session.execute(update(WorkerVisit).where(here, WorkerVisit.ended_at.is_(None)).values(ended_at=now))
    session.add(WorkerVisit(user_id=worker.user_id, link_id=link.id, began_at=now))
    worker.link_id = link.id


def _take_place(session: Session, link: WorkerLink) -> None:
    place = session.scalar(
        update(WorkerLink)
        .where(
            WorkerLink.id == link.id,
            WorkerLink.workers < WorkerLink.max_workers,
            WorkerLink.ended_at.is_(None),  # an admin may have ended it since it was read
        )
        .values(workers=WorkerLink.workers + 1)
        .returning(WorkerLink.workers)
    )
    if place is None:
        session.refresh(link)
        raise NoPlaceLeft if link.ended_at is None else WorkerLinkNotFound


def _new(session: Session, link: WorkerLink, worker_id: str, *, now: datetime) -> User:
    _take_place(session, link)
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
    session.add(WorkerVisit(user_id=user.id, link_id=link.id))
    session.flush()
    return user


def workers_of(session: Session, campaign: Campaign, *, by: User) -> list[ShownWorker]:
    """Who came by the links of a campaign, in the order of their ids, and by the newest link first.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    given = _given(campaign.id)
    answers = _counts(given)
    visits = _visits()
    came = select(visits.c.user_id, visits.c.link_id).distinct().subquery()
    rows = session.execute(
        select(
            User.id,
            User.name,
            OutsideWorker.worker_id,
            WorkerLink.id,
            WorkerLink.note,
            answers,
            answers >= WorkerLink.answers_needed,
        )
        .join(OutsideWorker, OutsideWorker.user_id == User.id)
        .join(came, came.c.user_id == User.id)
        .join(WorkerLink, WorkerLink.id == came.c.link_id)
        .outerjoin(given, and_(given.c.user_id == User.id, given.c.link_id == WorkerLink.id))
        .where(OutsideWorker.campaign_id == campaign.id)
        .order_by(OutsideWorker.worker_id, WorkerLink.created_at.desc(), WorkerLink.id)
    )
    return [ShownWorker(*row) for row in rows]


def completions(session: Session, campaign: Campaign, user: User) -> list[Completion]:
    """How far an outside worker of this campaign is by the link by which they came last; and before it, if
    they are done by others, the codes of these. Empty for anybody else."""
    worker = session.scalar(
        select(OutsideWorker).where(
            OutsideWorker.user_id == user.id, OutsideWorker.campaign_id == campaign.id
        )
    )
    if worker is None:
        return []
    given = _given(campaign.id, user.id)
    visits = _visits()
    visited = select(visits.c.link_id).where(visits.c.user_id == user.id)
    rows = session.execute(
        select(WorkerLink, _counts(given), func.coalesce(given.c.given, 0))
        .outerjoin(given, given.c.link_id == WorkerLink.id)
        .where(WorkerLink.id.in_(visited))
        .order_by(WorkerLink.id == worker.link_id, WorkerLink.created_at, WorkerLink.id)
    ).all()
    counted, in_all = sum(row[1] for row in rows), sum(row[2] for row in rows)
    found = [
        _completion(link, answers, is_most=2 * answers > by_link and 2 * counted > in_all)
        for link, answers, by_link in rows
    ]
    return [one for one in found[:-1] if one.code is not None] + found[-1:]


def _completion(link: WorkerLink, answers: int, *, is_most: bool) -> Completion:
    code = link.code if answers >= link.answers_needed else None
    most = link.answers_needed // UNTOLD_PART
    return Completion(answers, link.answers_needed, most, code, early_code(link), is_most)


def _visits() -> Subquery:
    """When each worker was there by which link.

    The version before writes no visits, and runs until every host is changed: whom it let in has been there
    by their link from the beginning.
    """
    has_one = exists().where(WorkerVisit.user_id == OutsideWorker.user_id)
    return union_all(
        select(WorkerVisit.user_id, WorkerVisit.link_id, WorkerVisit.began_at, WorkerVisit.ended_at),
        select(OutsideWorker.user_id, OutsideWorker.link_id, null(), null()).where(~has_one),
    ).subquery()


def _given(campaign_id: UUID, user_id: UUID | None = None) -> Subquery:
    """Answers that stand, by person and link: yes and no, and others, that are not faster than anybody can
    look; and all of them."""
    is_told, is_looked = Answer.value.in_(OF_CLASS), ~Answer.is_hasty
    earlier = aliased(Answer)
    first = (
        select(func.min(earlier.created_at))
        .where(earlier.question_id == Answer.question_id, earlier.user_id == Answer.user_id)
        .scalar_subquery()
    )
    visits = _visits()
    visit = and_(
        visits.c.user_id == Answer.user_id,
        or_(visits.c.began_at.is_(None), visits.c.began_at <= first),
        or_(visits.c.ended_at.is_(None), visits.c.ended_at > first),
    )
    who = [] if user_id is None else [Answer.user_id == user_id]
    return (
        select(
            Answer.user_id,
            visits.c.link_id,
            func.count().filter(is_told, is_looked).label("told"),
            func.count().filter(not_(is_told), is_looked).label("untold"),
            func.count().label("given"),
        )
        .join(Question, Question.id == Answer.question_id)
        .join(visits, visit)
        .where(Question.campaign_id == campaign_id, Answer.superseded_at.is_(None), *who)
        .group_by(Answer.user_id, visits.c.link_id)
        .subquery()
    )


def _counts(given: Subquery) -> ColumnElement[int]:
    """How many of them count for the code of the link in the same row: each yes and no, a part of the others.

    Who answers "can't tell" to everything has done no work.
    """
    most = WorkerLink.answers_needed // UNTOLD_PART
    untold = func.coalesce(given.c.untold, 0)
    return func.coalesce(given.c.told, 0) + case((untold < most, untold), else_=most)
