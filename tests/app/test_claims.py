"""One mechanism decides who works on a row, for datasets, campaigns and trials alike."""

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from app import claims
from app.accounts.models import User
from app.datasets.models import Dataset
from tests.factories import NOW, number

pytestmark = pytest.mark.dialects


@pytest.fixture
def dataset(session: Session, admin: User) -> Dataset:
    row = Dataset(name=f"set {number()}", created_by_id=admin.id, created_at=NOW)
    session.add(row)
    session.commit()
    return row


def test_a_claim_is_won_once(session: Session, dataset: Dataset) -> None:
    first = claims.claim(session, Dataset, dataset.id, by="a", now=NOW)
    second = claims.claim(session, Dataset, dataset.id, by="b", now=NOW)

    assert first == claims.Claim(Dataset, dataset.id, 1)
    assert second is None


def test_a_lapsed_claim_is_taken_over_and_the_old_one_writes_nothing(
    session: Session, dataset: Dataset
) -> None:
    old = claims.claim(session, Dataset, dataset.id, by="a", now=NOW)
    new = claims.claim(session, Dataset, dataset.id, by="b", now=NOW + claims.LEASE + timedelta(seconds=1))

    assert old is not None
    assert new is not None
    with pytest.raises(claims.ClaimLost):
        claims.write(session, old, progress=1)
    claims.write(session, new, progress=2)
    session.refresh(dataset)
    assert (dataset.progress, dataset.attempts, dataset.claimed_by) == (2, 2, "b")


def test_renewing_keeps_others_away(session: Session, dataset: Dataset) -> None:
    held = claims.claim(session, Dataset, dataset.id, by="a", now=NOW)
    assert held is not None

    claims.renew(session, held, now=NOW + claims.LEASE)

    later = NOW + claims.LEASE + timedelta(seconds=1)
    assert claims.claim(session, Dataset, dataset.id, by="b", now=later) is None


def test_a_released_row_is_free_and_takes_no_late_write(session: Session, dataset: Dataset) -> None:
    held = claims.claim(session, Dataset, dataset.id, by="a", now=NOW)
    assert held is not None

    claims.release(session, held, progress=5)

    with pytest.raises(claims.ClaimLost):
        claims.write(session, held, progress=6)
    assert claims.claim(session, Dataset, dataset.id, by="b", now=NOW) is not None


def test_conditions_of_waiting_work_hold_in_the_same_statement(session: Session, dataset: Dataset) -> None:
    assert claims.claim(session, Dataset, dataset.id, Dataset.name == "another", by="a", now=NOW) is None
