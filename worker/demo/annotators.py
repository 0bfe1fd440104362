"""Annotators who are programs: they answer through the REST API, with a chosen share of errors and pace."""

import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from clarinet_client import Client, Conflict, Refused, ServerAway
from clarinet_client.annotation import answer_to
from clarinet_client.shapes.annotation import Answer, Question, SimulatedAnnotator
from clarinet_client.shapes.campaigns import Campaign, Progress
from worker.demo.perception import Unanswerable, perceived

EXAMPLE = re.compile(r"/examples/(\d+)/image")
IDLE_S = 0.2  # until an annotator to whom nothing was given asks again
LOOK_S = 0.2
MAX_LEASED_S = 20.0  # lease no more than is answered in this time, or the others wait for it


@dataclass(frozen=True, slots=True)
class Plan:
    """How the simulated annotators answer.

    `error` and `confusion`: as in `perception.perceived`. `pace`: answers per second of each annotator; None:
    as fast as the server takes them. They stop when no more than `leave` questions are left that nobody has
    answered, or after `limit` answers.
    """

    annotators: int = 4
    error: float = 0.0
    confusion: Sequence[Sequence[float]] | None = None
    pace: float | None = None
    batch: int = 100
    seed: int = 0
    leave: int = 0
    limit: int | None = None


@dataclass
class Tally:
    """What the annotators have done so far; several threads change it under its lock."""

    annotators: int
    yes: int = 0
    no: int = 0
    wrong: int = 0  # not what somebody without errors would have said
    refused: int = 0
    waiting: int = 0  # questions that still need an answer, about; at the end the server's figure
    # Questions that nobody has answered, at least: nothing tells an annotator which of those that it answers
    # these are, so each answer takes one off until the server is asked again.
    fresh: int = 0
    held: int = 0  # questions leased by the annotators and not answered yet
    seconds: float = 0.0
    changes: int = 0  # how often somebody got questions or answered some
    idle: set[int] = field(default_factory=set)  # to whom nothing was given since the last change
    gone: set[int] = field(default_factory=set)  # who found that all is done, or may answer no longer
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def answers(self) -> int:
        """How many answers were stored."""
        return self.yes + self.no

    def summary(self) -> dict[str, Any]:
        """The figures for a program to read."""
        figures = {name: getattr(self, name) for name in ("annotators", "yes", "no", "wrong", "refused")}
        return figures | {
            "answers": self.answers,
            "waiting": self.waiting,
            "seconds": round(self.seconds, 2),
            "answers_per_s": round(self.answers / self.seconds, 1) if self.seconds else 0.0,
        }


def simulate(
    client: Client,
    campaign: Campaign,
    plan: Plan,
    *,
    stop: threading.Event,
    truth: Mapping[int, int | None],
    on_progress: Callable[[Tally], None],
) -> Tally:
    """Answer until nothing is left for the annotators, or `stop` is set.

    Args:
        client: of an admin, who makes the annotators' accounts.
        campaign: as the API shows it; must be open.
        plan: how to answer.
        stop: ends the work after the answers that are under way.
        truth: from `read_truth`.
        on_progress: called a few times a second from the calling thread.

    Raises:
        Refused: an annotator was refused for another reason than the campaign being closed or paused.
    """
    began = client.campaigns.progress(campaign["id"])
    tally = Tally(plan.annotators, waiting=to_do(began), fresh=began["fresh"])
    asking = threading.Lock()

    def fresh() -> int:
        with asking:
            return client.campaigns.progress(campaign["id"])["fresh"]

    crew = [client.annotation.make_simulated(name) for name in _names(plan.annotators)]
    started = time.monotonic()
    with ThreadPoolExecutor(plan.annotators) as pool:
        work = [
            pool.submit(
                Annotator(client.base_url, made, campaign, plan, truth, tally, stop, number, fresh).work
            )
            for number, made in enumerate(crew)
        ]
        try:
            while not all(one.done() for one in work):
                if any(one.done() and one.exception() for one in work):
                    break
                tally.seconds = time.monotonic() - started
                on_progress(tally)
                time.sleep(LOOK_S if plan.pace else LOOK_S / 10)
        finally:
            if not all(one.done() for one in work):
                stop.set()
    for one in work:
        one.result()
    tally.seconds = time.monotonic() - started
    tally.waiting = to_do(client.campaigns.progress(campaign["id"]))
    on_progress(tally)
    return tally


def to_do(progress: Progress) -> int:
    """Questions that wait, those among them that all at work have answered: who begins may be asked these."""
    return progress["waiting"] + progress["left_over"]


def _names(count: int) -> list[str]:
    return [f"Simulated annotator {number}" for number in range(1, count + 1)]


@dataclass
class Annotator:
    """One account at work, in a thread and with a connection of its own."""

    base_url: str
    made: SimulatedAnnotator
    campaign: Campaign
    plan: Plan
    truth: Mapping[int, int | None]
    tally: Tally
    stop: threading.Event
    number: int
    fresh: Callable[[], int]  # asks the server how many questions nobody has answered

    def work(self) -> None:
        """Lease and answer until there is nothing left to do."""
        self.jitter = random.Random(f"{self.plan.seed}/{self.number}")
        with Client(self.base_url, self.made["token"]) as client:
            try:
                while not self.stop.is_set() and self.take_turn(client):
                    pass
            except Conflict:
                pass  # the campaign was closed or paused, or this person was paused
            with suppress(Refused, ServerAway):  # what is left expires by itself
                client.annotation.release(self.campaign["id"])
            with self.tally.lock:  # what they gave back is there for the others
                self.tally.gone.add(self.number)
            with suppress(Refused, ServerAway):
                client.annotation.revoke_token(self.made["token_id"])

    def take_turn(self, client: Client) -> bool:
        """Lease some questions and answer them; False when it is time to stop."""
        wanted = self._reserve()
        if not wanted and self.plan.leave and self._has_more():
            return True
        before = self.tally.changes
        questions: list[Question] = []
        try:
            if wanted:
                leased = client.annotation.lease(self.campaign["id"], count=wanted)
                questions = leased["questions"][:wanted]
            if questions:
                self._note_change()
                self._answer(client, questions)
                self._note_change()
        finally:
            with self.tally.lock:
                self.tally.held -= wanted
        if questions:
            return True
        with self.tally.lock:
            # A yes of one annotator becomes a question to the others, as does a contradiction. So it is over
            # when all who are left have asked in vain since the last answer.
            if before == self.tally.changes:
                self.tally.idle.add(self.number)
            if len(self.tally.idle | self.tally.gone) == self.plan.annotators:
                self.tally.gone.add(self.number)  # the others end as well, whatever people do meanwhile
                return False
        self.stop.wait(IDLE_S)
        return True

    def _note_change(self) -> None:
        with self.tally.lock:
            self.tally.changes += 1
            self.tally.idle.clear()

    def _has_more(self) -> bool:
        """Whether more may be answered than was thought.

        What the server counts may have been stored before whoever stored it counts it here as well. While
        nobody has anything in hand, its count is right.
        """
        with self.tally.lock:
            before = self.tally.answers if self.tally.held == 0 else None
        fresh = self.fresh()
        with self.tally.lock:
            if before == self.tally.answers and self.tally.held == 0:
                self.tally.fresh = fresh
            return self._room() > 0

    def _reserve(self) -> int:
        """How many questions to lease; 0 while the others hold all that may be answered.

        Few where answering takes long, and few where few are left.
        """
        count = self.plan.batch
        if self.plan.pace:
            count = min(count, max(1, int(MAX_LEASED_S * self.plan.pace)))
        with self.tally.lock:
            room = self._room()
            if self.plan.leave or self.plan.limit:
                count = min(count, max(room // self.plan.annotators, int(room > 0)))
            self.tally.held += count
        return count

    def _room(self) -> int:
        """How many questions more may be leased; called under the tally's lock."""
        left = self.plan.batch * self.plan.annotators  # as far as nothing bounds it
        if self.plan.leave:
            left = self.tally.fresh - self.plan.leave - self.tally.held
        if self.plan.limit is None:
            return left
        return min(left, self.plan.limit - self.tally.answers - self.tally.held)

    def _answer(self, client: Client, questions: Sequence[Question]) -> None:
        given = [self._decide(question) for question in questions]
        if self.plan.pace is None:
            self._send(client, given)
            return
        for answer, is_wrong in given:
            pause_s = self.jitter.uniform(0.6, 1.4) / self.plan.pace
            if self.stop.wait(pause_s):
                return
            answer["response_ms"] = round(pause_s * 1000)
            self._send(client, [(answer, is_wrong)])

    def _decide(self, question: Question) -> tuple[Answer, bool]:
        """The answer to a question, and whether it is wrong."""
        found = EXAMPLE.search(question["image_url"])
        example_id = int(found[1]) if found else -1
        if example_id not in self.truth:
            raise Unanswerable(f"The image {question['image_url']} is not of the campaign's dataset.")
        truth, asked = self.truth[example_id], question["candidate_class"]
        seen = truth
        if truth is not None:
            num_classes = len(self.campaign["classes"])
            seen = perceived(
                truth,
                num_classes,
                error=self.plan.error,
                confusion=self.plan.confusion,
                chance_of=f"{self.plan.seed}/{self.number}/{example_id}",
            )
        return answer_to(question, "yes" if seen == asked else "no"), (seen == asked) != (truth == asked)

    def _send(self, client: Client, given: Sequence[tuple[Answer, bool]]) -> None:
        """Send answers until the server has them: their keys make a repetition harmless."""
        answers = [answer for answer, _ in given]
        results = client.annotation.answer(self.campaign["id"], answers)
        stored = [
            (answer["value"], is_wrong)
            for (answer, is_wrong), result in zip(given, results, strict=True)
            if result["status"] != "refused"
        ]
        with self.tally.lock:
            self.tally.yes += sum(value == "yes" for value, _ in stored)
            self.tally.no += sum(value == "no" for value, _ in stored)
            self.tally.wrong += sum(is_wrong for _, is_wrong in stored)
            self.tally.refused += len(given) - len(stored)
            self.tally.waiting -= sum(value == "no" for value, _ in stored)
            self.tally.fresh -= len(stored)
