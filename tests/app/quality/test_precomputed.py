"""Of large campaigns a job works figures out, and pages tell what it found and when."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import Answer, AnswerValue, Question, Tally
from app.campaigns.models import Campaign, CampaignState
from app.clock import utc_now
from app.quality import precomputed
from app.quality import service as quality
from app.quality.models import DoubtfulQuestion, KeptFigures
from tests import annotators
from tests.factories import NOW, answer, asked_again, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects

HTML = {"accept": "text/html"}
SOON = NOW + timedelta(seconds=1)
NO, YES = AnswerValue.NO, AnswerValue.YES


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the campaigns of this file were."""
    monkeypatch.setattr(precomputed, "LARGE", 1)


@pytest.fixture
def worked(session: Session) -> Campaign:
    """Six questions in doubt, and twelve that are not."""
    campaign = make_campaign(session, examples=24, confirm_yes=True, consensus="dawid-skene")
    people = [make_user(session) for _ in range(4)]
    said = ["yes no yes no"] * 3 + ["unsure unsure unsure"] * 3 + ["no"] * 8 + ["yes yes"] * 4
    for question, values in zip(questions_of(session, campaign), said, strict=False):
        for value, person in zip(values.split(), people, strict=False):
            answer(session, campaign, question.id, value, by=person)
    session.commit()
    return campaign


def job(session: Session, campaign: Campaign, *, now: datetime = SOON, took_s: float = 0.0) -> None:
    """What the job does once it is due."""
    quality.keep_figures(session, quality.precompute(session, campaign, now=now), took_s=took_s)
    session.commit()
    session.expire_all()
    session.refresh(campaign, ["classes"])


def shown(session: Session, campaign: Campaign, *, limit: int = 50) -> list[int]:
    """Ids of the questions that the page shows; what it counts agrees."""
    found = quality.doubts(session, campaign, limit=limit, now=NOW)
    assert found.count == len(found.questions)
    return [question.id for question in found.questions]


def test_what_is_kept_is_what_a_visit_would_have_worked_out(
    session: Session, worked: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(session, worked)
    kept = (
        quality.doubts(session, worked, limit=50, now=NOW),
        quality.audit(session, worked, now=NOW, has_seed=True),
        quality.people(session, worked),
        quality.most_doubtful(session, worked, count=2),
    )
    monkeypatch.setattr(precomputed, "LARGE", 1000)
    found = quality.doubts(session, worked, limit=50, now=NOW)

    assert (kept[0].count, kept[0].questions) == (len(found.questions), found.questions)
    assert found.count >= 6
    now = quality.audit(session, worked, now=NOW, has_seed=True)
    assert kept[1].yes_by_true_class == now.yes_by_true_class
    assert kept[2] == quality.people(session, worked)
    assert kept[3] == quality.most_doubtful(session, worked, count=2)
    assert (kept[0].computed_at, kept[1].seen_at, found.computed_at) == (SOON, SOON, NOW)


def test_before_the_job_pages_say_so(client: TestClient, session: Session, worked: Campaign) -> None:
    here = f"/campaigns/{worked.id}"

    audit: dict[str, Any] = client.get(f"/api/v1{here}/audit").json()
    review: dict[str, Any] = client.get(f"/api/v1{here}/review").json()
    people: dict[str, Any] = client.get(f"/api/v1{here}/quality").json()

    assert (audit["yes_by_true_class"], audit["yes_by_true_class_at"]) == (None, None)
    assert (review["computed_at"], review["open"], review["questions"]) == (None, 0, [])
    assert people["computed_at"] is None
    assert {person["sensitivity"] for person in people["people"]} == {None}
    page = client.get(f"{here}/review", headers=HTML).text
    assert "Not looked for yet" in page
    assert "Nothing is in doubt" not in page
    assert "not counted yet" in client.get(f"{here}/audit", headers=HTML).text
    assert client.get(f"{here}/quality", headers=HTML).status_code == 200
    assert quality.most_doubtful(session, worked, count=5) == []


def test_pages_tell_as_of_when(client: TestClient, session: Session, worked: Campaign) -> None:
    job(session, worked, now=utc_now() - timedelta(minutes=7))
    here = f"/campaigns/{worked.id}"

    for page in ("review", "quality", "audit"):
        assert "7 min ago" in client.get(f"{here}/{page}", headers=HTML).text, page
    at = datetime.fromisoformat(client.get(f"/api/v1{here}/review").json()["computed_at"])
    assert timedelta(minutes=7) <= utc_now() - at < timedelta(minutes=8)
    seen = client.get(f"/api/v1{here}/audit").json()
    assert datetime.fromisoformat(seen["yes_by_true_class_at"]) == at


def test_only_admins_have_everything_worked_out_at_once(
    client: TestClient, annotator_client: TestClient, worked: Campaign
) -> None:
    here = f"/api/v1/campaigns/{worked.id}"
    recompute = {"recompute": True}

    assert client.get(f"{here}/review", params=recompute).json()["open"] >= 6
    assert client.get(f"{here}/audit", params=recompute).json()["yes_by_true_class"] is not None
    assert annotator_client.get(f"{here}/audit", params=recompute).json()["yes_by_true_class"] is None
    assert annotator_client.get(f"{here}/review", params=recompute).status_code == 403


class TestSince:
    def test_a_decision_is_seen_at_once_and_so_is_taking_it_back(
        self, session: Session, worked: Campaign, admin: User
    ) -> None:
        job(session, worked)
        before = shown(session, worked)

        decision = quality.decide(session, worked, before[0], YES, by=admin, now=SOON)
        assert shown(session, worked) == before[1:]
        job(session, worked)  # which finds it settled
        assert shown(session, worked) == before[1:]

        quality.take_back_decision(session, worked, decision.id, by=admin, now=SOON)
        assert shown(session, worked) == before
        job(session, worked)
        assert shown(session, worked) == before

    def test_a_decision_while_the_job_looks_is_not_lost(
        self, session: Session, worked: Campaign, admin: User
    ) -> None:
        job(session, worked)
        before = shown(session, worked)
        found = quality.precompute(session, worked, now=SOON)

        quality.decide(session, worked, before[1], NO, by=admin, now=SOON)
        quality.keep_figures(session, found, took_s=0.0)

        assert shown(session, worked) == [before[0], *before[2:]]

    def test_older_figures_do_not_come_in_the_place_of_newer_ones(
        self, session: Session, worked: Campaign
    ) -> None:
        older = quality.precompute(session, worked, now=NOW)
        job(session, worked, now=SOON)

        quality.keep_figures(session, older, took_s=0.0)

        assert quality.figures_at(session, worked, now=SOON) == SOON

    def test_what_is_asked_again_is_left_out_until_the_job_has_looked_at_its_answer(
        self, session: Session, worked: Campaign, admin: User
    ) -> None:
        job(session, worked)
        before = shown(session, worked)

        assert asked_again(session, worked, count=1, by=admin) == 1
        (again,) = set(before) - set(shown(session, worked))
        answer(session, worked, again, "yes", now=SOON + timedelta(seconds=1))
        question = session.get_one(Question, again, populate_existing=True)
        if question.is_waiting:  # its yes is to be confirmed
            answer(session, worked, again, "yes", now=SOON + timedelta(seconds=1))

        assert again not in shown(session, worked)
        assert again not in quality.most_doubtful(session, worked, count=50)
        job(session, worked, now=SOON + timedelta(hours=1))
        assert shown(session, worked) == [item.id for item in quality.open_questions(session, worked)]

    def test_a_question_whose_answer_is_taken_back_waits_and_is_left_out(
        self, session: Session, worked: Campaign
    ) -> None:
        job(session, worked)
        before = shown(session, worked)
        disputed = select(Answer.question_id).group_by(Answer.question_id).having(func.count() == 4)
        last = session.scalars(
            select(Answer).where(Answer.question_id.in_(disputed)).order_by(Answer.id.desc()).limit(1)
        ).one()  # by the fourth person, who was asked nothing else

        annotators.undo(session, worked, by=session.get_one(User, last.user_id), now=SOON)

        assert set(before) - set(shown(session, worked)) == {last.question_id}


def test_the_page_settles_and_says_what_is_left(
    client: TestClient, session: Session, worked: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precomputed, "KEPT", 1)
    job(session, worked)
    here = f"/campaigns/{worked.id}"
    all_open = client.get(f"/api/v1{here}/review").json()

    assert all_open["open"] > len(all_open["questions"]) > 0
    for item in all_open["questions"]:
        form = {"question_id": item["id"], "value": "no"}
        assert client.post(f"{here}/decisions", data=form, headers=HTML).status_code == 303
    left = all_open["open"] - len(all_open["questions"])

    page = client.get(f"{here}/review", headers=HTML).text
    assert f"{left} questions more in doubt" in page
    assert "Take back" in page
    assert client.post(f"{here}/review/ask-again", data={"count": 0}, headers=HTML).status_code == 422


def test_questions_that_nobody_more_may_be_asked_do_not_keep_the_others_out(
    session: Session, worked: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precomputed, "KEPT", 2)
    job(session, worked)

    found = quality.doubts(session, worked, limit=50, now=NOW)
    assert len([question for question in found.questions if question.answers < 4]) >= 2
    assert len(quality.most_doubtful(session, worked, count=5)) >= 2
    assert found.count == len(quality.open_questions(session, worked))


class TestDue:
    def test_at_first_and_then_only_after_a_change(
        self, session: Session, worked: Campaign, admin: User
    ) -> None:
        make_campaign(session, state="draft")
        assert quality.waiting_figures(session, NOW) == [worked.id]

        now = utc_now()
        job(session, worked, now=now)
        later = now + timedelta(hours=1)
        assert quality.waiting_figures(session, later) == []

        waiting = next(question for question in questions_of(session, worked) if question.is_waiting)
        answer(session, worked, waiting.id, "no", now=now + timedelta(seconds=9))
        assert quality.waiting_figures(session, later) == [worked.id]
        job(session, worked, now=later)
        assert quality.waiting_figures(session, later + timedelta(hours=1)) == []

        (person, *_) = quality.people(session, worked)
        annotation.leave_out(session, worked, person.user_id, by=admin, left_out=True)
        session.execute(update(KeptFigures).values(computed_at=now))
        assert quality.waiting_figures(session, later) == [worked.id]

    def test_at_most_once_a_minute_and_seldomer_the_longer_it_takes(
        self, session: Session, worked: Campaign
    ) -> None:
        job(session, worked, now=NOW)
        session.execute(update(Tally).values(last_at=NOW + timedelta(seconds=5)))

        assert quality.waiting_figures(session, NOW + timedelta(seconds=59)) == []
        assert quality.waiting_figures(session, NOW + timedelta(seconds=60)) == [worked.id]
        session.execute(update(KeptFigures).values(took_s=9.0))
        assert quality.waiting_figures(session, NOW + timedelta(seconds=179)) == []
        assert quality.waiting_figures(session, NOW + timedelta(seconds=180)) == [worked.id]

    def test_a_small_campaign_has_its_people_minded_while_it_is_open(
        self, session: Session, worked: Campaign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(precomputed, "LARGE", worked.question_count + 1)

        assert quality.waiting_figures(session, NOW) == [worked.id]
        job(session, worked)
        assert session.query(DoubtfulQuestion).count() == 0, "its pages look for themselves"
        assert quality.audit(session, worked, now=NOW, has_seed=True).seen_at == NOW
        worked.state = CampaignState.CLOSED
        assert quality.waiting_figures(session, NOW + timedelta(hours=1)) == []


def test_figures_take_the_place_of_the_last_ones(session: Session, worked: Campaign) -> None:
    job(session, worked)
    listed = session.query(DoubtfulQuestion).count()
    job(session, worked, now=SOON + timedelta(hours=1), took_s=2.0)

    figures_now = session.get_one(KeptFigures, worked.id)
    assert (figures_now.computed_at, figures_now.took_s) == (SOON + timedelta(hours=1), 2.0)
    assert session.query(DoubtfulQuestion).count() == listed == len(shown(session, worked))
