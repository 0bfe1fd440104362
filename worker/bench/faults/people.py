"""People who answer while their servers fail, and a book of what was acknowledged to them."""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from clarinet_client import Client, Conflict, ServerAway, Unavailable
from clarinet_client.annotation import answer_to
from clarinet_client.shapes.annotation import Answer, Question

BATCH = 5
IDLE_S = 1.0  # until somebody to whom nothing was given asks again
IDLE_LOOKS = 10  # so often nothing was given: then all is answered


@dataclass(eq=False, repr=False)  # a thread is itself
class Person(threading.Thread):
    """One account at work, with a connection of its own; what was not acknowledged is sent again.

    All say the same to the same question, one time in K yes: who contradicts all others would be paused.
    `rest_s`: the mean pause between two batches.
    """

    url: str
    token: str
    campaign_id: str
    rest_s: float
    stop: threading.Event
    num_classes: int
    book: dict[str, str] = field(default_factory=dict)  # acknowledged answers: value by key
    refused: list[str] = field(default_factory=list)  # why others were not taken
    took_s: list[float] = field(default_factory=list)  # each batch, from asking to the acknowledgement
    away: int = 0  # requests that were given up

    def __post_init__(self) -> None:
        """A thread that ends with the process."""
        super().__init__(daemon=True)

    def run(self) -> None:
        """Lease and answer until nothing is given for a while, or nothing may be asked any more."""
        chance = random.Random(self.token)
        with Client(self.url, self.token) as client:
            idle = 0
            while idle < IDLE_LOOKS and not self.stop.is_set():
                start = time.monotonic()
                try:
                    leased = client.annotation.lease(self.campaign_id, count=BATCH)["questions"]
                except (ServerAway, Unavailable):
                    self.away += 1
                    self.stop.wait(IDLE_S)
                    continue
                except Conflict as refusal:
                    self.refused.append(refusal.detail)
                    return
                if leased:
                    idle = 0
                    self._answer(client, leased)
                    self.took_s.append(time.monotonic() - start)
                    self.stop.wait(self.rest_s * chance.uniform(0.5, 1.5))
                else:
                    idle += 1
                    self.stop.wait(IDLE_S)

    def _answer(self, client: Client, leased: Sequence[Question]) -> None:
        """Answer, however often it takes."""
        given = [answer_to(question, self._says(question), response_ms=900) for question in leased]
        while not self.stop.is_set():
            try:
                self._send(client, given)
            except (ServerAway, Unavailable):
                self.away += 1
                self.stop.wait(IDLE_S)
            else:
                return

    def _says(self, question: Question) -> Literal["yes", "no"]:
        chance = random.Random(question["id"])
        return "yes" if chance.random() < 1 / self.num_classes else "no"

    def _send(self, client: Client, given: list[Answer]) -> None:
        results = client.annotation.answer(self.campaign_id, given)
        for answer, result in zip(given, results, strict=True):
            if result["status"] == "refused":
                self.refused.append(result["detail"] or "")
            else:
                self.book[answer["key"]] = answer["value"]
