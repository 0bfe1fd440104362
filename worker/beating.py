"""Steps that take long and know of no claim, such as copying files, while a claim is held."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app import claims
from app.claims import BEAT_S, Claim
from app.clock import utc_now
from worker.context import Context

Result = TypeVar("Result")


class Stopped(Exception):
    """The worker is shutting down; another may go on."""


def renewing(context: Context, claim: Claim) -> Callable[[], None]:
    """What holds a claim for another lease whenever it is called; raises ClaimLost."""

    def beat() -> None:
        with context.unit_of_work() as session:
            claims.renew(session, claim, now=utc_now())

    return beat


def beating(step: Callable[[], Result], beat: Callable[[], None]) -> Result:
    """What a step gives, which runs in a thread of its own.

    Args:
        step: what takes long.
        beat: called at least every BEAT_S / 2 meanwhile; may raise, which waits for the end of the step.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="step") as thread:
        running = thread.submit(step)
        while True:
            try:
                return running.result(timeout=BEAT_S / 2)
            except TimeoutError:
                if running.done():  # the step's own
                    raise
            beat()
