"""Pictures that cannot be used: set aside once enough people said so, until a reviewer keeps them.

The word is about the picture, so it counts for all its questions of the campaign, known pictures included.
What is set aside is asked of nobody more and gives no label. Nobody who answers is told: who holds a question
of it may still answer.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, select, update
from sqlalchemy.orm import Session, aliased

from app.accounts.models import User
from app.annotation import rules
from app.annotation.locking import LockedCampaign, lock_campaign, lock_questions
from app.annotation.models import IS_SET_ASIDE, AnswerValue, PictureReview, Question
from app.annotation.submissions import Stored, SubmittedAnswer
from app.annotation.tallies import load_tallies
from app.campaigns.drawings import last_drawn
from app.campaigns.models import Campaign
from app.campaigns.noting import note
from app.journal.models import Action


def pictures_set_aside(campaign_id: UUID) -> Select[int]:
    """Ids of the examples that give no label in this campaign."""
    return select(Question.example_id).where(Question.campaign_id == campaign_id, IS_SET_ASIDE).distinct()


def questions_of_pictures(session: Session, campaign_id: UUID, question_ids: Collection[int]) -> set[int]:
    """Ids of all the campaign's questions about the pictures that these are about."""
    if not question_ids:
        return set()
    named = aliased(Question)
    examples = select(named.example_id).where(named.campaign_id == campaign_id, named.id.in_(question_ids))
    query = select(Question.id).where(Question.campaign_id == campaign_id, Question.example_id.in_(examples))
    return set(session.scalars(query))


def with_their_pictures(
    session: Session, campaign_id: UUID, submitted: Sequence[SubmittedAnswer]
) -> set[int]:
    """Ids of the questions that answers bear on: of a picture that cannot be used, all there are about it.

    They are to be locked at once, in the order in which every other request locks them.
    """
    unusable = [item.question_id for item in submitted if item.value is AnswerValue.UNUSABLE]
    return {item.question_id for item in submitted} | questions_of_pictures(session, campaign_id, unusable)


def set_aside_by_answers(
    session: Session,
    campaign: LockedCampaign,
    stored: Sequence[Stored],
    asked: Mapping[int, rules.Asked],
    *,
    by: User,
    now: datetime,
) -> None:
    """Set pictures aside of which enough people say by now that they cannot be used.

    Args:
        session: a writing one, in which the answers stand.
        campaign: that of the answers.
        stored: the answers.
        asked: all questions about their pictures, as they were before, locked.
        by: who answered.
        now: when.
    """
    pictures = {
        item.question.row.example_id
        for item in stored
        if item.answer.value is AnswerValue.UNUSABLE and not item.is_hasty
    }
    if not pictures:
        return
    kept = set(session.scalars(_reviewed(campaign.id, pictures)))
    for example_id in sorted(pictures - kept):
        about = [question for question in asked.values() if question.row.example_id == example_id]
        if len(_told_unusable(about) | {by.id}) >= rules.UNUSABLE_LIMIT:
            set_aside(session, campaign, {question.row.id for question in about}, by=by, now=now)
            if not any(question.row.is_set_aside for question in about):
                _note(session, Action.PICTURE_SET_ASIDE, campaign, example_id)


def set_aside(
    session: Session,
    campaign: Campaign | LockedCampaign,
    question_ids: Collection[int],
    *,
    by: User,
    now: datetime,
) -> None:
    """Ask nobody more about these, which are locked: all questions of a picture."""
    waiting = session.execute(
        select(Question.id, Question.candidate_class).where(
            Question.id.in_(question_ids), Question.is_waiting
        )
    ).all()
    session.execute(
        update(Question).where(Question.id.in_(question_ids)).values(is_set_aside=True, is_waiting=False),
        execution_options={"synchronize_session": False},
    )
    _count_finished(session, campaign, [row.candidate_class for row in waiting], 1, by=by, now=now)


def bring_back_by_undo(
    session: Session, campaign: LockedCampaign, pictures: Collection[int], *, by: User, now: datetime
) -> None:
    """Ask on about pictures of which, once a word was taken back, too few people say it.

    All their questions are locked.
    """
    reviewed = set(session.scalars(_reviewed(campaign.id, pictures))) if pictures else set()
    for example_id in sorted(set(pictures) - reviewed):
        ids = session.scalars(
            select(Question.id).where(
                Question.campaign_id == campaign.id, Question.example_id == example_id, IS_SET_ASIDE
            )
        ).all()
        _, asked = lock_questions(session, campaign.id, ids)
        if len(_told_unusable(asked.values())) < rules.UNUSABLE_LIMIT:
            bring_back(session, campaign, asked, by=by, now=now)
            if asked:
                _note(session, Action.PICTURE_BROUGHT_BACK, campaign, example_id)


def _note(session: Session, action: Action, campaign: LockedCampaign, example_id: int) -> None:
    """A rule did it: who said what of a picture is told to admins beside it, as long as it stands."""
    noted = session.get_one(Campaign, campaign.id)
    note(session, action, noted, by=None, details={"picture": example_id})


def bring_back(
    session: Session, campaign: LockedCampaign, asked: Mapping[int, rules.Asked], *, by: User, now: datetime
) -> None:
    """Ask on about these, which are locked, where they still need answers."""
    again = {id_ for id_, question in asked.items() if question.row.is_set_aside and rules.waits(question)}
    for is_waiting, ids in ((True, again), (False, set(asked) - again)):
        session.execute(
            update(Question)
            .where(Question.id.in_(ids), Question.is_set_aside)
            .values(is_set_aside=False, is_waiting=is_waiting),
            execution_options={"synchronize_session": False},
        )
    classes = [asked[id_].row.candidate_class for id_ in again]
    _count_finished(session, campaign, classes, -1, by=by, now=now)


def review_picture(
    session: Session, campaign: Campaign, example_id: int, *, is_kept: bool, by: User, now: datetime
) -> bool:
    """Keep a picture or leave it out in everybody's place; gives whether the campaign asks about it."""
    locked = lock_campaign(session, campaign.id, by=by)  # of a reviewer, who may know of every campaign
    here = select(Question.id).where(
        Question.campaign_id == campaign.id,
        Question.example_id == example_id,
        Question.drawing <= last_drawn(campaign.id).scalar_subquery(),
    )
    _, asked = lock_questions(session, campaign.id, session.scalars(here).all())
    if not asked:
        return False
    session.merge(
        PictureReview(
            campaign_id=campaign.id, example_id=example_id, is_kept=is_kept, user_id=by.id, reviewed_at=now
        )
    )
    session.flush()  # refuses what two reviewers say at the same moment for the first time
    if is_kept:
        bring_back(session, locked, asked, by=by, now=now)
    else:
        set_aside(session, locked, asked, by=by, now=now)
    return True


def _told_unusable(about: Iterable[rules.Asked]) -> set[UUID]:
    return {user_id for question in about for user_id in question.told_unusable}


def _reviewed(campaign_id: UUID, pictures: Collection[int]) -> Select[int]:
    """Which of these a reviewer kept or left out: no answer changes that."""
    return select(PictureReview.example_id).where(
        PictureReview.campaign_id == campaign_id, PictureReview.example_id.in_(pictures)
    )


def _count_finished(
    session: Session,
    campaign: Campaign | LockedCampaign,
    classes: Sequence[int],
    sign: int,
    *,
    by: User,
    now: datetime,
) -> None:
    tallies = load_tallies(session, campaign, set(classes), by=by, now=now)
    for class_ in classes:
        tallies[class_].finished += sign
    session.flush()
