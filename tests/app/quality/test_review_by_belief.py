"""A question that was drawn by a model's belief is in doubt by its own probability."""

from uuid import uuid4

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.annotation.models import Question
from app.campaigns.models import Campaign, FurtherDrawing
from app.quality import service as quality
from tests.factories import NOW, answer, make_campaign, make_user, questions_of


def by_belief(session: Session, campaign: Campaign, questions: list[Question], q: float) -> None:
    """Let these questions be of a drawing by a model's belief, each drawn with the probability `q`."""
    drawing = FurtherDrawing(
        campaign_id=campaign.id,
        number=2,
        seed="ab" * 32,
        commitment="cd" * 32,
        dataset_version=1,
        dataset_digest="",
        first_position=0,
        end_position=0,
        first_rank=0,
        requested_at=NOW,
        requested_by_id=make_user(session).id,
        drawn_at=NOW,
        model_id=uuid4(),
    )
    session.add(drawing)
    ids = [question.id for question in questions]
    session.execute(update(Question).where(Question.id.in_(ids)).values(drawing=2, probability=q))
    for question in questions:
        session.refresh(question)


@pytest.mark.parametrize("confirm_yes", [True, False])
def test_a_lone_no_to_a_question_by_belief_is_weighed_by_its_probability(
    session: Session, *, confirm_yes: bool
) -> None:
    campaign = make_campaign(
        session,
        examples=80,
        confirm_yes=confirm_yes,
        consensus="dawid-skene",
        class_names=[str(k) for k in range(10)],
    )
    good, other = make_user(session), make_user(session)
    uniform, believed = questions_of(session, campaign)[:70], questions_of(session, campaign)[70:]
    by_belief(session, campaign, believed, 0.9)
    for question in uniform[:20]:
        for person in (good, other):
            session.refresh(question)
            if question.is_waiting:
                answer(session, campaign, question.id, "yes", by=person)
    for question in uniform[20:]:
        answer(session, campaign, question.id, "no", by=good)
    lone, of_new = believed[0], believed[1]
    answer(session, campaign, lone.id, "no", by=good)
    answer(session, campaign, of_new.id, "no", by=make_user(session))  # who answered nothing else

    found = {question.id: question for question in quality.open_questions(session, campaign)}

    assert {lone.id, of_new.id} <= set(found)
    assert found[of_new.id].kind is None, "nobody knows what they are worth"
    assert not set(found) & {question.id for question in uniform[20:]}
