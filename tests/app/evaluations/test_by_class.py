"""An evaluation that draws from each predicted class by itself: what is drawn, audited and told."""

from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Purpose, Question
from app.campaigns.models import Campaign
from app.campaigns.sampling import DRAWN, EVALUATED
from app.datasets.models import Dataset, Example
from app.db import Database
from app.evaluations import service as evaluations
from app.evaluations.models import EvaluatedImage, Evaluation
from app.quality import service as quality
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.evaluations import laid_out
from tests.factories import NOW, make_user

pytestmark = pytest.mark.dialects

BY_CLASS = evaluations.Wishes(half_width=0.2, by_class=True)
IMAGES = 150


@pytest.fixture
def found(session: Session, storage: FolderStorage, admin: User) -> Evaluation:
    """Of a model that takes every fifth image for the next class."""
    model = laid_out.make_model(session, storage, laid_out.make_target(session, storage, images=IMAGES))
    return laid_out.make_evaluation(session, storage, model, BY_CLASS, by=admin)


@pytest.fixture
def campaign(
    *,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    found: Evaluation,
    admin: User,
) -> Campaign:
    """Its campaign, opened."""
    return laid_out.opened(session, settings, database, storage, found, by=admin)


def test_as_many_of_each_class_are_drawn_as_was_said(
    session: Session, found: Evaluation, campaign: Campaign
) -> None:
    asked = laid_out.questions_by_round(session, campaign)

    assert found.strata is not None
    assert campaign.sample_strata == found.strata
    drawn = Counter(row.candidate_class for row in asked[EVALUATED])
    assert [drawn[class_] for class_ in range(3)] == [sampled for _, sampled, _ in found.strata]
    assert sum(population for population, _, _ in found.strata) == IMAGES
    assert min(drawn.values()) >= 20
    assert sum(drawn.values()) == found.sample_size == len(asked[DRAWN])


def test_the_audit_finds_a_picture_that_was_picked(session: Session, campaign: Campaign) -> None:
    audit = quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True)
    assert (audit.draws_match, audit.commitment_matches, audit.alarms) == (True, True, ())

    asked = laid_out.questions_by_round(session, campaign)[EVALUATED]
    others = session.scalars(select(Example.id).where(Example.dataset_id == campaign.dataset_id)).all()
    asked[0].example_id = min(set(others) - {row.example_id for row in asked})
    session.flush()

    audit = quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True)
    assert audit.draws_match is False


def test_each_class_counts_by_how_many_pictures_it_has(
    *,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    found: Evaluation,
    campaign: Campaign,
    admin: User,
    annotator: User,
) -> None:
    found.strata = [
        [population, sampled, end]
        for population, (_, sampled, end) in zip((100, 400, 1000), found.strata or [], strict=True)
    ]
    before = evaluations.result_of(session, found)
    laid_out.answer_all(session, campaign, by=annotator)
    result = evaluations.result_of(session, found)

    weighted = sum(
        population * item.right / sampled
        for (population, sampled, _), item in zip(found.strata, result.classes, strict=True)
    )
    assert before.interval is None
    assert result.interval is not None
    assert result.interval.estimate == pytest.approx(weighted / 1500)
    assert result.interval.low < result.interval.estimate < result.interval.high

    other = laid_out.make_model(session, storage, session.get_one(Dataset, found.dataset_id), wrong_every=3)
    plain = laid_out.make_evaluation(session, storage, other, replace(BY_CLASS, by_class=False), by=admin)
    again = laid_out.opened(session, settings, database, storage, plain, by=admin)
    laid_out.answer_all(session, again, by=make_user(session))
    assert plain.known_count  # answers count again
    plain.population += 1  # as if the dataset had grown between them
    assert evaluations.comparisons_of(session, plain) == evaluations.comparisons_of(session, found) == []
    assert evaluations.compare_two(session, plain.id, found.id) is None


def test_two_models_are_compared_on_what_both_drew_each_picture_by_its_weight(
    *,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    found: Evaluation,
    campaign: Campaign,
    admin: User,
    annotator: User,
) -> None:
    other = laid_out.make_model(session, storage, session.get_one(Dataset, found.dataset_id), wrong_every=3)
    second = laid_out.make_evaluation(session, storage, other, replace(BY_CLASS, by_class=False), by=admin)
    laid_out.answer_all(session, campaign, by=annotator)
    again = laid_out.opened(session, settings, database, storage, second, by=admin)
    laid_out.answer_all(session, again, by=make_user(session))

    [compared] = evaluations.comparisons_of(session, found)
    back = evaluations.compare_two(session, second.id, found.id)

    def drawn(evaluation: Evaluation) -> dict[int, int]:
        rows = select(EvaluatedImage.example_id, EvaluatedImage.class_)
        return dict(session.execute(rows.where(EvaluatedImage.evaluation_id == evaluation.id)).all())

    truth = dict(session.execute(select(Example.id, Example.true_class)).all())
    first_said, second_said = drawn(found), drawn(second)
    both = first_said.keys() & second_said.keys()
    simple = (IMAGES, second.sample_size, second.sample_size)
    assert found.strata is not None
    ends = {id_: min(found.strata[first_said[id_]], simple, key=lambda item: item[2]) for id_ in both}
    weights = {id_: population / sampled for id_, (population, sampled, _) in ends.items()}
    better = {id_: (first_said[id_] == truth[id_]) - (second_said[id_] == truth[id_]) for id_ in both}
    expected = sum(weights[id_] * better[id_] for id_ in both) / sum(weights.values())
    assert compared.other.id == second.id
    assert compared.images == len(both)
    assert compared.difference.estimate == pytest.approx(expected)
    assert compared.difference.low < expected < compared.difference.high
    assert back is not None
    assert (back.only_this, back.only_other) == (compared.only_other, compared.only_this)
    assert back.difference.estimate == pytest.approx(-expected)


def test_peoples_errors_on_known_pictures_correct_it(
    session: Session, found: Evaluation, campaign: Campaign, annotator: User
) -> None:
    laid_out.answer_all(session, campaign, by=annotator)
    plain = evaluations.result_of(session, found)
    questions = session.scalars(
        select(Question)
        .where(Question.campaign_id == campaign.id, Question.round == DRAWN)
        .order_by(Question.rank)
    ).all()
    truth = dict(session.execute(select(Example.id, Example.true_class)).all())
    for question in questions:  # whose answers are right
        question.purpose = Purpose.GOLD
        question.is_match = truth[question.example_id] == question.candidate_class
    session.flush()

    result = evaluations.result_of(session, found)

    assert plain.corrected is None
    assert result.known.yes_asked
    assert result.known.no_asked
    assert result.interval is not None
    assert result.corrected is not None
    assert result.corrected.estimate == pytest.approx(result.interval.estimate)
    assert result.corrected.low < result.interval.low


def test_recall_counts_by_weight_and_has_no_interval(
    session: Session, found: Evaluation, campaign: Campaign, annotator: User
) -> None:
    found.strata = [[1000, sampled, end] for _, sampled, end in found.strata or []]
    found.strata[0][0] = 10
    laid_out.answer_all(session, campaign, by=annotator)
    campaign.asks_which = True
    said = select(EvaluatedImage.class_, Example.true_class).join(
        Example, Example.id == EvaluatedImage.example_id
    )
    pairs = Counter((row.class_, row.true_class) for row in session.execute(said))
    laid_out.name_all(session, campaign, by=annotator)

    confusion = evaluations.confusion_of(session, found)

    assert confusion is not None
    weight = [population / sampled for population, sampled, _ in found.strata]
    for shows, item in enumerate(confusion.classes):
        total = sum(weight[predicted] * pairs[predicted, shows] for predicted in range(3))
        assert item.share == pytest.approx(weight[shows] * pairs[shows, shows] / total)
        assert item.interval is None
