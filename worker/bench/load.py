"""People at work: each answers over a connection of its own, as quickly as it is served."""

import json
import random
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from uuid import UUID, uuid4

TIMEOUT_S = 30
YES_RATE = 0.1
BUSY = 503


@dataclass(frozen=True, slots=True)
class Pair:
    """A batch leased and answered: when it ended, seconds of the served requests and of all, questions."""

    end: float
    seconds: float
    waited: float
    questions: int


@dataclass(slots=True)
class Client:
    """One person's work and what came of it."""

    token: str
    took: list["Pair"] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)  # keys of acknowledged answers
    refused: int = 0
    failed: int = 0


class Clock:
    """Starts when all clients have a connection."""

    def __init__(self, clients: int, seconds: float) -> None:
        self.seconds = seconds
        self.started = 0.0
        self.all_begun = threading.Event()
        self.all_here = threading.Barrier(clients, action=self._start, timeout=TIMEOUT_S)

    def _start(self) -> None:
        self.started = time.perf_counter()
        self.all_begun.set()


def work(
    client: Client, address: tuple[str, int], campaign_id: UUID, case: tuple[int, int, int], clock: Clock
) -> None:
    """Lease and answer until the clock runs out; `case` as in `worker.bench.serve`."""
    with closing(HTTPConnection(*address, timeout=TIMEOUT_S)) as connection:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        clock.all_here.wait()
        _answer_until(client, connection, campaign_id, case, clock.started + clock.seconds)


def _answer_until(
    client: Client,
    connection: HTTPConnection,
    campaign_id: UUID,
    case: tuple[int, int, int],
    deadline: float,
) -> None:
    _, batch, requests = case
    chance = random.Random(client.token)
    path = f"/api/v1/campaigns/{campaign_id}"
    headers = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"}
    served = 0.0  # seconds of the requests of this pair that were served

    def post(what: str, body: object) -> Any:
        nonlocal served
        while (start := time.perf_counter()) < deadline:
            try:
                connection.request("POST", f"{path}/{what}", json.dumps(body), headers)
                response = connection.getresponse()
                text = response.read()
            except (OSError, HTTPException):
                client.failed += 1
                connection.close()
                continue
            if response.status == BUSY:
                client.refused += 1
                time.sleep(float(response.headers["Retry-After"]))
                continue
            if response.status != 200:  # noqa: PLR2004
                client.failed += 1
                continue
            served += time.perf_counter() - start
            return json.loads(text)
        return None

    begun = time.perf_counter()
    leased = post("questions", {"count": batch})
    while leased and leased["questions"]:
        answers: dict[str, object] = {
            "answers": [
                {
                    "question_id": question["id"],
                    "value": "yes" if chance.random() < YES_RATE else "no",
                    "response_ms": 900,
                    "key": str(uuid4()),
                }
                for question in leased["questions"]
            ]
        }
        done = post("answers", answers | ({"next": {"count": batch}} if requests == 1 else {}))
        if done is None:
            return
        end = time.perf_counter()
        kept = [item["key"] for item in done["results"] if item["status"] in ("stored", "repeated")]
        client.stored.update(kept)
        client.took.append(Pair(end, served, end - begun, len(kept)))
        begun, served = end, 0.0
        leased = done["next"] if requests == 1 else post("questions", {"count": batch})
