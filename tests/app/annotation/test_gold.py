"""Known pictures between the questions, and what follows for people."""

import random
from collections import Counter
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import gold, service
from app.annotation.errors import (
    CampaignNotOpen,
    NothingKnown,
    ParticipantNotFound,
    PersonPaused,
    UnknownPicture,
)
from app.annotation.models import Answer, AnswerValue, Participant, Purpose, Question
from app.annotation.participants import is_too_often_wrong, upper_end
from app.annotation.service import KnownPicture
from app.annotation.submissions import PAUSED_HERE
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.fast.answering import FAST
from app.labels import service as labelling
from app.quality import service as quality
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import (
    NOW,
    answer,
    asked_again,
    make_campaign,
    make_rows_only_dataset,
    make_user,
    questions_of,
)

pytestmark = pytest.mark.dialects

HTML = {"accept": "text/html"}
TEN = [str(k) for k in range(10)]


@pytest.fixture(autouse=True)
def fixed_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same gold in each run."""
    monkeypatch.setattr(gold, "_chance", random.Random(7))


def golden(
    session: Session,
    admin: User,
    *,
    examples: int = 300,
    rounds: int = 1,
    per_class: int = 10,
    **policy: object,
) -> Campaign:
    """An open campaign of ten classes with known pictures, half of its questions gold."""
    campaign = make_campaign(session, examples=examples, rounds=rounds, class_names=TEN)
    campaign.gold_share = 0.5
    for name, value in policy.items():
        setattr(campaign, name, value)
    known = service.some_known(session, campaign, per_class=per_class)
    service.mark_known(session, campaign, known, by=admin)
    session.flush()
    return campaign


def gold_of(session: Session, ids: list[int]) -> dict[int, bool]:
    """Which of these questions are gold, and whether yes is right."""
    rows = session.execute(
        select(Question.id, Question.is_match).where(Question.id.in_(ids), Question.purpose == Purpose.GOLD)
    )
    return {row.id: bool(row.is_match) for row in rows}


def work(
    session: Session, campaign: Campaign, user: User, *, wrong: bool, count: int = 60
) -> list[service.Outcome]:
    """Answer leased questions: drawn ones with no, gold rightly or wrongly."""
    leased = [q.id for q in annotators.lease(session, campaign, count=count, by=user, now=NOW)]
    known = gold_of(session, leased)
    given = [
        service.SubmittedAnswer(
            id_, AnswerValue.YES if id_ in known and known[id_] != wrong else AnswerValue.NO, 500, uuid4()
        )
        for id_ in leased
    ]
    return annotators.submit(session, campaign, given, by=user, now=NOW)


class TestMarking:
    def test_each_picture_gives_a_match_and_another(self, session: Session, admin: User) -> None:
        campaign = golden(session, admin, per_class=3)

        rows = session.scalars(
            select(Question).where(Question.campaign_id == campaign.id, Question.purpose == Purpose.GOLD)
        ).all()

        assert service.gold_count(session, campaign.id) == 30
        assert Counter(row.is_match for row in rows) == {True: 30, False: 30}
        for row in rows:
            truth = session.scalar(select(Example.true_class).where(Example.id == row.example_id))
            assert (row.candidate_class == truth) == row.is_match
            assert not row.is_waiting

    def test_twice_is_once(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session)
        known = [KnownPicture(questions_of(session, campaign)[0].example_id, 1)]

        assert service.mark_known(session, campaign, known, by=admin) == 1
        assert service.mark_known(session, campaign, known, by=admin) == 0

    def test_only_the_campaigns_pictures_and_classes(self, session: Session, admin: User) -> None:
        campaign, other = make_campaign(session), make_campaign(session)
        own, foreign = (questions_of(session, c)[0].example_id for c in (campaign, other))

        for picture in (KnownPicture(foreign, 0), KnownPicture(own, 3), KnownPicture(own, -1)):
            with pytest.raises(UnknownPicture):
                service.mark_known(session, campaign, [picture], by=admin)
        for state, words in (("closed", "is closed and asks nothing more"), ("draft", "Open it first")):
            campaign = make_campaign(session, state=state)
            with pytest.raises(CampaignNotOpen, match=words):
                service.mark_known(session, campaign, [], by=admin)
            with pytest.raises(CampaignNotOpen, match=words):
                service.some_known(session, campaign, per_class=1)

    def test_without_true_classes_nothing_is_known(self, session: Session) -> None:
        dataset = make_rows_only_dataset(session, examples=4, class_names=["cat", "dog"])
        campaign = make_campaign(session, dataset=dataset)
        dataset.class_names = None
        session.flush()

        with pytest.raises(NothingKnown):
            service.some_known(session, campaign, per_class=2)


class TestAnswers:
    def test_count_for_the_person_and_nothing_else(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        campaign = golden(session, admin)

        outcomes = work(session, campaign, annotator, wrong=False)

        given = session.scalars(
            select(Question)
            .join(Answer, Answer.question_id == Question.id)
            .where(Question.campaign_id == campaign.id, Question.purpose == Purpose.GOLD)
        ).all()
        part = session.get_one(Participant, (campaign.id, annotator.id), populate_existing=True)
        assert all(outcome.status is service.Status.STORED for outcome in outcomes)
        assert part.gold_answers == part.gold_right == len(given) > 0
        assert service.standing(session, campaign, by=annotator).answered_by_me == len(outcomes)
        progress = service.progress(session, campaign, now=NOW)
        assert progress.counts.total == len(outcomes) - len(given)
        assert sum(progress_class.drawn for progress_class in progress.classes) == 300
        labelled = labelling.derive(session, campaign.id)
        assert len(labelled.labels) == len(outcomes) - len(given)
        assert labelled.answer_count == progress.counts.total
        assert quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True).draws_match
        drawn = select(func.count()).where(
            Question.campaign_id == campaign.id, Question.purpose == Purpose.LABELLING
        )
        assert session.scalar(drawn) == 300

    def test_cannot_tell_is_neither_right_nor_wrong(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        campaign = golden(session, admin)
        leased = annotators.lease(session, campaign, count=60, by=annotator, now=NOW)
        answers = [service.SubmittedAnswer(q.id, AnswerValue.UNSURE, 5, uuid4()) for q in leased]
        annotators.submit(session, campaign, answers, by=annotator, now=NOW)

        part = session.get_one(Participant, (campaign.id, annotator.id), populate_existing=True)
        assert (part.gold_right, part.gold_wrong) == (0, 0)
        assert part.gold_answers > 0

    def test_undone_answers_count_again(self, session: Session, admin: User, annotator: User) -> None:
        campaign = golden(session, admin)
        leased = [q.id for q in annotators.lease(session, campaign, count=60, by=annotator, now=NOW)]
        question_id, is_match = next(iter(gold_of(session, leased).items()))
        right, wrong = (AnswerValue.YES, AnswerValue.NO) if is_match else (AnswerValue.NO, AnswerValue.YES)

        def give(value: AnswerValue) -> service.Outcome:
            answer = service.SubmittedAnswer(question_id, value, 5, uuid4())
            return annotators.submit(session, campaign, [answer], by=annotator, now=NOW)[0]

        give(wrong)
        [(again, value)] = annotators.undo(session, campaign, by=annotator, now=NOW)
        give(right)

        part = session.get_one(Participant, (campaign.id, annotator.id), populate_existing=True)
        assert (again.id, value) == (question_id, wrong)
        assert (part.gold_answers, part.gold_right, part.gold_wrong) == (1, 1, 0)
        assert_sums_without_gold(session, campaign)


def assert_sums_without_gold(session: Session, campaign: Campaign) -> None:
    """Nothing but gold was answered, so there is no tally."""
    assert service.progress(session, campaign, now=NOW).counts.total == 0
    assert service.progress(session, campaign, now=NOW).finished == 0


class TestPausing:
    def test_by_hand(self) -> None:
        # Wilson 1927, at 2.33 deviations: of 8 wrong ones 2.33^2 / (8 + 2.33^2) is the upper end.
        assert upper_end(0, 8) == pytest.approx(2.33**2 / (8 + 2.33**2))
        assert upper_end(10, 0) == pytest.approx(1.0)
        assert upper_end(12, -2) == upper_end(12, 0), "an answer was undone that counted no more"
        assert is_too_often_wrong(0, 8, bound=0.7)
        assert not is_too_often_wrong(0, 7, bound=0.7), "too few to say"
        assert not is_too_often_wrong(6, 4, bound=0.7)
        assert not is_too_often_wrong(0, 50, bound=0.0)

    def test_who_is_too_often_wrong_waits_until_an_admin_lets_them_go_on(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        campaign = golden(session, admin)

        work(session, campaign, annotator, wrong=True)

        with pytest.raises(PersonPaused):
            annotators.lease(session, campaign, count=5, by=annotator, now=NOW)
        (person,) = quality.people(session, campaign)
        assert (person.user_id, person.is_paused_by_gold, person.gold_right) == (annotator.id, True, 0)
        assert service.paused_count(session, campaign.id) == 1
        service.resume_person(session, campaign, annotator.id, by=admin)
        assert annotators.lease(session, campaign, count=5, by=annotator, now=NOW)
        assert quality.people(session, campaign)[0].gold_wrong == 0

    def test_others_and_other_campaigns_go_on(self, session: Session, admin: User, annotator: User) -> None:
        campaign = golden(session, admin)
        work(session, campaign, annotator, wrong=True)

        work(session, campaign, make_user(session), wrong=False)
        assert service.paused_count(session, campaign.id) == 1
        other = make_campaign(session)
        assert annotators.lease(session, other, count=2, by=annotator, now=NOW)

    def test_by_an_admin(self, session: Session, admin: User, annotator: User) -> None:
        campaign = make_campaign(session)
        with pytest.raises(ParticipantNotFound):
            service.pause_person(session, campaign, annotator.id, by=admin, now=NOW)
        work(session, campaign, annotator, wrong=False, count=1)

        service.pause_person(session, campaign, annotator.id, by=admin, now=NOW)

        assert not quality.people(session, campaign)[0].is_paused_by_gold
        with pytest.raises(PersonPaused):
            annotators.lease(session, campaign, count=5, by=annotator, now=NOW)


class TestLeavingOut:
    @pytest.mark.parametrize("consensus", ["majority", "dawid-skene"])
    def test_answers_make_no_labels_until_they_count_again(
        self, session: Session, admin: User, annotator: User, consensus: str
    ) -> None:
        campaign = make_campaign(session, examples=6, consensus=consensus)
        work(session, campaign, annotator, wrong=False, count=4)
        other = make_user(session)
        work(session, campaign, other, wrong=False, count=2)

        service.leave_out(session, campaign, annotator.id, by=admin, left_out=True)

        assert len(list(labelling.labels(session, campaign))) == 2
        assert len(labelling.derive(session, campaign.id).labels) == 2
        assert len(quality.open_questions(session, campaign)) == 4
        assert asked_again(session, campaign, count=9, by=admin) == 4
        assert_sums(session, campaign)
        work(session, campaign, other, wrong=False, count=9)
        assert len(list(labelling.labels(session, campaign))) == 6
        service.leave_out(session, campaign, annotator.id, by=admin, left_out=False)
        assert sum(label.answers for label in labelling.labels(session, campaign)) == 10


def test_the_model_knows_what_gold_says(session: Session, admin: User, annotator: User) -> None:
    campaign = golden(session, admin, consensus="dawid-skene", gold_bound=0.0)
    work(session, campaign, annotator, wrong=True)
    work(session, campaign, good := make_user(session), wrong=False)

    rates = {person.user_id: person.sensitivity or 0 for person in quality.people(session, campaign)}

    assert 0 < rates[annotator.id] < 0.6
    assert rates[good.id] > 0.75


@pytest.mark.parametrize("execution", [FAST, service.PLAIN], ids=["fast", "plain"])
def test_of_who_is_paused_nothing_is_taken_and_others_get_what_they_held(
    session: Session,
    admin: User,
    annotator: User,
    monkeypatch: pytest.MonkeyPatch,
    execution: service.Execution,
) -> None:
    monkeypatch.setattr(annotators, "execution", execution)
    campaign = make_campaign(session, examples=6, confirm_yes=True)
    answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=annotator)
    held = annotators.lease(session, campaign, count=9, by=annotator, now=NOW)
    given = [service.SubmittedAnswer(held[0].id, AnswerValue.YES, 900, uuid4())]

    service.pause_person(session, campaign, annotator.id, by=admin, now=NOW)

    (outcome,) = annotators.submit(session, campaign, given, by=annotator, now=NOW)
    assert (outcome.status, outcome.detail) == (service.Status.REFUSED, PAUSED_HERE)
    with pytest.raises(PersonPaused):
        annotators.undo(session, campaign, by=annotator, now=NOW)
    found = annotators.lease(session, campaign, count=9, by=make_user(session), now=NOW)
    assert [item.id for item in found] == [item.id for item in held]
    assert service.progress(session, campaign, now=NOW).counts.total == 1


def test_the_api_marks_pauses_and_leaves_out(
    client: TestClient, annotator_client: TestClient, session: Session, admin: User, annotator: User
) -> None:
    campaign = golden(session, admin)
    work(session, campaign, annotator, wrong=True)
    session.commit()
    here = f"/api/v1/campaigns/{campaign.id}"

    refused = annotator_client.post(f"{here}/questions", json={"count": 1})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/person-paused")
    read = client.get(f"{here}/quality").json()
    assert (read["gold_pictures"], read["people"][0]["gold_accuracy"]) == (100, 0.0)
    person = f"{here}/people/{annotator.id}"
    for step in ("leave-out", "resume", "count", "pause", "pause", "resume"):
        assert client.post(f"{person}/{step}").status_code == 204
    leased = annotator_client.post(f"{here}/questions", json={"count": 60}).json()["questions"]
    assert set(leased[0]) == {"id", "image_url", "candidate_class", "class_name"}, "gold looks like the rest"
    assert client.post(f"{here}/people/{admin.id}/pause").status_code == 404
    assert client.post(f"{here}/gold", json={"per_class": 11}).json()["pictures"] >= 100
    assert client.post(f"{here}/gold", json={}).status_code == 422
    picture = {"example_id": 10**9, "class_position": 0}
    unknown = client.post(f"{here}/gold", json={"pictures": [picture]})
    assert unknown.json()["type"] == "/problems/unknown-picture"


def test_the_page_shows_people_and_works_without_javascript(
    client: TestClient, session: Session, admin: User, annotator: User
) -> None:
    campaign = golden(session, admin)
    work(session, campaign, annotator, wrong=True)
    session.commit()
    here = f"/campaigns/{campaign.id}"

    page = client.get(f"{here}/quality", headers=HTML).text
    assert annotator.name in page
    assert "1 person is paused here" in client.get(here, headers=HTML).text
    assert "by known pictures" in page
    assert "100 pictures" in page
    assert "they last each person 200 answers or so" in page
    for step in ("resume", "pause", "leave-out", "count"):
        assert client.post(f"{here}/people/{annotator.id}/{step}", headers=HTML).status_code == 303
    assert client.post(f"{here}/gold", data={"per_class": "0"}, headers=HTML).status_code == 422
    assert client.post(f"{here}/gold", data={"per_class": "12"}, headers=HTML).status_code == 303
    assert f"{here}/quality" in client.get(here, headers=HTML).text
