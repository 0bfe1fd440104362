"""What both benchmarks need in an empty database: people, examples without pictures, an open campaign."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import insert
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Role, User
from app.campaigns import service as campaigns
from app.clock import utc_now
from app.datasets import versions
from app.datasets.models import Dataset, DatasetState, Example, Split
from app.jobs import Job
from app.migrate import upgrade
from app.settings import Settings
from worker.context import Context

CLASSES = tuple(f"class {number}" for number in range(10))
INSERTED = 20_000  # rows per statement


@contextmanager
def fresh_context(database_url: str) -> Iterator[Context]:
    """A database brought up to date, SQLite in a temporary folder if none is named; jobs go nowhere."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            environment="test", data_dir=Path(folder), database_url=database_url, _env_file=None
        )
        waiting: list[Job] = []
        context = Context.of(settings)
        context = Context(settings, context.database, context.storage, waiting.append)
        try:
            upgrade(context.database.engine)
            yield context
        finally:
            context.database.dispose()


def add_people(session: Session, count: int) -> tuple[User, list[User]]:
    """An admin and annotators; none has a password."""

    def person(name: str, role: Role) -> User:
        email = f"{uuid4().hex}@example.org"
        return accounts.create_user(
            session,
            email=email,
            name=name,
            role=role,
            password=None,
            now=utc_now(),
            is_simulated=role is Role.ANNOTATOR,  # programs answer faster than anybody can look
        )

    return person("Admin", Role.ADMIN), [person(f"P {n}", Role.ANNOTATOR) for n in range(count)]


def add_dataset(
    session: Session, admin: User, examples: int, *, class_names: Sequence[str] = CLASSES
) -> UUID:
    """Examples as rows alone: nothing here looks at a picture."""
    dataset = Dataset(
        name=f"Benchmark {uuid4().hex}",
        state=DatasetState.READY,
        class_names=list(class_names),
        channels=1,
        looks="digits",
        train_count=examples,
        train_per_class=[0] * len(class_names),
        test_per_class=[0] * len(class_names),
        digest="0" * 64,
        created_by_id=admin.id,
        created_at=utc_now(),
    )
    session.add(dataset)
    session.flush()
    session.add(versions.first_version(dataset, now=utc_now()))
    fixed = {
        "dataset_id": dataset.id,
        "split": Split.TRAIN,
        "true_class": None,
        "shard": 0,
        "byte_length": 1,
        "media_type": "image/png",
        "width": 1,
        "height": 1,
    }
    for start in range(0, examples, INSERTED):
        rows = [
            fixed | {"position": position, "byte_offset": position, "digest": f"{position:064x}"}
            for position in range(start, min(examples, start + INSERTED))
        ]
        session.execute(insert(Example), rows)
    return dataset.id


def add_campaign(session: Session, admin: User, dataset_id: UUID) -> UUID:
    """A campaign about to be opened: `worker.drawing.open_campaign` draws its questions."""
    details = campaigns.CampaignDetails(name=f"Benchmark {uuid4().hex}", dataset_id=dataset_id)
    campaign = campaigns.create_campaign(session, details, by=admin, now=utc_now())
    campaigns.open_campaign(session, campaign, by=admin, now=utc_now())
    return campaign.id
