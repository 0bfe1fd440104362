"""Labels from elsewhere in a campaign: kept beside its answers, never among them."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from sqlalchemy import case, delete, func, insert, select
from sqlalchemy.orm import Session

from app import claims
from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.consensus import verdict
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign
from app.campaigns.noting import note
from app.claims import Claim
from app.datasets.models import Example, Split
from app.datasets.versions import train_rows
from app.journal.models import Action
from app.journal.writing import ADDRESS
from app.labels.importing.rows import Row
from app.labels.models import ImportedAnswer, ImportState, LabelImport
from clarinet.files.folders import PathFinder
from clarinet.files.label_table import LabelRow

ASKED_AT_ONCE = 500  # SQLite takes some thousand parameters in a statement


class Pictures:
    """The training pictures of a campaign, found as a file means them: by file name, position or id."""

    def __init__(self, campaign: Campaign) -> None:
        self._dataset_id = campaign.dataset_id
        self._own = Example.dataset_id == campaign.dataset_id, Example.split == Split.TRAIN
        self._by_name: dict[str, int] | None = None
        self._finder: PathFinder | None = None

    def ids(self, session: Session, rows: Sequence[Row]) -> list[int | None]:
        """The id of each row's picture; None where it is none of the campaign's."""
        names = self._named(session) if any(row.filename for row in rows) else {}
        by_position = self._places(session, {row.position for row in rows if row.position is not None})
        ids = {row.example_id for row in rows if row.position is None and row.example_id is not None}
        known = self._known(session, ids)
        found: list[int | None] = []
        for row in rows:
            if row.filename and names and self._finder is not None:
                path = self._finder.find(row.filename)
                found.append(None if path is None else names[path])
            elif row.position is not None:
                found.append(by_position.get(row.position))
            else:
                found.append(row.example_id if row.example_id in known else None)
        return found

    def _named(self, session: Session) -> dict[str, int]:
        """The ids of pictures by their file names; none where none has kept its name."""
        if self._by_name is None:
            rows = session.execute(
                select(Example.filename, Example.id).where(*self._own, Example.filename.is_not(None))
            )
            self._by_name = {}
            several = set()  # images that joined later may be called what others are
            for filename, example_id in rows:
                if filename in self._by_name:
                    several.add(str(filename))
                self._by_name[str(filename)] = example_id
            for name in several:
                del self._by_name[name]
            self._finder = PathFinder(self._by_name) if self._by_name else None
        return self._by_name

    def _places(self, session: Session, rows: set[int]) -> dict[int, int]:
        """Ids by row among the training images, which is the position in all but grown datasets."""
        found: dict[int, int] = {}
        places = train_rows(session, self._dataset_id)
        rows_at = {places.position(row): row for row in rows if row < 2**30}
        for some in _parts(sorted(rows_at)):
            ids = session.execute(
                select(Example.position, Example.id).where(*self._own, Example.position.in_(some))
            )
            found.update((rows_at[position], example_id) for position, example_id in ids)
        return found

    def _known(self, session: Session, ids: set[int]) -> set[int]:
        found: set[int] = set()
        for some in _parts(sorted(ids)):
            found.update(session.scalars(select(Example.id).where(*self._own, Example.id.in_(some))))
        return found


def _parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    return (values[start : start + ASKED_AT_ONCE] for start in range(0, len(values), ASKED_AT_ONCE))


def no_picture(row: Row) -> str:
    """Why a row's picture was not found; continues a sentence."""
    if row.filename:
        return (
            f"is about the file {row.filename[:80]!r}, which is none of this campaign's, or could be several"
        )
    if row.position is None and row.example_id is None:
        return "does not say which picture it is about"
    if row.position is not None:
        return f"is about position {row.position}, where this campaign has no picture"
    return f"is about picture {row.example_id}, which is none of this campaign's"


def insert_answers(session: Session, import_id: UUID, rows: Sequence[Row], ids: Sequence[int | None]) -> None:
    """Add what rows say of the pictures with these ids. It counts once the import is ready."""
    session.execute(
        insert(ImportedAnswer),
        [
            {
                "import_id": import_id,
                "example_id": example_id,
                "candidate_class": row.candidate_class,
                "value": row.value,
                "annotator": row.annotator,
                "answered_at": row.answered_at,
            }
            for row, example_id in zip(rows, ids, strict=True)
        ],
    )


def delete_answers(session: Session, import_id: UUID) -> None:
    """Delete what an import that did not end well has added."""
    session.execute(delete(ImportedAnswer).where(ImportedAnswer.import_id == import_id))


def finish_import(session: Session, claim: Claim, counts: Mapping[AnswerValue, int]) -> None:
    """Let an import count, which has said each value so often; raises ClaimLost."""
    said = {value.value: counts.get(value, 0) for value in AnswerValue}
    claims.release(session, claim, state=ImportState.READY, upload=None, **said)
    made = session.get_one(LabelImport, claim.id, populate_existing=True)
    campaign, by = session.get_one(Campaign, made.campaign_id), session.get_one(User, made.created_by_id)
    if by.erased_at is not None:  # since they asked for it
        session.info[ADDRESS] = ""
    note(session, Action.LABELS_IMPORTED, campaign, by=by, details={"file": made.filename, **said})


def imported_labels(session: Session, campaign_id: UUID) -> Iterator[LabelRow]:
    """What the majority of a campaign's imports say of each example and class, by position; streamed.

    A tie, "can't tell" and "cannot be used" say nothing, nor does what is said of pictures set aside.
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
        .where(
            LabelImport.campaign_id == campaign_id,
            LabelImport.state == ImportState.READY,
            ImportedAnswer.example_id.not_in(annotation.pictures_set_aside(campaign_id)),
        )
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
