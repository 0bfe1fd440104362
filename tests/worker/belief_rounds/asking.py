"""Asking for a round by a model's belief, and answering it."""

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Question
from app.campaigns import service as campaigns
from app.campaigns.by_belief import ask_by_belief
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.quality import service as quality
from app.quality.auditing import Audit
from app.registry.models import Model
from clarinet.files.beliefs import FLOOR_PERCENT
from tests.factories import NOW, answer, make_user, questions_of
from worker.context import Context
from worker.drawing import draw_further

HTML = {"accept": "text/html"}
CLASSES = ("dark", "grey", "light", "odd")


def answer_all(session: Session, campaign: Campaign) -> None:
    by = make_user(session)
    for question in questions_of(session, campaign):
        if question.is_waiting:
            is_yes = truth(session, question) == question.candidate_class
            answer(session, campaign, question.id, "yes" if is_yes else "no", by=by)


def truth(session: Session, question: Question) -> int:
    known = session.get_one(Example, question.example_id).true_class
    assert known is not None
    return known


def draw(session: Session, context: Context, model: Model, campaign: Campaign, by: User) -> None:
    ask_by_belief(
        session,
        campaign,
        model_id=model.id,
        model_name="run 1, seed 0",
        floor_percent=FLOOR_PERCENT,
        by=by,
        now=NOW,
    )
    session.commit()
    draw_further(context, campaign.id)
    session.expire_all()
    session.refresh(campaign, ["classes"])


def of_round(session: Session, campaign: Campaign) -> list[Question]:
    return [question for question in questions_of(session, campaign) if question.drawing == 2]


def audited(session: Session, campaign: Campaign, *, has_seed: bool = True) -> Audit:
    found = campaigns.any_campaign(session, campaign.id)
    return quality.audit(session, found, now=NOW, has_seed=has_seed, recompute=True)
