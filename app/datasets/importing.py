"""The life of an import, of a dataset or of further images: waiting, tried again, given up."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import update
from sqlalchemy.orm import Session

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.claims import MAX_ATTEMPTS, give_up, waiting_ids
from app.datasets.errors import ImportNotKept
from app.datasets.models import Dataset, DatasetState, DatasetVersion
from app.datasets.service import delete_examples
from app.datasets.uploads import NamesEncoding

Imported = type[Dataset] | type[DatasetVersion]
JOB_OF: dict[Imported, str] = {Dataset: jobs.IMPORT_DATASET, DatasetVersion: jobs.ADD_IMAGES}


def import_of(session: Session, model: Imported, row_id: UUID) -> Dataset | DatasetVersion | None:
    """The newest state of an import's row; None where it is gone."""
    if model is Dataset:
        return session.get(Dataset, row_id, populate_existing=True)
    return session.get(DatasetVersion, row_id, populate_existing=True)


def import_again(
    session: Session,
    row: Dataset | DatasetVersion,
    *,
    skip_bad: bool = False,
    encoding: NamesEncoding = "",
    by: User,
) -> None:
    """Import a file once more that an import refused, with a choice that it lacked.

    Args:
        skip_bad: go on without the files that cannot be taken in.
        encoding: of the names in the zip.

    Raises:
        NotAllowed: `by` is no admin.
        ImportNotKept: there is no such import, or somebody was faster; nothing was changed.
    """
    accounts.require_admin(by)
    model = type(row)
    if row.mend is None or row.upload is None:
        raise ImportNotKept(_name(row))
    before = row.upload
    upload = {key: value for key, value in before.items() if key != "mend"}
    upload |= {"skip_bad": skip_bad or before["skip_bad"], "encoding": encoding or before["encoding"]}
    changed = session.execute(
        update(model)
        .where(model.id == row.id, model.state == DatasetState.FAILED)
        .values(state=DatasetState.IMPORTING, failure=None, faults=[], upload=upload, attempts=0, progress=0)
        .returning(model.id)
    )
    if changed.scalar_one_or_none() is None:
        raise ImportNotKept(_name(row))
    session.refresh(row)
    jobs.enqueue(session, JOB_OF[model], row.id)


def _name(row: Dataset | DatasetVersion) -> str:
    return row.name if isinstance(row, Dataset) else "these images"


def waiting_imports(session: Session, model: Imported, now: datetime) -> list[UUID]:
    """Imports that nobody works on, oldest first."""
    importing = model.state == DatasetState.IMPORTING
    return waiting_ids(session, model, importing, order=model.created_at, now=now)


def give_up_imports(session: Session, model: Imported, now: datetime) -> list[UUID]:
    """Fail imports whose worker died MAX_ATTEMPTS times; a job deletes the files they left."""
    given_up = give_up(
        session,
        model,
        model.state == DatasetState.IMPORTING,
        now=now,
        state=DatasetState.FAILED,
        failure=f"The import was started {MAX_ATTEMPTS} times and its worker died each time; "
        "nothing was kept. Look at the worker's log, then import the file again.",
        # That of an addition names the shards which it was promised; they are deleted by it.
        **({"upload": None} if model is Dataset else {}),
    )
    for row_id in given_up:
        if model is Dataset:
            delete_examples(session, row_id)
        jobs.enqueue(session, JOB_OF[model], row_id)
    return given_up
