"""What has happened lately that somebody may want to be told of, as the rows say it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, selectinload

from app.annotation.models import Participant, Tally
from app.campaigns.models import Campaign, CampaignState
from app.notices.models import Event
from app.runs.models import Run, Trial, TrialState

WINDOW = timedelta(days=1)  # what happened earlier is told to nobody any more: upkeep looks every few seconds
NEARLY = 0.95  # of a campaign's questions need no more answers
WHY = {
    "known-pictures": "too often wrong about known pictures",
    "looking": "answers as nobody does who looks at the pictures",
    "haste": "answers faster than anybody can look",
    "admin": "an admin paused them",
}


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened, and the facts of it.

    `at`: when, None where only that it is so is known. `page`: the path of the page that shows it.
    """

    event: Event
    subject: str
    at: datetime | None
    page: str
    words: str
    facts: dict[str, Any]


def _ended_runs(session: Session, *, since: datetime) -> Iterator[Happening]:
    lately = select(Trial.run_id).where(Trial.finished_at >= since)
    unfinished = select(Trial.run_id).where(Trial.state.in_((TrialState.QUEUED, TrialState.RUNNING)))
    rows = session.execute(
        select(Run, Campaign.name)
        .join(Campaign, Campaign.id == Run.campaign_id)
        .where(Run.id.in_(lately), Run.id.not_in(unfinished))
        .options(selectinload(Run.trials))
    )
    for run, campaign in rows:
        ended_at = max(one.finished_at for one in run.trials if one.finished_at)
        state = str(run.state)
        known = [one.target_accuracy for one in run.trials if one.target_accuracy is not None]
        mean = sum(known) / len(known) if known and state == TrialState.SUCCEEDED else None
        chance = 1 / len(run.snapshot_facts["classes"])
        figure = ""
        if mean is not None:
            figure = f", {100 * mean:.1f} % on the target (chance {100 * chance:.1f} %)"
        yield Happening(
            event=Event.RUN_ENDED,
            subject=f"{run.id}/{ended_at.timestamp():.3f}",  # told again should it go on and end again
            at=ended_at,
            page=f"/runs/{run.id}",
            words=f'Run {run.number} of "{campaign}" has ended: {state}{figure}.',
            facts={
                "run_id": str(run.id),
                "number": run.number,
                "state": state,
                "mean_accuracy": mean,
                "chance": chance,
                "campaign_id": str(run.campaign_id),
                "campaign": campaign,
            },
        )


def _nearly_done(session: Session, *, since: datetime) -> Iterator[Happening]:  # noqa: ARG001 - as the others
    finished = func.sum(Tally.finished)
    rows = session.execute(
        select(Campaign.id, Campaign.name, Campaign.question_count, finished)
        .join(Tally, Tally.campaign_id == Campaign.id)
        .where(Campaign.state == CampaignState.OPEN)
        .group_by(Campaign.id, Campaign.name, Campaign.question_count)
        .having(finished >= NEARLY * Campaign.question_count)
    )
    for campaign_id, name, questions, done in rows:
        left = questions - int(done)
        yield Happening(
            event=Event.CAMPAIGN_NEARLY_DONE,
            subject=f"{campaign_id}/{questions}",  # told again once further questions were nearly answered
            at=None,
            page=f"/campaigns/{campaign_id}",
            words=f'Campaign "{name}" is nearly done: {left} of {questions} questions still need answers.',
            facts={
                "campaign_id": str(campaign_id),
                "campaign": name,
                "questions": questions,
                "waiting": left,
            },
        )


def _paused_people(session: Session, *, since: datetime) -> Iterator[Happening]:
    rows = session.execute(
        select(Participant, Campaign.name)
        .join(Campaign, Campaign.id == Participant.campaign_id)
        .where(Participant.paused_at >= since)
    )
    for person, campaign in rows:
        paused_at = person.paused_at
        assert paused_at is not None  # the query asks for those alone
        why = str(person.paused_for or "admin")
        yield Happening(
            event=Event.PERSON_PAUSED,
            subject=f"{person.campaign_id}/{person.user_id}/{paused_at.timestamp():.3f}",
            at=paused_at,
            page=f"/campaigns/{person.campaign_id}/quality",
            words=f'Somebody is paused in campaign "{campaign}": {WHY[why]}.',
            facts={
                "campaign_id": str(person.campaign_id),
                "campaign": campaign,
                "user_id": str(person.user_id),
                "why": why,
            },
        )


# What looks for each event that may be told.
LOOKS: dict[Event, Callable[..., Iterator[Happening]]] = {
    Event.RUN_ENDED: _ended_runs,
    Event.CAMPAIGN_NEARLY_DONE: _nearly_done,
    Event.PERSON_PAUSED: _paused_people,
}


def happenings(session: Session, event: Event, *, now: datetime) -> Iterator[Happening]:
    """All of one kind, of the last day."""
    return LOOKS[event](session, since=now - WINDOW)
