"""How many questions are left over because everybody at work has met their picture as a known one.

`python -m tests.app.annotation.left_over` prints the table of docs/results/quality.md, and with `time` behind
it what counting them takes.
"""

import random
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from sqlalchemy import exists, func, insert, select

from app.accounts.models import User
from app.annotation import gold, service
from app.annotation.left_to_ask import left_over
from app.annotation.models import Answer, AnswerValue, Lease, Participant, Purpose, Question, Tally
from app.annotation.service import KnownPicture
from app.campaigns.models import Campaign
from app.datasets.models import Example
from tests import annotators
from tests.factories import NOW
from worker.bench.rows import CLASSES, add_campaign, add_dataset, add_people, fresh_context
from worker.drawing import open_campaign

HELD, ANSWERED = 20, 8  # cards that a browser holds, and how many it answers until it asks for more


@dataclass(frozen=True, slots=True)
class Left:
    """What became of a campaign."""

    met: int  # known pictures that people met, each person's counted
    never: int  # questions that nobody answered
    waiting: int  # of all, that wait for ever
    told: int  # of these, how many the campaign's page still counts as to do


def measure(examples: int, known: int, people: int, share: float, *, seed: int) -> Left:
    """Let people who are never wrong answer a campaign of ten classes until nobody is asked any more."""
    with fresh_context("") as context:
        with context.unit_of_work() as session:
            admin, workers = add_people(session, people)
            campaign_id = add_campaign(session, admin, add_dataset(session, admin, examples))
            session.get_one(Campaign, campaign_id).seed = f"{seed:064x}"
        open_campaign(context, campaign_id)
        chance = random.Random(seed)
        with context.unit_of_work() as session:
            campaign = session.get_one(Campaign, campaign_id)
            campaign.gold_share, campaign.gold_bound = share, 0.0
            session.refresh(campaign, ["classes"])
            ids = list(session.scalars(select(Example.id).order_by(Example.position)))
            truth = {id_: chance.randrange(len(CLASSES)) for id_ in ids}
            marked = [KnownPicture(id_, truth[id_]) for id_ in chance.sample(ids, known)]
            service.mark_known(session, campaign, marked, by=admin)
        gold._chance = chance  # type: ignore[assignment] # the same gold in each run
        now, at_work = NOW, set(range(people))
        while at_work:
            person = chance.choice(sorted(at_work))
            now += timedelta(seconds=20)
            with context.unit_of_work() as session:
                campaign, by = (
                    session.get_one(Campaign, campaign_id),
                    session.get_one(User, workers[person].id),
                )
                held = annotators.lease(session, campaign, count=HELD, by=by, now=now)[:ANSWERED]
                given = [
                    service.SubmittedAnswer(
                        one.id,
                        AnswerValue.YES if truth[one.example_id] == one.candidate_class else AnswerValue.NO,
                        900,
                        uuid4(),
                    )
                    for one in held
                ]
                annotators.submit(session, campaign, given, by=by, now=now)
            at_work = set(range(people)) if held else at_work - {person}
        with context.reading() as session:
            campaign = service.campaign_to_answer(session, campaign_id, by=admin)
            counted = service.progress(session, campaign, now=now)
            met = session.scalar(select(func.sum(Participant.gold_answers)))
            waits = select(func.count()).where(Question.purpose != Purpose.GOLD, Question.is_waiting)
            waiting = session.scalar(waits)
            has_answer = exists().where(Answer.question_id == Question.id)
            unanswered = session.scalar(waits.where(~has_answer))
            return Left(int(met or 0), unanswered or 0, waiting or 0, counted.waiting)


def print_figures() -> None:
    """The table of docs/results/quality.md."""
    write = sys.stdout.write
    write("| questions | known | people | share | met | nobody answered | wait for ever | told to do |\n")
    write("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
    for case in (
        (1_000, 200, 5, 0.05),
        (1_000, 200, 5, 0.2),
        (1_000, 200, 5, 0.5),
        (1_000, 200, 2, 0.05),
        (1_000, 200, 2, 0.2),
        (1_000, 50, 5, 0.2),
        (1_000, 200, 1, 0.05),
    ):
        found = measure(*case, seed=1)
        examples, known, people, share = case
        write(
            f"| {examples:,} | {known} | {people} | {100 * share:.0f} % | {found.met} | {found.never} "
            f"| {found.waiting} | {found.told} |\n"
        )
        sys.stdout.flush()


def print_times() -> None:
    """How long a page that asks every other second waits for the count while people answer.

    50,000 questions, 2,000 known pictures, four people: each has met half of these and answered a quarter of
    the questions, which wait for a second person.
    """
    people, known, examples = 4, 2_000, 50_000
    with fresh_context("") as context:
        with context.unit_of_work() as session:
            admin, workers = add_people(session, people)
            campaign_id = add_campaign(session, admin, add_dataset(session, admin, examples))
        open_campaign(context, campaign_id)
        chance = random.Random(1)
        with context.unit_of_work() as session:
            campaign = session.get_one(Campaign, campaign_id)
            session.refresh(campaign, ["classes"])
            ids = list(session.scalars(select(Example.id).order_by(Example.position)))
            service.mark_known(
                session, campaign, [KnownPicture(one, 0) for one in chance.sample(ids, known)], by=admin
            )
            of = select(Question.id).where(Question.campaign_id == campaign_id).order_by(Question.id)
            gold_ids = session.scalars(of.where(Question.purpose == Purpose.GOLD)).all()
            drawn = session.scalars(of.where(Question.purpose != Purpose.GOLD)).all()
            for slot, worker in enumerate(workers):
                met = [
                    {"question_id": one, "slot": slot, "user_id": worker.id, "turn": 1}
                    for one in chance.sample(gold_ids, known // 2)
                ]
                session.execute(insert(Lease), met)
                said = [
                    {"question_id": one, "user_id": worker.id, "key": uuid4(), "created_at": NOW}
                    | {"value": AnswerValue.YES, "response_ms": 900}
                    for one in drawn[slot::people]
                ]
                session.execute(insert(Answer), said)
                tally = {"campaign_id": campaign_id, "user_id": worker.id, "candidate_class": 0}
                session.add(Tally(**tally, yes=len(said), last_at=NOW))
        with context.reading() as session:
            campaign = session.get_one(Campaign, campaign_id)
            for second in range(0, 40, 2):
                began = time.perf_counter()
                count = left_over(session, campaign, answers=second, now=NOW + timedelta(seconds=second))
                took = 1000 * (time.perf_counter() - began)
                sys.stdout.write(f"{second} s: {count} left over, {took:.1f} ms\n")


if __name__ == "__main__":
    print_times() if sys.argv[1:] == ["time"] else print_figures()
