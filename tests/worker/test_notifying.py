"""Notices: each event once for each subscription, sent to a real server, tried again, given up."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from app import jobs
from app.accounts.models import User
from app.annotation.models import Participant, PausedFor, Tally
from app.clock import utc_now
from app.jobs import Job
from app.notices import service
from app.notices.models import Event, Notice, NoticeState, Subscription
from app.runs.models import Run, TrialState
from app.settings import Settings
from tests.app.test_mail import Server
from tests.factories import make_campaign, make_run, make_user
from tests.receiving import LOST, Receiver
from tests.worker.conftest import both_databases
from worker.context import Context
from worker.notifying import send_notice
from worker.upkeep import Upkeep

ALL = [Event.RUN_ENDED, Event.CAMPAIGN_NEARLY_DONE, Event.PERSON_PAUSED]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A program that is told."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def context(context: Context, receiver: Receiver) -> Context:
    """One that may post to this machine."""
    hosts = ("localhost", "localhost:9", f"localhost:{receiver.port}")
    more = {"webhook_hosts": hosts, "webhook_private_addresses": True}
    settings = Settings(**context.settings.model_dump() | more, _env_file=None)
    return Context(settings, context.database, context.storage, context.publish)


def subscribe(context: Context, url: str | None, *events: Event) -> tuple[UUID, str | None]:
    """A subscription of an admin; its id and secret."""
    with context.unit_of_work() as session:
        admin = make_user(session, role="admin")
        made = service.subscribe(
            session, context.settings, url=url, events=events or ALL, by=admin, now=utc_now()
        )
        return made.id, made.secret


def notices(context: Context) -> list[Notice]:
    """All, in the order of their events."""
    with context.reading() as session:
        return [*session.scalars(select(Notice).order_by(Notice.event))]


def happen(context: Context, *, at: datetime) -> tuple[Run, Any]:
    """A run ends, a campaign is nearly done, and somebody in it is paused."""
    with context.unit_of_work() as session:
        run = make_run(session, context.storage, seeds=(0, 1), train=2)
        for trial, accuracy in zip(run.trials, (0.5, 0.75), strict=True):
            trial.state, trial.finished_at, trial.target_accuracy = TrialState.SUCCEEDED, at, accuracy
        campaign = make_campaign(session)
        person = make_user(session)
        session.add(Tally(campaign_id=campaign.id, user_id=person.id, candidate_class=0, last_at=at))
        session.flush()
        tally = session.scalars(select(Tally).where(Tally.campaign_id == campaign.id)).one()
        tally.finished = campaign.question_count
        session.add(
            Participant(
                campaign_id=campaign.id, user_id=person.id, paused_at=at, paused_for=PausedFor.LOOKING
            )
        )
        return run, campaign


@both_databases
def test_each_event_is_told_once_to_who_wants_it(
    context: Context, receiver: Receiver, jobs_sent: list[Job]
) -> None:
    wanting, secret = subscribe(context, f"http://localhost:{receiver.port}/all")
    subscribe(context, f"http://localhost:{receiver.port}/runs", Event.RUN_ENDED)
    run, campaign = happen(context, at=utc_now())
    jobs_sent.clear()

    upkeep = Upkeep(context)
    upkeep.once()
    upkeep.once()
    Upkeep(context).once()  # another one, or the same started again

    assert [notice.event for notice in notices(context)] == [
        Event.CAMPAIGN_NEARLY_DONE,
        Event.PERSON_PAUSED,
        Event.RUN_ENDED,
        Event.RUN_ENDED,
    ]
    asked = [UUID(job.args[0]) for job in jobs_sent if job.name == jobs.SEND_NOTICE]
    assert len(asked) == 8  # a nudge of each upkeep
    for notice_id in asked:
        send_notice(context, notice_id)
    assert {notice.state for notice in notices(context)} == {NoticeState.SENT}
    assert sorted(one.path for one in receiver.asked) == ["/all", "/all", "/all", "/runs"]
    told = {notice.event: notice.said for notice in notices(context) if notice.subscription_id == wanting}
    ended = told[Event.RUN_ENDED]["data"]
    assert (ended["number"], ended["state"], ended["mean_accuracy"]) == (run.number, "succeeded", 0.625)
    assert ended["chance"] == 0.5
    assert ended["words"].endswith("has ended: succeeded, 62.5 % on the target (chance 50.0 %).")
    assert ended["url"] == f"http://127.0.0.1:8000/runs/{run.id}"
    paused = told[Event.PERSON_PAUSED]["data"]
    assert (paused["campaign"], paused["why"]) == (campaign.name, "looking")
    assert told[Event.CAMPAIGN_NEARLY_DONE]["data"]["waiting"] == 0
    assert secret is not None


def test_what_happened_before_or_still_goes_on_is_not_told(context: Context) -> None:
    happen(context, at=utc_now() - timedelta(minutes=1))
    subscribe(context, "http://localhost/", Event.RUN_ENDED, Event.PERSON_PAUSED)
    with context.unit_of_work() as session:
        going = make_run(session, context.storage, seeds=(0, 1), train=2)
        going.trials[0].state, going.trials[0].finished_at = TrialState.FAILED, utc_now()

    Upkeep(context).once()

    assert notices(context) == []


@both_databases
def test_what_fails_is_tried_again_later_under_the_same_id_and_given_up_in_the_end(
    context: Context, receiver: Receiver
) -> None:
    made, _ = subscribe(context, f"http://localhost:{receiver.port}/")
    with context.unit_of_work() as session:
        admin = session.scalars(select(User)).first()
        assert admin
        notice = service.try_out(session, context.settings, made, by=admin, now=utc_now())
    receiver.will(LOST, (500, {}, {}))

    for attempt in range(1, service.MAX_ATTEMPTS + 1):
        send_notice(context, notice.id)
        send_notice(context, notice.id)  # too early: nothing is sent
        [now] = notices(context)
        assert now.attempts == len(receiver.asked) == attempt
        if attempt == 1:
            assert "could not be reached" in str(now.failure)
        if attempt < service.MAX_ATTEMPTS:
            assert now.state is NoticeState.WAITING
            assert now.due_at - utc_now() > service.PAUSES[attempt - 1] - timedelta(seconds=9)
        with context.unit_of_work() as session:
            session.get_one(Notice, notice.id).due_at = utc_now()

    [end] = notices(context)
    assert (end.state, end.failure) == (NoticeState.GIVEN_UP, "It answered 500.")
    assert {one.headers["webhook-id"] for one in receiver.asked} == {str(notice.id)}


def test_a_notice_whose_sender_was_lost_is_sent_by_another_and_in_the_end_given_up(context: Context) -> None:
    made, _ = subscribe(context, "http://localhost:9/")
    now = utc_now()
    with context.unit_of_work() as session:
        admin = session.scalars(select(User)).one()
        notice = service.try_out(session, context.settings, made, by=admin, now=now)
        assert service.claim_notice(session, notice.id, by="lost", now=now)
    with context.unit_of_work() as session:
        assert service.claim_notice(session, notice.id, by="another", now=now) is None
        assert service.waiting_notices(session, now) == []
        later = now + timedelta(minutes=1)
        assert service.waiting_notices(session, later) == [notice.id]
        session.get_one(Notice, notice.id).attempts = service.MAX_ATTEMPTS
        session.flush()
        assert service.waiting_notices(session, later) == []

    assert [(one.state, one.failure) for one in notices(context)] == [(NoticeState.GIVEN_UP, service.LOST)]


def test_an_admin_is_told_by_mail_until_they_are_none(context: Context) -> None:
    server = Server()
    mail = {"smtp_url": f"smtp://{server.address}", "mail_from": "clarinet@example.org"}
    settings = Settings(**context.settings.model_dump() | mail, _env_file=None)
    mailing = Context(settings, context.database, context.storage, context.publish)
    try:
        made, secret = subscribe(mailing, None, Event.RUN_ENDED)
        run, _ = happen(mailing, at=utc_now())
        Upkeep(mailing).once()
        [notice] = notices(mailing)
        send_notice(mailing, notice.id)
    finally:
        server.controller.stop()

    [message] = server.box.messages
    assert secret is None
    assert message["Subject"].strip().startswith(f"Clarinet: Run {run.number} of")
    assert f"/runs/{run.id}" in message.get_content()  # type: ignore[attr-defined]  # of the policy's messages
    with mailing.unit_of_work() as session:
        owner = session.get_one(Subscription, made).created_by_id
        person = session.get_one(User, owner)
        assert message["To"] == person.email
        again = service.try_out(session, settings, made, by=person, now=utc_now())
        person.disabled_at = utc_now()
    send_notice(mailing, again.id)
    assert "no admin of this installation any more" in str(notices(mailing)[-1].failure)
