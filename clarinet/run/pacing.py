"""What a run is doing, told seldom enough for a database or a reader."""

import time
from collections.abc import Callable

from clarinet.recipes.choices import DoingKind
from clarinet.recipes.doing import Doing

# Times as long as the telling took: a database that answers late must not hold the run up.
LEAST_WORK = 9


class Paced:
    """An `on_doing` that passes on the first and the last of each kind, and else one in so many seconds."""

    def __init__(
        self,
        tell: Callable[[Doing], None],
        *,
        every_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._every_s = every_s
        self._clock = clock
        self._kind: DoingKind | None = None
        self._due_at = 0.0

    def __call__(self, doing: Doing) -> None:
        """Pass it on, or leave it out."""
        began = self._clock()
        if doing.kind == self._kind and doing.done < doing.total and began < self._due_at:
            return
        self._kind = doing.kind
        self._tell(doing)
        ended = self._clock()
        self._due_at = max(began + self._every_s, ended + LEAST_WORK * (ended - began))
