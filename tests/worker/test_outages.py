"""Going on while the database is away."""

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from worker.outages import keep_trying


class Flaky:
    """A step that fails a number of times."""

    def __init__(self, failures: int, error: type[Exception] = OperationalError) -> None:
        self.failures = failures
        self.error = error
        self.calls = 0

    def __call__(self) -> str:
        """Fail, or not any more."""
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error("BEGIN", None, Exception("database is locked"))
        return "written"


def test_a_step_is_repeated_until_the_database_is_back() -> None:
    step = Flaky(failures=2)

    assert keep_trying(step) == "written"
    assert step.calls == 3


def test_patience_ends() -> None:
    with pytest.raises(OperationalError):
        keep_trying(Flaky(failures=9), patience_s=0.1)


def test_a_mistake_of_ours_is_not_repeated() -> None:
    step = Flaky(failures=9, error=IntegrityError)

    with pytest.raises(IntegrityError):
        keep_trying(step)
    assert step.calls == 1
