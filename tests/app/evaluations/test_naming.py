"""After a no people name what the picture shows: what is kept of it, and what it tells of a model."""

from collections import Counter
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Answer, AnswerValue, Naming, Question
from app.campaigns.models import Campaign, Modes, PricePer
from app.datasets.models import Example
from app.db import Database
from app.evaluations import service as evaluations
from app.evaluations.models import EvaluatedImage, Evaluation
from app.evaluations.naming import named_of
from app.registry.models import Model
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.evaluations import laid_out
from tests.app.evaluations.test_evaluations import WITHIN
from tests.factories import make_user

WHICH = replace(WITHIN, asks_which=True)


@pytest.fixture
def found(session: Session, storage: FolderStorage, admin: User) -> Evaluation:
    """Of a model that takes every fifth image for the next class, laid out."""
    model = laid_out.make_model(session, storage, laid_out.make_target(session, storage))
    return laid_out.make_evaluation(session, storage, model, WHICH, by=admin)


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


def test_a_name_counts_once_however_many_evaluations_use_its_answer(
    session: Session,
    storage: FolderStorage,
    found: Evaluation,
    campaign: Campaign,
    *,
    annotator: User,
    admin: User,
) -> None:
    laid_out.answer_all(session, campaign, by=annotator, names=True)
    image = session.scalars(
        select(EvaluatedImage)
        .join(Question, Question.id == EvaluatedImage.question_id)
        .join(Answer, Answer.question_id == Question.id)
        .where(Answer.value == AnswerValue.NO, EvaluatedImage.evaluation_id == found.id)
    ).first()
    assert image is not None
    before = named_of(session, found.model_id, image.example_id)

    model = session.get_one(Model, found.model_id)
    again = laid_out.make_evaluation(session, storage, model, WHICH, by=admin)

    assert again.known_count
    assert [number for _, number in before] == [1]
    assert named_of(session, found.model_id, image.example_id) == before


@pytest.mark.dialects
class TestConfusion:
    def test_is_that_of_the_model_where_people_are_right(
        self, session: Session, found: Evaluation, campaign: Campaign, annotator: User
    ) -> None:
        before = evaluations.confusion_of(session, found)
        laid_out.answer_all(session, campaign, by=annotator, names=True)

        confusion = evaluations.confusion_of(session, found)

        pairs = Counter(
            (shows, predicted)
            for shows, predicted in session.execute(
                select(Example.true_class, EvaluatedImage.class_)
                .join(Example, Example.id == EvaluatedImage.example_id)
                .where(EvaluatedImage.evaluation_id == found.id)
            )
        )
        assert campaign.modes is Modes.CARD
        assert before is None
        assert confusion is not None
        assert confusion.rows == tuple(
            tuple(pairs[shows, predicted] for predicted in range(3)) for shows in range(3)
        )
        assert sum(map(sum, confusion.rows)) == found.sample_size
        for class_, item in enumerate(confusion.classes):
            row = confusion.rows[class_]
            assert (item.shown, item.right, item.share) == (sum(row), row[class_], row[class_] / sum(row))
            assert item.interval is not None
            assert item.share is not None
            assert item.interval.low < item.share <= item.interval.high

    def test_of_all_pictures_those_that_nobody_could_tell_leave_every_class_uncertain(
        self,
        *,
        session: Session,
        settings: Settings,
        database: Database,
        storage: FolderStorage,
        admin: User,
        annotator: User,
    ) -> None:
        model = laid_out.make_model(session, storage, laid_out.make_target(session, storage))
        wishes = evaluations.Wishes(half_width=0.05, drawn_share=0, asks_which=True)
        found = laid_out.make_evaluation(session, storage, model, wishes, by=admin)
        campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
        laid_out.answer_all(session, campaign, by=annotator, names=True)
        told = evaluations.confusion_of(session, found)
        answers = session.scalars(
            select(Answer)
            .join(EvaluatedImage, EvaluatedImage.question_id == Answer.question_id)
            .where(Answer.value == AnswerValue.YES)
            .order_by(Answer.id)
            .limit(4)
        ).all()

        for answer in answers:
            answer.value = AnswerValue.UNSURE
        session.flush()
        untold = evaluations.confusion_of(session, found)

        assert found.is_whole
        assert told is not None
        assert untold is not None
        assert [item.interval is not None and item.interval.is_counted for item in told.classes] == [True] * 3
        for item in untold.classes:
            assert item.interval is not None
            assert not item.interval.is_counted, "each of the four may show the class"

    def test_leaves_out_what_nobody_names_or_what_people_call_by_two_names(
        self,
        *,
        session: Session,
        settings: Settings,
        database: Database,
        storage: FolderStorage,
        admin: User,
        annotator: User,
    ) -> None:
        model = laid_out.make_model(session, storage, laid_out.make_target(session, storage))
        wishes = replace(WHICH, overlap=2, drawn_share=0)
        found = laid_out.make_evaluation(session, storage, model, wishes, by=admin)
        campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
        for person in (annotator, make_user(session)):
            laid_out.answer_all(session, campaign, by=person, names=True)
        whole = evaluations.confusion_of(session, found)
        first, second, *_ = session.scalars(
            select(Naming)
            .join(Answer, Answer.id == Naming.answer_id)
            .where(Answer.user_id == annotator.id)
            .order_by(Naming.answer_id)
        ).all()

        first.class_, second.class_ = None, (second.class_ or 0) - 1  # of both another person says else
        session.flush()
        divided = evaluations.confusion_of(session, found)

        assert whole is not None
        assert divided is not None
        assert (whole.unnamed, whole.none_of_these, divided.unnamed, divided.none_of_these) == (0, 0, 2, 0)
        assert any(item.interval for item in whole.classes)
        assert not any(item.interval for item in divided.classes)
        assert sum(map(sum, divided.rows)) == sum(map(sum, whole.rows)) - 2

    def test_asks_anew_what_evaluations_know_that_did_not_ask_which(
        self,
        *,
        session: Session,
        settings: Settings,
        database: Database,
        storage: FolderStorage,
        client: TestClient,
        admin: User,
        annotator: User,
    ) -> None:
        model = laid_out.make_model(session, storage, laid_out.make_target(session, storage))
        plain = laid_out.make_evaluation(session, storage, model, WITHIN, by=admin)
        laid_out.answer_all(
            session, laid_out.opened(session, settings, database, storage, plain, by=admin), by=annotator
        )

        offered = client.get(f"/runs/{model.card['run_id']}/evaluations/new?asks_which=true").text
        found = laid_out.make_evaluation(session, storage, model, WHICH, by=admin)
        campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
        laid_out.answer_all(session, campaign, by=annotator, names=True)
        again = laid_out.make_evaluation(session, storage, model, WHICH, by=admin)

        assert " questions" in offered
        assert " known</option>" not in offered
        assert plain.sample_size == found.asked_count
        assert (again.campaign_id, again.asked_count) == (None, 0)
        assert evaluations.confusion_of(session, plain) is None
        first, second = (evaluations.confusion_of(session, each) for each in (found, again))
        assert first is not None
        assert first == second
        assert (first.unnamed, first.is_whole) == (0, True)

    def test_tells_a_share_at_most_while_a_wrong_prediction_has_no_class(
        self, session: Session, client: TestClient, found: Evaluation, campaign: Campaign, annotator: User
    ) -> None:
        laid_out.answer_all(session, campaign, by=annotator, names=True)
        some, other, *_ = session.scalars(
            select(Naming)
            .join(Answer, Answer.id == Naming.answer_id)
            .join(EvaluatedImage, EvaluatedImage.question_id == Answer.question_id)
            .order_by(Naming.answer_id)
        ).all()
        some.class_ = None  # none of these
        session.delete(other)  # never asked
        session.commit()

        confusion = evaluations.confusion_of(session, found)
        page = client.get(f"/evaluations/{found.id}", headers={"accept": "text/html"}).text

        assert confusion is not None
        assert (confusion.none_of_these, confusion.unnamed, confusion.is_whole) == (1, 1, True)
        assert not any(item.interval for item in confusion.classes)
        assert page.count("at most") == 3
        assert "1 wrong prediction of which they say that it shows none of these classes" in page
        assert "1 wrong prediction about whose class people are divided, or were never asked" in page


class TestWays:
    def send(
        self, client: TestClient, campaign: Campaign, question: dict[str, object], **said: object
    ) -> int:
        """The status of one answer."""
        answer = {"question_id": question["id"], "response_ms": 900, "key": str(uuid4())} | said
        sent = client.post(f"/api/v1/campaigns/{campaign.id}/answers", json={"answers": [answer]})
        return sent.status_code

    def test_an_annotator_names_a_class_once_and_an_admin_reads_the_confusion(
        self,
        *,
        session: Session,
        client: TestClient,
        annotator_client: TestClient,
        campaign: Campaign,
        found: Evaluation,
    ) -> None:
        leased = annotator_client.post(f"/api/v1/campaigns/{campaign.id}/questions", json={"count": 8}).json()
        one, other, *rest = leased["questions"]
        asked, key = one["candidate_class"], str(uuid4())
        shows = (asked + 1) % 3

        sent = [
            self.send(annotator_client, campaign, one, value="no", shows=named, key=key)
            for named in (shows, shows, -1)
        ]
        wrong = [
            self.send(annotator_client, campaign, other, value=value, shows=named)
            for value, named in (("yes", 0), ("no", other["candidate_class"]), ("no", 3))
        ]
        told = [self.send(annotator_client, campaign, each, value="no", shows=-1) for each in rest]
        read = client.get(f"/api/v1/evaluations/{found.id}").json()
        page = client.get(f"/evaluations/{found.id}", headers={"accept": "text/html"}).text

        assert sent == [200, 200, 409]
        assert wrong == [422, 422, 422]
        assert set(told) == {200}
        assert session.scalars(select(Naming.class_).where(Naming.class_.is_not(None))).all() == [shows]
        assert session.scalar(select(Answer.key).join(Naming).where(Naming.class_.is_not(None))) == UUID(key)
        named = {"rows", "classes", "none_of_these", "unnamed", "is_whole"}
        assert read["confusion"] is None or read["confusion"].keys() == named
        assert ("What the pictures show" in page) is (read["confusion"] is not None)

    def test_the_time_that_naming_takes_is_paid_with_that_of_the_answers(
        self,
        *,
        session: Session,
        client: TestClient,
        annotator_client: TestClient,
        campaign: Campaign,
    ) -> None:
        campaign.price, campaign.price_per = 36.0, PricePer.HOUR  # one for each 100 s
        session.commit()
        leased = annotator_client.post(f"/api/v1/campaigns/{campaign.id}/questions", json={"count": 3}).json()
        one, other, last = leased["questions"]

        self.send(annotator_client, campaign, one, value="no", shows=-1, named_ms=4000, response_ms=1000)
        self.send(annotator_client, campaign, other, value="no", shows=-1, response_ms=1000)  # time not known
        self.send(annotator_client, campaign, last, value="no", shows=-1, named_ms=9000, response_ms=1000)
        both = client.get(f"/api/v1/campaigns/{campaign.id}/progress").json()
        annotator_client.post(f"/api/v1/campaigns/{campaign.id}/undo", json={"count": 1})
        one_less = client.get(f"/api/v1/campaigns/{campaign.id}/progress").json()

        assert both["annotators"][0]["mean_ms"] == (3000 + 13_000) / 3
        assert both["cost"]["so_far"] == pytest.approx(0.16)
        assert one_less["cost"]["so_far"] == pytest.approx(0.06)

    def test_its_pictures_come_one_at_a_time_whatever_an_admin_wishes(
        self, client: TestClient, session: Session, found: Evaluation
    ) -> None:
        session.commit()
        here = f"/api/v1/campaigns/{found.campaign_id}"

        refused, renamed = (
            client.patch(here, json=change) for change in ({"modes": "grid"}, {"name": "New"})
        )

        assert (refused.status_code, renamed.status_code) == (409, 200)
        assert renamed.json()["asks_which"] is True
        assert renamed.json()["modes"] == "card"

    def test_a_campaign_that_does_not_ask_takes_no_name(
        self,
        *,
        session: Session,
        settings: Settings,
        database: Database,
        storage: FolderStorage,
        annotator_client: TestClient,
        admin: User,
    ) -> None:
        model = laid_out.make_model(session, storage, laid_out.make_target(session, storage))
        plain = laid_out.make_evaluation(session, storage, model, WITHIN, by=admin)
        campaign = laid_out.opened(session, settings, database, storage, plain, by=admin)
        leased = annotator_client.post(f"/api/v1/campaigns/{campaign.id}/questions", json={"count": 1}).json()
        [question] = leased["questions"]

        status = self.send(annotator_client, campaign, question, value="no", shows=-1)

        assert status == 422
        assert session.scalars(select(Answer)).all() == []
