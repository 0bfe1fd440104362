"""Files of labels on their way in: kept with a row that says how far they are; a job reads them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO, Literal
from uuid import UUID, uuid4

from sqlalchemy import delete, event, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns.errors import WrongCampaignState
from app.campaigns.models import Campaign, CampaignState
from app.campaigns.noting import note
from app.claims import MAX_ATTEMPTS, give_up, waiting_ids
from app.journal.models import Action
from app.journal.writing import ADDRESS
from app.labels.errors import AlreadyImported, EvaluationGivesNoLabels, ImportNotFound
from app.labels.importing.reading import MAX_BYTES, too_large
from app.labels.models import ImportState, LabelImport
from app.storage import Storage

MAX_FILENAME = 200
COPY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Choices:
    """How an admin wants a file read that could be read in several ways.

    Args:
        leaves_out: both sides of a contradiction; else the file is refused.
        first_class: from which number the file counts the classes; None: from 0, if that can be.
        first_position: from which number it counts the pictures; None: likewise.
        ignored: columns that are left out, or controls of Label Studio.
        no_label: what is written in place of a class that nobody knows; "" where nobody said so.
    """

    leaves_out: bool = False
    first_class: Literal[0, 1] | None = None
    first_position: Literal[0, 1] | None = None
    ignored: Sequence[str] = ()
    no_label: str = ""


NONE_CHOSEN = Choices()


def upload_prefix(import_id: UUID) -> str:
    """Storage prefix of a file as it came, and of what is read from it."""
    return f"uploads/labels/{import_id}"


def create_import(
    session: Session,
    storage: Storage,
    campaign: Campaign,
    file: BinaryIO,
    *,
    filename: str,
    choices: Choices = NONE_CHOSEN,
    by: User,
    now: datetime,
) -> LabelImport:
    """Keep a file and ask for its import; `campaign` has its classes.

    The same file again takes the place of one that was refused, perhaps with other `choices`.

    Raises:
        NotAllowed: `by` is no admin.
        EvaluationGivesNoLabels: the campaign judges a model.
        WrongCampaignState: a draft, whose classes may still change.
        BadImport: the file is too large.
        AlreadyImported: the campaign has this very file; nothing was kept.
    """
    accounts.require_admin(by)
    if campaign.is_evaluation:
        raise EvaluationGivesNoLabels
    if campaign.state is CampaignState.DRAFT:
        raise WrongCampaignState(step="given labels from elsewhere", state="a draft", needs="an opened")
    name = filename.replace("\\", "/").rsplit("/", maxsplit=1)[-1]
    made = LabelImport(
        id=uuid4(),
        campaign_id=campaign.id,
        filename="".join(filter(str.isprintable, name))[:MAX_FILENAME] or "labels",
        created_by_id=by.id,
        created_at=now,
    )
    try:
        # Before the first statement: on SQLite a transaction keeps every other writer waiting.
        key = f"{upload_prefix(made.id)}/data"
        made.digest = _keep(storage, key, file)
        made.upload = {
            "data": key,
            "class_names": list(campaign.class_names),
            "leave_out": choices.leaves_out,
            "first_class": choices.first_class,
            "first_position": choices.first_position,
            "ignored": list(choices.ignored),
            "no_label": choices.no_label,
            "address": session.info.get(ADDRESS, ""),
        }
        session.execute(delete(LabelImport).where(*_same(made), LabelImport.state == ImportState.FAILED))
        with session.begin_nested():
            session.add(made)
    except IntegrityError as error:
        storage.delete_tree(upload_prefix(made.id))
        before = session.scalar(select(LabelImport.filename).where(*_same(made)))
        raise AlreadyImported(before or made.filename) from error
    except BaseException:
        storage.delete_tree(upload_prefix(made.id))
        raise
    jobs.enqueue(session, jobs.IMPORT_LABELS, made.id)
    return made


def _same(one: LabelImport) -> tuple[Any, Any]:
    return LabelImport.campaign_id == one.campaign_id, LabelImport.digest == one.digest


def _keep(storage: Storage, key: str, file: BinaryIO) -> str:
    """Copy a file into the storage; gives its SHA-256. Raises BadImport of one that is too large."""
    digest, size = hashlib.sha256(), 0
    with storage.create(key) as kept:
        while some := file.read(COPY_BYTES):
            size += len(some)
            if size > MAX_BYTES:
                raise too_large()
            digest.update(some)
            kept.write(some)
    return digest.hexdigest()


def imports_of(session: Session, campaign: Campaign, *, by: User) -> Sequence[LabelImport]:
    """A campaign's imports, newest first.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    return session.scalars(
        select(LabelImport)
        .where(LabelImport.campaign_id == campaign.id)
        .order_by(LabelImport.created_at.desc(), LabelImport.id)
    ).all()


def has_imports(session: Session, campaign: Campaign) -> bool:
    """Whether labels from elsewhere are there to be used."""
    ready = LabelImport.campaign_id == campaign.id, LabelImport.state == ImportState.READY
    return session.scalar(select(LabelImport.id).where(*ready).limit(1)) is not None


def get_import(session: Session, campaign_id: UUID, import_id: UUID, *, by: User) -> LabelImport:
    """One import of a campaign.

    Raises:
        NotAllowed: `by` is no admin.
        ImportNotFound: this campaign has none of that id.
    """
    accounts.require_admin(by)
    found = session.get(LabelImport, import_id)
    if found is None or found.campaign_id != campaign_id:
        raise ImportNotFound
    return found


def delete_import(
    session: Session, storage: Storage, campaign: Campaign, import_id: UUID, *, by: User
) -> None:
    """Take an import back, or end one that runs. Snapshots that runs have frozen stay as they are.

    Raises:
        NotAllowed: `by` is no admin.
        ImportNotFound: this campaign has none of that id.
    """
    accounts.require_admin(by)
    deleted = session.execute(
        delete(LabelImport)
        .where(LabelImport.id == import_id, LabelImport.campaign_id == campaign.id)
        .returning(LabelImport.id)
    ).scalar_one_or_none()
    if deleted is None:
        raise ImportNotFound
    note(session, Action.IMPORT_DELETED, campaign, by=by, details={"import": str(import_id)})

    @event.listens_for(session, "after_commit", once=True)
    def delete_files(_session: Session) -> None:
        storage.delete_tree(upload_prefix(import_id))


def waiting_imports(session: Session, now: datetime) -> list[UUID]:
    """Imports that nobody works on, oldest first."""
    importing = LabelImport.state == ImportState.IMPORTING
    return waiting_ids(session, LabelImport, importing, order=LabelImport.created_at, now=now)


def give_up_imports(session: Session, now: datetime) -> list[UUID]:
    """Fail imports whose worker died MAX_ATTEMPTS times; a job deletes what they left."""
    given_up = give_up(
        session,
        LabelImport,
        LabelImport.state == ImportState.IMPORTING,
        now=now,
        state=ImportState.FAILED,
        failure=f"The import was started {MAX_ATTEMPTS} times and its worker died each time; nothing "
        "was stored. Look at the worker's log, then import the file again.",
        upload=None,
    )
    for import_id in given_up:
        jobs.enqueue(session, jobs.IMPORT_LABELS, import_id)
    return given_up
