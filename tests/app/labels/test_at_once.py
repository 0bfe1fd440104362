"""Two imports of a campaign at once, on real connections: what both say counts once, and none is lost."""

import io
import threading
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.db import Database
from app.jobs import Job
from app.labels import service as labels
from app.labels.models import ImportState, LabelImport
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.accounts.conftest import committed  # noqa: F401  # a fixture
from tests.app.labels.taking import read_here
from tests.factories import NOW, make_campaign, make_user
from worker.context import Context
from worker.label_intake import import_labels

pytestmark = pytest.mark.dialects

HEAD = "position,class,annotator\n"
Bring = Callable[..., list[LabelImport]]


@pytest.fixture
def campaign(committed: Database) -> Campaign:  # noqa: F811
    with committed.write.begin() as session:
        return make_campaign(session, examples=6)


@pytest.fixture
def bring_at_once(
    committed: Database,  # noqa: F811
    campaign: Campaign,
    storage: FolderStorage,
    settings: Settings,
    published: list[Job],
) -> Bring:
    """Imports files by as many workers; each waits until all have begun."""
    context = Context(settings=settings, database=committed, storage=storage, publish=published.append)

    def make(*tables: str) -> list[LabelImport]:
        ids, begun = [], threading.Barrier(len(tables))
        for table in tables:
            with committed.write.begin() as session:
                by: User = make_user(session, role="admin")
                found = session.get_one(Campaign, campaign.id)
                session.refresh(found, ["classes"])
                file = io.BytesIO((HEAD + table).encode())
                made = labels.create_import(session, storage, found, file, filename="l.csv", by=by, now=NOW)
                ids.append(made.id)

        def read(module: str, request: Mapping[str, Any], **how: Any) -> dict[str, Any]:
            result = read_here(module, request, **how)
            begun.wait(300)
            return result

        def work(import_id: UUID) -> None:
            import_labels(context, import_id, read=read)

        threads = [threading.Thread(target=work, args=(import_id,)) for import_id in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive()
        with committed.read.begin() as session:
            return list(session.scalars(select(LabelImport).where(LabelImport.id.in_(ids))))

    return make


def answers(database: Database, campaign: Campaign) -> dict[int, int]:
    """On how many answers the label of each position rests."""
    with database.read.begin() as session:
        found = session.get_one(Campaign, campaign.id)
        session.refresh(found, ["classes"])
        return {label.position: label.answers for label in labels.labels(session, found, imported=True)}


def test_what_both_say_counts_once_and_is_known_to_the_second(
    committed: Database,  # noqa: F811
    campaign: Campaign,
    bring_at_once: Bring,
) -> None:
    rows = ["0,cat,Ada", "1,dog,Ada", "1,dog,Ben"]

    made = bring_at_once("\n".join(rows), "\n".join([*reversed(rows), "2,owl,Ada"]))

    assert [one.state for one in made] == [ImportState.READY] * 2
    assert sorted(one.known for one in made) == [0, 3]
    assert answers(committed, campaign) == {0: 1, 1: 2, 2: 1}


def test_of_two_that_contradict_each_other_one_is_refused(
    committed: Database,  # noqa: F811
    campaign: Campaign,
    bring_at_once: Bring,
) -> None:
    made = bring_at_once("0,cat,Ada", "0,dog,Ada\n1,owl,Ada")

    assert sorted(one.state for one in made) == [ImportState.FAILED, ImportState.READY]
    (refused,) = (one for one in made if one.state is ImportState.FAILED)
    assert "but line 2 of 'l.csv' says that it is" in (refused.failure or "")
    assert 0 in answers(committed, campaign)
