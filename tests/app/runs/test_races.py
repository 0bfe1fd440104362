"""Two at once, on real connections: a run that is deleted, tried again, or tidied up after."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.db import Database
from app.disk.retention import Policy, tidy
from app.errors import AppError
from app.registry import removing
from app.runs import service, steering
from app.runs.errors import RunNotFound, RunNotOver
from app.runs.models import Run, Trial, TrialState
from app.runs.trials import CHECKPOINT, trial_prefix
from app.stores.folder import FolderStorage
from tests.app.accounts.conftest import committed  # noqa: F401  # a fixture
from tests.factories import NOW, make_run, make_user

pytestmark = pytest.mark.dialects

AT_ONCE = Policy(logs=timedelta(0), checkpoints=timedelta(0))
WAITS_S = 0.5  # what does not wait for the other has ended by then


class Beside:
    """What one does while another's transaction is open; it began when that had done its work."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.refused: AppError | None = None
        self._act = act
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._thread.join(WAITS_S)
        self.waited = self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._act()
        except AppError as error:
            self.refused = error

    def end(self) -> None:
        """Wait for its end."""
        self._thread.join(300)
        assert not self._thread.is_alive()


@pytest.fixture
def admin(committed: Database) -> User:  # noqa: F811
    with committed.write.begin() as session:
        return make_user(session, role="admin")


@pytest.fixture
def run(committed: Database, storage: FolderStorage) -> Run:  # noqa: F811
    """A run that has failed and left a checkpoint."""
    with committed.write.begin() as session:
        run = make_run(session, storage, train=2, state="failed")
        run.trials[0].finished_at = NOW
    storage.put(f"{trial_prefix(run.trials[0].id)}/{CHECKPOINT}", b"so far")
    return run


def retry(session: Session, run: Run, admin: User) -> None:
    found = service.get_run(session, run.id, by=admin)
    steering.retry_failed(session, found, by=admin, now=NOW)


def delete(session: Session, storage: FolderStorage, run: Run, admin: User) -> None:
    found = service.get_run(session, run.id, by=admin)
    removing.delete_run(session, storage, found, by=admin, now=NOW)


def in_a_transaction(database: Database, act: Callable[[Session], None]) -> Callable[[], None]:
    def run() -> None:
        with database.write.begin() as session:
            act(session)

    return run


def states(database: Database) -> list[TrialState]:
    with database.read.begin() as session:
        return list(session.scalars(select(Trial.state)))


def test_what_somebody_lets_try_again_is_not_deleted_under_it(
    committed: Database,  # noqa: F811
    storage: FolderStorage,
    run: Run,
    admin: User,
) -> None:
    with committed.write.begin() as session:
        retry(session, run, admin)
        session.flush()
        other = Beside(in_a_transaction(committed, lambda own: delete(own, storage, run, admin)))
    other.end()

    assert other.waited
    assert isinstance(other.refused, RunNotOver)
    assert states(committed) == [TrialState.QUEUED]


def test_what_somebody_deletes_is_not_tried_again(
    committed: Database,  # noqa: F811
    storage: FolderStorage,
    run: Run,
    admin: User,
) -> None:
    with committed.write.begin() as session:
        delete(session, storage, run, admin)
        other = Beside(in_a_transaction(committed, lambda own: retry(own, run, admin)))
    other.end()

    assert isinstance(other.refused, RunNotFound)
    assert states(committed) == []


def test_a_checkpoint_from_which_somebody_lets_a_trial_go_on_stays(
    committed: Database,  # noqa: F811
    storage: FolderStorage,
    run: Run,
    admin: User,
) -> None:
    checkpoint = storage.path(f"{trial_prefix(run.trials[0].id)}/{CHECKPOINT}")
    with committed.write.begin() as session:
        retry(session, run, admin)
        session.flush()
        other = Beside(lambda: tidy(committed, storage, AT_ONCE, now=NOW + timedelta(days=9)))
        assert checkpoint.exists()
    other.end()

    assert checkpoint.exists()


def test_what_is_deleted_and_tidied_up_after_at_once_goes_without_a_fault(
    committed: Database,  # noqa: F811
    storage: FolderStorage,
    run: Run,
    admin: User,
) -> None:
    gone: list[int] = []
    with committed.write.begin() as session:
        delete(session, storage, run, admin)
        other = Beside(lambda: gone.append(tidy(committed, storage, AT_ONCE, now=NOW + timedelta(days=9))))
    other.end()

    assert gone == [1]  # its frozen labels, which no other run uses
    assert states(committed) == []
    assert not storage.path(trial_prefix(run.trials[0].id)).exists()
