"""Pictures of which people say that they cannot be used: a reviewer keeps them or leaves them out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, literal_column, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.errors import StandsBesideClass
from app.annotation.models import Answer, PictureReview, Question
from app.campaigns.models import Campaign
from app.campaigns.noting import note
from app.datasets.errors import ExampleNotFound
from app.datasets.models import Example
from app.journal.models import Action
from app.quality.models import Decision

# As in the partial index.
_IS_UNUSABLE = Answer.value == literal_column("'unusable'")


@dataclass(frozen=True, slots=True)
class UnusablePicture:
    """A picture with what was said of it."""

    example_id: int
    position: int
    said_by: tuple[str, ...]  # names
    set_aside: bool
    kept: bool | None = None  # None: not reviewed yet
    reviewed_by: str | None = None
    reviewed_at: datetime | None = None


def unusable_pictures(
    session: Session, campaign: Campaign, *, by: User, after: int = 0, limit: int
) -> list[UnusablePicture]:
    """Pictures of which somebody said that they cannot be used, and reviewed ones, by the example's id.

    Raises:
        NotAllowed: `by` is no reviewer.
    """
    accounts.require_reviewer(by)
    reviewed = select(PictureReview.example_id).where(PictureReview.campaign_id == campaign.id)
    all_ = _told(campaign.id).with_only_columns(Question.example_id).union(reviewed).subquery()
    ids = select(all_.c.example_id).where(all_.c.example_id > after).order_by(all_.c.example_id).limit(limit)
    return _shown(session, campaign, session.scalars(ids).all())


def pictures_to_review(
    session: Session, campaign: Campaign, *, limit: int
) -> tuple[int, list[UnusablePicture]]:
    """How many of them nobody reviewed, and those of which most people say it."""
    reviewed = select(PictureReview.example_id).where(PictureReview.campaign_id == campaign.id)
    people = func.count(Answer.user_id.distinct()).label("people")
    waiting = (
        _told(campaign.id)
        .with_only_columns(Question.example_id, people)
        .where(Question.example_id.not_in(reviewed))
        .group_by(Question.example_id)
    )
    count = session.scalar(select(func.count()).select_from(waiting.subquery())) or 0
    rows = session.execute(waiting.order_by(people.desc(), Question.example_id).limit(limit)).all()
    return count, _shown(session, campaign, [row.example_id for row in rows])


def reviewed_pictures(
    session: Session, campaign: Campaign, *, limit: int
) -> tuple[int, list[UnusablePicture]]:
    """How many were reviewed, and the newest of them."""
    here = PictureReview.campaign_id == campaign.id
    count = session.scalar(select(func.count()).where(here)) or 0
    newest = (
        select(PictureReview.example_id)
        .where(here)
        .order_by(PictureReview.reviewed_at.desc(), PictureReview.example_id)
        .limit(limit)
    )
    return count, _shown(session, campaign, session.scalars(newest).all())


def review_picture(
    session: Session, campaign: Campaign, example_id: int, *, kept: bool, by: User, now: datetime
) -> UnusablePicture:
    """Keep a picture, which is asked about on, or leave it out: it gives no label. The last word counts.

    What people said stays. A kept picture is not set aside again, whatever they say.

    Raises:
        NotAllowed: `by` is no reviewer.
        ExampleNotFound: the campaign asks nothing about such an example.
        StandsBesideClass: it is to be kept, and annotators see it beside a class.
    """
    accounts.require_reviewer(by)
    if kept and annotation.stands_beside_class(session, campaign.id, example_id):
        raise StandsBesideClass
    if not annotation.review_picture(session, campaign, example_id, is_kept=kept, by=by, now=now):
        raise ExampleNotFound
    for question_id in session.scalars(_waiting_although_decided(campaign.id, example_id)).all():
        annotation.wait_no_longer(session, campaign, question_id, by=by, now=now)
    facts = {"picture": example_id, "decision": "kept" if kept else "left out"}
    note(session, Action.PICTURE_REVIEWED, campaign, by=by, details=facts)
    return _shown(session, campaign, [example_id])[0]


def _told(campaign_id: UUID) -> Select[int]:
    return (
        select(Answer.id)
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign_id, _IS_UNUSABLE, Answer.superseded_at.is_(None))
    )


def _waiting_although_decided(campaign_id: UUID, example_id: int) -> Select[int]:
    return (
        select(Question.id)
        .join(Decision, Decision.question_id == Question.id)
        .where(
            Question.campaign_id == campaign_id,
            Question.example_id == example_id,
            Question.is_waiting,
            Decision.superseded_at.is_(None),
        )
    )


def _shown(session: Session, campaign: Campaign, ids: Sequence[int]) -> list[UnusablePicture]:
    """What is known of these, in this order."""
    told = _told(campaign.id).join(User, User.id == Answer.user_id).where(Question.example_id.in_(ids))
    names: dict[int, dict[UUID, str]] = {}
    for example_id, user_id, name in session.execute(
        told.with_only_columns(Question.example_id, User.id, User.name).order_by(Answer.id)
    ):
        names.setdefault(example_id, {})[user_id] = name
    aside = set(
        session.scalars(annotation.pictures_set_aside(campaign.id).where(Question.example_id.in_(ids)))
    )
    reviews = {
        review.example_id: (review.is_kept, name, review.reviewed_at)
        for review, name in session.execute(
            select(PictureReview, User.name)
            .join(User, User.id == PictureReview.user_id)
            .where(PictureReview.campaign_id == campaign.id, PictureReview.example_id.in_(ids))
            .execution_options(populate_existing=True)
        )
    }
    placed = select(Example.id, Example.position).where(Example.id.in_(ids))
    positions = dict(session.execute(placed).all())
    return [
        UnusablePicture(
            id_,
            positions[id_],
            tuple(names.get(id_, {}).values()),
            id_ in aside,
            *reviews.get(id_, (None, None, None)),
        )
        for id_ in ids
    ]
