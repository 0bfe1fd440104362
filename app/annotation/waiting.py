"""Letting finished questions wait for another answer, and those no longer that an admin settles."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import rules
from app.annotation.consensus import MAX_SLOTS
from app.annotation.left_to_ask import is_asked_of_all, people_at_work
from app.annotation.locking import apply_effect, lock_campaign, lock_questions, require_asking
from app.annotation.models import Question
from app.annotation.tallies import load_tallies
from app.campaigns.models import Campaign


def wait_again(
    session: Session, campaign: Campaign, question_ids: Sequence[int], *, by: User, now: datetime
) -> int:
    """Let each of these wait for one more answer than it has; gives how many do.

    Those stay as they are that wait already, are set aside, have MAX_SLOTS answers, or were answered by
    everybody at work; whoever met the picture as a known one is not asked, either.

    Raises:
        CampaignNotOpen: the campaign takes no answers.
    """
    locked = lock_campaign(session, campaign.id, by=by)  # of an admin, who may know of every campaign
    require_asking(locked)
    questions, asked = lock_questions(session, locked.id, question_ids)
    # Counted under the lock: somebody may have answered since, or undone. What is left out holds its slot.
    given = {id_: asked[id_].decided for id_ in questions}
    is_of_all = is_asked_of_all(Question.id, people_at_work(session, locked.id))
    of_all = set(session.scalars(select(Question.id).where(Question.id.in_(asked), is_of_all)))
    finished = [
        question
        for question in questions.values()
        if not question.is_waiting
        and not question.is_set_aside
        and given[question.id] < MAX_SLOTS
        and question.id not in of_all
    ]
    classes = {question.candidate_class for question in finished}
    tallies = load_tallies(session, locked, classes, by=by, now=now)
    for question in finished:
        effect = rules.after_asking_again(given[question.id])
        apply_effect(question, effect, locked)
        question.least = effect.slots
        tallies[question.candidate_class].finished += effect.finished
    session.flush()
    return len(finished)


def wait_no_longer(
    session: Session, campaign: Campaign, question_id: int, *, by: User, now: datetime
) -> None:
    """Ask nobody any more about a question that waits; who holds it may still answer."""
    locked = lock_campaign(session, campaign.id, by=by)
    questions, _ = lock_questions(session, locked.id, [question_id])
    question = questions[question_id]
    if question.is_waiting:
        question.is_waiting = False
        tally = load_tallies(session, locked, {question.candidate_class}, by=by, now=now)
        tally[question.candidate_class].finished += 1
    session.flush()
