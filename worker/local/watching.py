"""Whether the parts of an application in one terminal get on: one that hangs looks alive to the system."""

import time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from app.runs.workers import UPKEEP, WEB
from worker.beats import Listener

HUNG_S = 90.0  # without a sign; loading from a cold disk takes a while
UPKEEP_HUNG_S = 900.0  # once an hour it walks over all files
ANSWER_S = 5.0


class Watch:
    """Remembers when each process gave its last sign: the web process an answer, the others a beat.

    No sign needs the database, the broker or a bucket: while one of them is away, trainings go on.
    """

    def __init__(self, *, host: str, port: int, hung_s: float = HUNG_S) -> None:
        place = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        self._url = f"http://{f'[{place}]' if ':' in place else place}:{port}/healthz"
        self._opener = build_opener(ProxyHandler({}))  # a proxy of the environment knows no process of ours
        self._hung_s = hung_s
        self._signs: dict[int, float] = {}

    def is_hung(self, name: str, process_id: int, listener: Listener) -> bool:
        """Whether a child gave no sign for too long, counted from the first time that it was asked about."""
        now = time.monotonic()
        last = self._signs.setdefault(process_id, now)
        if self._answers() if name == WEB else listener.heard():
            self._signs[process_id] = now
            return False
        return now - last > (UPKEEP_HUNG_S if name == UPKEEP else self._hung_s)

    def _answers(self) -> bool:
        try:
            with self._opener.open(self._url, timeout=ANSWER_S):
                return True
        except HTTPError:
            return True  # whatever it says, it answers
        except (OSError, HTTPException):
            return False
