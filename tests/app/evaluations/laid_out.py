"""A finished run whose predictions people judge, and people who judge them."""

from uuid import uuid4

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import Answer, AnswerValue, Question
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.datasets import service as datasets
from app.datasets.models import Dataset, Example, Split
from app.db import Database
from app.evaluations import service as evaluations
from app.evaluations.models import Evaluation
from app.registry import evaluating
from app.registry import service as registry
from app.registry.models import Model
from app.registry.target_predictions import FACTS, TargetPredictions, keep_target_predictions
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests import annotators
from tests.factories import NOW, make_dataset, make_run
from worker import drawing
from worker.context import Context

CLASSES = ("cat", "dog", "owl")


def make_target(session: Session, storage: FolderStorage, *, images: int = 60) -> Dataset:
    """Images whose classes nobody told the application; position modulo three is the true one."""
    return make_dataset(session, storage, class_names=CLASSES, train=images, test=0)


def make_model(session: Session, storage: FolderStorage, target: Dataset, *, wrong_every: int = 5) -> Model:
    """A run's model that takes every so-manieth image of the target for the next class."""
    source = make_run(session, storage, train=12, target=target, state="succeeded", classes=CLASSES)
    trial = source.trials[0]
    images = datasets.stored_images(session, storage, target.id, Split.TRAIN)
    positions = np.arange(len(images.ids))
    classes = (positions + (positions % wrong_every == 0)) % len(CLASSES)
    key = registry.key_of(trial.id, 1)
    ids = np.array(images.ids, np.int64)
    made = TargetPredictions(ids, classes, np.full(len(ids), 0.5, np.float32))
    card = {"run": source.number, "run_id": str(source.id), "seed": 0, "target_accuracy": None}
    card |= {"method": source.method, "preset": source.preset, "setting": "cc", "classes": list(CLASSES)}
    card |= {"config": source.config, "labels": source.snapshot_facts, "epochs": 2, "seconds": 1.0}
    card |= {"label_snapshot": source.snapshot_digest, "versions": {}, "confusion": None}
    card |= {FACTS: keep_target_predictions(storage, key, made)}
    model = registry.publish_model(
        session, trial_id=trial.id, key=key, digest="d" * 64, size_bytes=1, card=card, now=NOW
    )
    session.flush()
    return model


def make_evaluation(
    session: Session, storage: FolderStorage, model: Model, wishes: evaluations.Wishes, *, by: User
) -> Evaluation:
    """Laid out, not opened."""
    judged = evaluating.judged(session, storage, model, by=by)
    return evaluations.create_evaluation(session, judged, wishes, by=by, now=NOW)


def opened(
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    found: Evaluation,
    *,
    by: User,
) -> Campaign:
    """Its campaign, after a worker has drawn the questions; nothing is too fast in it."""
    assert found.campaign_id is not None
    campaign = campaigns.any_campaign(session, found.campaign_id)
    campaign.least_card_ms = campaign.least_page_ms = campaign.least_picture_ms = 0
    campaigns.open_campaign(session, campaign, by=by, now=NOW)
    session.commit()
    context = Context(settings, database, storage, publish=lambda _: None)
    drawing.open_campaign(context, campaign.id)
    session.expire_all()
    return campaigns.any_campaign(session, campaign.id)


def answer_all(session: Session, campaign: Campaign, *, by: User, lies: int = 0, names: bool = False) -> int:
    """Answer whatever this person is asked, rightly but for the first `lies`; gives how many that was.

    `names`: after each no they say what the picture shows.
    """
    truth = dict(session.execute(select(Example.id, Example.true_class)).all())
    given = 0
    while leased := annotators.lease(session, campaign, count=8, by=by, now=NOW):
        answers: list[annotation.SubmittedAnswer] = []
        for question in leased:
            is_right = truth[question.example_id] == question.candidate_class
            is_yes = is_right is not (given + len(answers) < lies)
            value = AnswerValue.YES if is_yes else AnswerValue.NO
            answers.append(annotation.SubmittedAnswer(question.id, value, 900, uuid4()))
        annotators.submit(session, campaign, answers, by=by, now=NOW)
        given += len(answers)
    if names:
        name_all(session, campaign, by=by)
    return given


def name_all(session: Session, campaign: Campaign, *, by: User) -> None:
    """After each of their no they say rightly what the picture shows."""
    rows = session.execute(
        select(Answer.key, Example.true_class)
        .join(Question, Question.id == Answer.question_id)
        .join(Example, Example.id == Question.example_id)
        .where(
            Question.campaign_id == campaign.id,
            Answer.user_id == by.id,
            Answer.value == AnswerValue.NO,
            Question.candidate_class != Example.true_class,
        )
    )
    named = {key: class_ for key, class_ in rows if class_ is not None}
    annotation.keep_names(session, campaign.id, named, by=by)


def questions_by_round(session: Session, campaign: Campaign) -> dict[int, list[Question]]:
    """All questions of a campaign."""
    found: dict[int, list[Question]] = {}
    query = select(Question).where(Question.campaign_id == campaign.id).order_by(Question.rank)
    for question in session.scalars(query):
        found.setdefault(question.round, []).append(question)
    return found


def said(question_id: int, *, unusable: bool = False) -> annotation.SubmittedAnswer:
    """A yes, or that the picture cannot be used."""
    value = AnswerValue.UNUSABLE if unusable else AnswerValue.YES
    return annotation.SubmittedAnswer(question_id, value, 900, uuid4())
