"""Labels from elsewhere in a campaign: kept beside its answers, never among them."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import case, delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation.consensus import verdict
from app.annotation.models import AnswerValue
from app.campaigns.errors import WrongCampaignState
from app.campaigns.models import Campaign, CampaignState
from app.campaigns.noting import note
from app.datasets.models import Example, Split
from app.datasets.versions import train_rows
from app.journal.models import Action
from app.labels.errors import AlreadyImported, BadImport, ImportNotFound
from app.labels.importing.reading import AnswerInFile, FileOfLabels, Reading, read_answers
from app.labels.models import ImportedAnswer, LabelImport
from clarinet.files.folders import PathFinder
from clarinet.files.label_table import LabelRow
from clarinet.files.names import NO_LABEL, class_numbers
from clarinet.recipes.errors import DataError

ASKED_AT_ONCE = 500  # SQLite takes some thousand parameters in a statement
MAX_FILENAME = 200


@dataclass(frozen=True, slots=True)
class PreparedImport:
    """A file that was understood and fits its campaign, ready to be stored."""

    campaign_id: UUID
    filename: str
    digest: str
    rows: list[dict[str, Any]]  # columns of ImportedAnswer

    def count(self, value: AnswerValue) -> int:
        """How often the file says it."""
        return sum(row["value"] is value for row in self.rows)


def prepare_import(
    session: Session, campaign: Campaign, data: bytes, *, filename: str, by: User
) -> PreparedImport:
    """Understand a file. May take a second: give a session that only looks; `campaign` has its classes.

    Raises:
        NotAllowed: `by` is no admin.
        WrongCampaignState: a draft, whose classes may still change.
        BadImport: what is wrong with the file, and where.
    """
    accounts.require_admin(by)
    if campaign.state is CampaignState.DRAFT:
        raise WrongCampaignState(step="given labels from elsewhere", state="a draft", needs="an opened")
    file = read_answers(data)
    said = file.answers
    by_name = _by_filename(session, campaign, {item.filename for item in said if item.filename})
    by_position = _examples(session, campaign, {item.position for item in said if item.position is not None})
    ids = {item.example_id for item in said if item.position is None and item.example_id is not None}
    known_ids = _known(session, campaign, ids)
    classes = _classes(file, campaign)
    rows = []
    for item in said:
        if item.filename and by_name is not None:
            example_id = by_name.get(item.filename)
        elif item.position is not None:
            example_id = by_position.get(item.position)
        else:
            example_id = item.example_id if item.example_id in known_ids else None
        if example_id is None:
            raise BadImport(_no_picture(item))
        class_ = classes[item.class_name]
        if class_ == NO_LABEL:
            raise BadImport(
                f"{item.where.capitalize()} is about the class {item.class_name[:80]!r}, which this campaign "
                "does not have. Nothing was stored."
            )
        rows.append(
            {
                "example_id": example_id,
                "candidate_class": class_,
                "value": item.value,
                "annotator": item.annotator,
                "answered_at": item.answered_at,
            }
        )
    name = filename.replace("\\", "/").rsplit("/", maxsplit=1)[-1]
    name = "".join(filter(str.isprintable, name))[:MAX_FILENAME] or "labels"
    return PreparedImport(campaign.id, name, hashlib.sha256(data).hexdigest(), rows)


def _classes(file: FileOfLabels, campaign: Campaign) -> dict[str, int]:
    """The number of each class as the file writes it; raises BadImport where that can be read in two ways."""
    given = list(dict.fromkeys(item.class_name for item in file.answers))
    try:
        numbers = class_numbers(
            given,
            campaign.class_names,
            are_names=file.reading is Reading.NAMES,
            are_places=file.reading is Reading.PLACES,
        )
    except DataError as error:
        raise BadImport(f"{error}. Nothing was stored.") from error
    return dict(zip(given, numbers, strict=True))


def _by_filename(session: Session, campaign: Campaign, names: set[str]) -> dict[str, int] | None:
    """The ids of the training pictures that these file names mean; None where none has kept its name."""
    if not names:
        return None
    rows = session.execute(
        select(Example.filename, Example.id).where(
            Example.dataset_id == campaign.dataset_id,
            Example.split == Split.TRAIN,
            Example.filename.is_not(None),
        )
    )
    known: dict[str, int] = {}
    several = set()  # as images that joined later may be called what others are
    for filename, example_id in rows:
        name = str(filename)
        if name in known:
            several.add(name)
        known[name] = example_id
    if not known:
        return None
    for name in several:
        del known[name]
    finder = PathFinder(known)
    return {name: known[path] for name in names if (path := finder.find(name)) is not None}


def _no_picture(item: AnswerInFile) -> str:
    if item.filename:
        what = (
            f"is about the file {item.filename[:80]!r}, which is none of this campaign's, or could be several"
        )
    elif item.position is None and item.example_id is None:
        what = "does not say which picture it is about"
    elif item.position is not None:
        what = f"is about position {item.position}, where this campaign has no picture"
    else:
        what = f"is about picture {item.example_id}, which is none of this campaign's"
    return f"{item.where.capitalize()} {what}. Nothing was stored."


def _examples(session: Session, campaign: Campaign, positions: set[int]) -> dict[int, int]:
    """Ids of training images by their row among these, which is their position in all but grown datasets."""
    found: dict[int, int] = {}
    places = train_rows(session, campaign.dataset_id)
    rows_at = {places.position(row): row for row in positions if row < 2**30}
    for some in _parts(sorted(rows_at)):
        rows = session.execute(
            select(Example.position, Example.id).where(
                Example.dataset_id == campaign.dataset_id,
                Example.split == Split.TRAIN,
                Example.position.in_(some),
            )
        )
        found.update((rows_at[position], example_id) for position, example_id in rows)
    return found


def _known(session: Session, campaign: Campaign, ids: set[int]) -> set[int]:
    found: set[int] = set()
    for some in _parts(sorted(ids)):
        found.update(
            session.scalars(
                select(Example.id).where(
                    Example.dataset_id == campaign.dataset_id,
                    Example.split == Split.TRAIN,
                    Example.id.in_(some),
                )
            )
        )
    return found


def _parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    return (values[start : start + ASKED_AT_ONCE] for start in range(0, len(values), ASKED_AT_ONCE))


def store_import(session: Session, prepared: PreparedImport, *, by: User, now: datetime) -> LabelImport:
    """Keep what a file says.

    Raises:
        NotAllowed: `by` is no admin.
        AlreadyImported: the campaign has this very file.
    """
    accounts.require_admin(by)
    made = LabelImport(
        id=uuid4(),
        campaign_id=prepared.campaign_id,
        filename=prepared.filename,
        digest=prepared.digest,
        yes=prepared.count(AnswerValue.YES),
        no=prepared.count(AnswerValue.NO),
        unsure=prepared.count(AnswerValue.UNSURE),
        created_by_id=by.id,
        created_at=now,
    )
    try:
        with session.begin_nested():
            session.add(made)
    except IntegrityError as error:
        before = session.scalar(
            select(LabelImport.filename).where(
                LabelImport.campaign_id == prepared.campaign_id, LabelImport.digest == prepared.digest
            )
        )
        raise AlreadyImported(before or prepared.filename) from error
    session.execute(insert(ImportedAnswer), [{"import_id": made.id, **row} for row in prepared.rows])
    facts = {"file": prepared.filename, "yes": made.yes, "no": made.no, "unsure": made.unsure}
    campaign = session.get_one(Campaign, prepared.campaign_id)
    note(session, Action.LABELS_IMPORTED, campaign, by=by, details=facts)
    return made


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


def delete_import(session: Session, campaign: Campaign, import_id: UUID, *, by: User) -> None:
    """Take an import back. Snapshots that runs have frozen stay as they are.

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


def imported_labels(session: Session, campaign_id: UUID) -> Iterator[LabelRow]:
    """What the majority of a campaign's imports say of each example and class, by position; streamed.

    A tie and "can't tell" say nothing.
    """
    yes = func.sum(case((ImportedAnswer.value == AnswerValue.YES, 1), else_=0))
    no = func.sum(case((ImportedAnswer.value == AnswerValue.NO, 1), else_=0))
    rows = session.execute(
        select(
            ImportedAnswer.example_id,
            Example.position,
            ImportedAnswer.candidate_class,
            yes.label("yes"),
            no.label("no"),
        )
        .join(LabelImport, LabelImport.id == ImportedAnswer.import_id)
        .join(Example, Example.id == ImportedAnswer.example_id)
        .where(LabelImport.campaign_id == campaign_id)
        .group_by(ImportedAnswer.example_id, Example.position, ImportedAnswer.candidate_class)
        .order_by(Example.position, ImportedAnswer.candidate_class)
        .execution_options(yield_per=5_000)
    )
    for row in rows:
        found = verdict(int(row.yes), int(row.no), confirm_yes=False)
        if found.kind is not None:
            yield LabelRow(
                row.position,
                found.kind,
                row.candidate_class,
                1.0,
                example_id=row.example_id,
                answers=found.answers,
                imported=True,
            )
