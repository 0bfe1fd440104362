"""Many people at once, on real connections: nothing is held or answered twice."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine, func, select, text
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.errors import CampaignNotOpen
from app.annotation.models import Answer, AnswerValue, Lease, Question
from app.campaigns import service as campaigns
from app.clock import utc_now
from app.db import Base, Database, connect
from app.errors import Conflict
from app.fast.answering import FAST
from app.quality import service as quality
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import make_campaign, make_user

pytestmark = [pytest.mark.long, pytest.mark.dialects]

PEOPLE = 8
TIMEOUT_S = 120


@pytest.fixture(autouse=True, params=[FAST, service.PLAIN], ids=["fast", "plain"])
def _execution(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here holds for both executions."""
    monkeypatch.setattr(annotators, "execution", request.param)


@pytest.fixture(params=["sqlite", "postgresql"])
def committed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of its own, whose transactions really commit."""
    if request.param == "sqlite":
        database = connect(f"sqlite:///{tmp_path / 'race.db'}")
        Base.metadata.create_all(database.engine)
        yield database
        database.dispose()
        return
    url = request.getfixturevalue("postgres_url")
    server = create_engine(url, isolation_level="AUTOCOMMIT")
    name = f"clarinet_race_{uuid4().hex[:12]}"
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    database = connect(server.url.set(database=name).render_as_string(hide_password=False))
    Base.metadata.create_all(database.engine)
    yield database
    database.dispose()
    with server.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


def arranged(database: Database, *, examples: int, confirm_yes: bool) -> tuple[UUID, list[User]]:
    """An open campaign and some people."""
    with database.write.begin() as session:
        campaign = make_campaign(session, examples=examples, confirm_yes=confirm_yes)
        return campaign.id, [make_user(session) for _ in range(PEOPLE)]


def at_once(actions: list[Callable[[], None]]) -> None:
    """Run all actions in threads that start together; a failure in one is a failure of the test."""
    barrier = threading.Barrier(len(actions))

    def run(action: Callable[[], None]) -> None:
        barrier.wait()
        action()

    with ThreadPoolExecutor(len(actions)) as pool:
        for future in [pool.submit(run, action) for action in actions]:
            future.result(TIMEOUT_S)


def assert_no_doubles(session: Session) -> None:
    """No slot has two answers, no question more answers than slots, nobody answered a question twice."""
    live = select(Answer).where(Answer.superseded_at.is_(None), Answer.value != AnswerValue.UNSURE).subquery()
    over = session.execute(
        select(Question.id, Question.slots, func.count())
        .join(live, live.c.question_id == Question.id)
        .group_by(Question.id, Question.slots)
        .having(func.count() > Question.slots)
    ).all()
    assert over == []
    answered_slots = session.scalar(select(func.count()).select_from(Lease).where(Lease.expires_at.is_(None)))
    assert answered_slots == session.scalar(select(func.count()).select_from(live))


def test_people_who_ask_at_once_get_different_questions(committed: Database) -> None:
    campaign_id, people = arranged(committed, examples=200, confirm_yes=False)
    held: dict[UUID, list[int]] = {person.id: [] for person in people}

    def ask(person: User) -> None:
        for count in (1, 5, 20):
            with committed.write.begin() as session:
                campaign = service.campaign_to_answer(session, campaign_id, by=person)
                leased = annotators.lease(session, campaign, count=count, by=person, now=utc_now())
            held[person.id] = [question.id for question in leased]

    at_once([lambda person=person: ask(person) for person in people])  # type: ignore[misc]

    everything = [id_ for ids in held.values() for id_ in ids]
    assert len(everything) == len(set(everything))
    assert [len(ids) for ids in held.values()] == [20] * PEOPLE


def test_pages_of_one_class_are_shared_by_nobody(committed: Database) -> None:
    campaign_id, people = arranged(committed, examples=400, confirm_yes=False)
    pages: list[list[service.LeasedQuestion]] = []

    def ask(person: User) -> None:
        with committed.write.begin() as session:
            campaign = service.campaign_to_answer(session, campaign_id, by=person)
            page = annotators.lease(session, campaign, count=30, one_class=True, by=person, now=utc_now())
            pages.append(page)

    at_once([lambda person=person: ask(person) for person in people])  # type: ignore[misc]

    ids = [question.id for page in pages for question in page]
    assert len(ids) == len(set(ids))
    # A page is empty when others are taking the whole block at that very moment; the screen then asks again.
    assert all(len({question.candidate_class for question in page}) <= 1 for page in pages)
    assert sum(map(bool, pages)) >= len(pages) / 2


def test_two_tabs_of_one_person_get_the_same_questions(committed: Database) -> None:
    campaign_id, (person, *_) = arranged(committed, examples=200, confirm_yes=False)
    seen: list[list[int]] = []

    def ask() -> None:
        with committed.write.begin() as session:
            campaign = service.campaign_to_answer(session, campaign_id, by=person)
            leased = annotators.lease(session, campaign, count=10, by=person, now=utc_now())
        seen.append([question.id for question in leased])

    at_once([ask] * 6)

    assert len(seen) == 6
    assert all(ids == seen[0] for ids in seen)


def test_one_batch_sent_six_times_at_once_is_stored_once(committed: Database) -> None:
    campaign_id, (person, *_) = arranged(committed, examples=50, confirm_yes=False)
    with committed.write.begin() as session:
        campaign = service.campaign_to_answer(session, campaign_id, by=person)
        leased = annotators.lease(session, campaign, count=20, by=person, now=utc_now())
    batch = [service.SubmittedAnswer(question.id, AnswerValue.NO, 5, uuid4()) for question in leased]
    outcomes: list[service.Outcome] = []

    def send() -> None:
        with committed.write.begin() as session:
            campaign = service.campaign_to_answer(session, campaign_id, by=person)
            outcomes.extend(annotators.submit(session, campaign, batch, by=person, now=utc_now()))

    at_once([send] * 6)

    statuses = [outcome.status for outcome in outcomes]
    assert statuses.count(service.Status.STORED) == 20
    assert statuses.count(service.Status.REPEATED) == 100
    with committed.read.begin() as session:
        assert session.scalar(select(func.count()).select_from(Answer)) == 20


def close(database: Database, campaign_id: UUID) -> None:
    """Close a campaign in a transaction of its own."""
    with database.write.begin() as session:
        campaign = campaigns.any_campaign(session, campaign_id)
        campaigns.close_campaign(session, campaign, by=make_user(session, role="admin"), now=utc_now())


def test_closing_waits_for_an_answer_that_is_being_stored(committed: Database) -> None:
    campaign_id, (person, *_) = arranged(committed, examples=20, confirm_yes=False)
    stored, closed = threading.Event(), threading.Event()

    def answer() -> None:
        with committed.write.begin() as session:
            campaign = service.campaign_to_answer(session, campaign_id, by=person)
            (question,) = annotators.lease(session, campaign, count=1, by=person, now=utc_now())
            item = service.SubmittedAnswer(question.id, AnswerValue.NO, 5, uuid4())
            annotators.submit(session, campaign, [item], by=person, now=utc_now())
            stored.set()
            assert not closed.wait(0.5)

    def close_after() -> None:
        assert stored.wait(TIMEOUT_S)
        close(committed, campaign_id)
        closed.set()

    at_once([answer, close_after])

    assert closed.is_set()
    with committed.read.begin() as session:
        assert session.scalar(select(func.count()).select_from(Answer)) == 1


def test_a_campaign_read_before_it_closed_takes_nothing_afterwards(committed: Database) -> None:
    if committed.engine.dialect.name == "sqlite":
        pytest.skip("one writer: nobody closes a campaign while somebody else's transaction writes")
    campaign_id, (person, *_) = arranged(committed, examples=20, confirm_yes=False)
    with committed.write.begin() as session:
        campaign = service.campaign_to_answer(session, campaign_id, by=person)
        first, second = annotators.lease(session, campaign, count=2, by=person, now=utc_now())
        item = service.SubmittedAnswer(first.id, AnswerValue.NO, 5, uuid4())
        annotators.submit(session, campaign, [item], by=person, now=utc_now())

    with committed.write.begin() as session:
        campaign = service.campaign_to_answer(session, campaign_id, by=person)
        close(committed, campaign_id)
        late = service.SubmittedAnswer(second.id, AnswerValue.NO, 5, uuid4())
        (outcome,) = annotators.submit(session, campaign, [late], by=person, now=utc_now())
        with pytest.raises(CampaignNotOpen):
            annotators.undo(session, campaign, by=person, now=utc_now())
        with pytest.raises(CampaignNotOpen):
            annotators.lease(session, campaign, count=5, by=person, now=utc_now())

    assert outcome.status is service.Status.REFUSED


def test_an_undo_of_many_and_answers_to_the_same_questions_pass_each_other(committed: Database) -> None:
    with committed.write.begin() as session:
        campaign = make_campaign(session, examples=20, overlap=2)
        people = [make_user(session) for _ in range(2)]
        for person in people:
            assert len(annotators.lease(session, campaign, count=20, by=person, now=utc_now())) == 20

    def answer_all_and_undo(person: User) -> None:
        for _ in range(15):
            with committed.write.begin() as session:
                held = annotators.lease(session, campaign, count=20, by=person, now=utc_now())
            given = [service.SubmittedAnswer(question.id, AnswerValue.NO, 5, uuid4()) for question in held]
            with committed.write.begin() as session:
                annotators.submit(session, campaign, given, by=person, now=utc_now())
            with committed.write.begin() as session:
                assert len(annotators.undo(session, campaign, count=20, by=person, now=utc_now())) == 20

    at_once([lambda person=person: answer_all_and_undo(person) for person in people])  # type: ignore[misc]

    with committed.read.begin() as session:
        assert_no_doubles(session)
        assert_sums(session, campaigns.any_campaign(session, campaign.id))


def test_a_busy_campaign_ends_without_doubles(committed: Database) -> None:
    """Eight people lease, answer, undo, give back and repeat themselves until nothing is left to ask."""
    campaign_id, people = arranged(committed, examples=150, confirm_yes=True)

    def work(person: User, seed: int) -> None:
        chance = random.Random(seed)
        idle = 0
        while idle < 3:
            with committed.write.begin() as session:
                campaign = service.campaign_to_answer(session, campaign_id, by=person)
                leased = annotators.lease(
                    session,
                    campaign,
                    count=chance.choice([1, 3, 20]),
                    one_class=chance.random() < 0.3,
                    by=person,
                    now=utc_now(),
                )
            idle = 0 if leased else idle + 1
            if chance.random() < 0.1:
                with committed.write.begin() as session:
                    annotators.release(session, campaign, by=person, now=utc_now())
            values = chance.choices(["yes", "no", "unsure"], [3, 6, 1], k=len(leased))
            batch = [
                service.SubmittedAnswer(question.id, AnswerValue(value), 5, uuid4())
                for question, value in zip(leased, values, strict=True)
            ]
            for _ in range(chance.choice([1, 1, 2])):
                with committed.write.begin() as session:
                    annotators.submit(session, campaign, batch, by=person, now=utc_now())
            if chance.random() < 0.2:
                try:
                    with committed.write.begin() as session:
                        annotators.undo(session, campaign, by=person, now=utc_now())
                except Conflict:
                    continue

    at_once([lambda person=person, i=i: work(person, i) for i, person in enumerate(people)])  # type: ignore[misc]

    with committed.read.begin() as session:
        assert_no_doubles(session)
        campaign = campaigns.any_campaign(session, campaign_id)
        assert_sums(session, campaign)
        assert quality.audit(session, campaign, now=utc_now(), has_seed=True, recompute=True).draws_match
        left = session.scalar(select(func.count()).select_from(Question).where(Question.is_waiting))
        # What is left was skipped or answered by everybody who is still here, or held in an undo.
        assert (left or 0) < 15


def test_the_time_of_one_person_is_used_once_by_three_campaigns_at_once(committed: Database) -> None:
    now = utc_now()
    with committed.write.begin() as session:
        person, campaigns_of = make_user(session), [make_campaign(session, examples=8) for _ in range(3)]
        held = {}
        for campaign in campaigns_of:
            campaign.least_card_ms = 1_000
            session.flush()
            leased = annotators.lease(session, campaign, count=8, by=person, now=now)
            held[campaign.id] = [item.id for item in leased]

    def send(campaign_id: UUID) -> None:
        given = [service.SubmittedAnswer(id_, AnswerValue.NO, 1_000, uuid4()) for id_ in held[campaign_id]]
        with committed.write.begin() as session:
            campaign = service.campaign_to_answer(session, campaign_id, by=person)
            annotators.submit(session, campaign, given, by=person, now=now + timedelta(milliseconds=8_300))

    at_once([lambda id_=id_: send(id_) for id_ in held])  # type: ignore[misc]

    with committed.write.begin() as session:
        hasty = select(func.count()).where(Answer.is_hasty)
        assert (session.scalar(hasty), session.scalar(select(func.count(Answer.id)))) == (16, 24)
