"""Labels from elsewhere in a campaign: kept beside its answers, never among them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app import claims
from app.accounts.models import User
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign
from app.campaigns.noting import note
from app.claims import Claim
from app.datasets.models import Example, Split
from app.datasets.versions import train_rows
from app.journal.models import Action
from app.journal.writing import ADDRESS
from app.labels.importing.rows import Row
from app.labels.importing.settling import Settled
from app.labels.importing.tasks import UPLOADS
from app.labels.models import ImportedAnswer, ImportState, LabelImport
from clarinet.files.folders import PathFinder
from clarinet.files.names import same_path, sameness

ASKED_AT_ONCE = 500  # SQLite takes some thousand parameters in a statement
Said = tuple[int | None, int, AnswerValue, str]  # of which picture and class what is said, and by whom


@dataclass(frozen=True, slots=True)
class Before:
    """What the earlier rows of an import say.

    Args:
        said: each thing that was said.
        people: how they call each person, by the name's `sameness`: however the name is written again, it is
            the same person.
    """

    said: set[Said] = field(default_factory=set)
    people: dict[str, str] = field(default_factory=dict)


class Pictures:
    """The training pictures of a campaign, found as a file means them: by file name, position or id.

    `has_ids`: whether file names of it may lack their ending.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.dataset_id = campaign.dataset_id
        self.has_ids = False
        self._own = Example.dataset_id == campaign.dataset_id, Example.split == Split.TRAIN
        self._by_name: dict[str, int | None] | None = None
        self._finder: PathFinder | None = None
        self._contradicting: set[int] = (
            set()
        )  # numbers of rows whose file name and position do not go together

    def ids(self, session: Session, rows: Sequence[Row]) -> list[int | None]:
        """The id of each row's picture; None where it is none of the campaign's, or two: see `why_not`."""
        names = self._named(session) if any(row.filename for row in rows) else {}
        at_place = self._places(session, {row.position for row in rows if row.position is not None})
        by_id = self._known(
            session, {row.example_id for row in rows if row.position is None and row.example_id is not None}
        )
        found: list[int | None] = []
        for row in rows:
            if row.position is not None:
                told = at_place.get(row.position)
            else:
                told = None if row.example_id is None else by_id.get(row.example_id)
            if row.filename and (names or row.position is None):
                found.append(self._by_file(row, told, names))
            else:
                found.append(told.id if told else None)
        return found

    def _by_file(self, row: Row, told: "_Picture | None", names: Mapping[str, int | None]) -> int | None:
        """The picture of a row's file name; of several that are called so, the one that the rest tells."""
        path = self._finder.find(row.filename) if self._finder else None
        named = None if path is None else names[path]
        if named is None:
            is_one = told is not None and same_path(told.filename or "") == same_path(row.filename)
            return told.id if told and is_one else None
        if row.position is not None and (told is None or told.id != named):
            self._contradicting.add(row.number)
            return None
        return named

    def why_not(self, row: Row) -> str:
        """Why `ids` has found no picture of a row; continues a sentence."""
        if row.number not in self._contradicting:
            is_shared = self._finder is not None and row.filename and self._is_shared(row.filename)
            return _one_of_several(row) if is_shared else no_picture(row)
        return (
            f"is about the file {row.filename[:80]!r} and about position {row.position}, which are two "
            "pictures; take the column position out if the file name is right, or else the file name"
        )

    def _named(self, session: Session) -> dict[str, int | None]:
        """The ids of pictures by their file names; none where none has kept its name.

        A name of several has no id. It is found all the same: else another path with this end would be.
        """
        if self._by_name is None:
            rows = session.execute(
                select(Example.filename, Example.id).where(*self._own, Example.filename.is_not(None))
            )
            self._by_name = {}
            for filename, example_id in rows:  # images that joined later may be called what others are
                is_first = filename not in self._by_name
                self._by_name[str(filename)] = example_id if is_first else None
            self._finder = PathFinder(self._by_name, by_id=self.has_ids) if self._by_name else None
        return self._by_name

    def _is_shared(self, name: str) -> bool:
        """Whether several pictures are called so, or the ends of their paths."""
        assert self._finder is not None  # who asks has looked for names
        assert self._by_name is not None
        path = self._finder.find(name)
        return self._finder.could_be_several(name) if path is None else self._by_name[path] is None

    def _places(self, session: Session, rows: set[int]) -> dict[int, "_Picture"]:
        """Pictures by row among the training images, which is the position in all but grown datasets."""
        found: dict[int, _Picture] = {}
        places = train_rows(session, self.dataset_id)
        rows_at = {places.position(row): row for row in rows if row < 2**30}
        for some in _parts(sorted(rows_at)):
            pictures = session.execute(
                select(Example.position, Example.id, Example.filename).where(
                    *self._own, Example.position.in_(some)
                )
            )
            found.update((rows_at[position], _Picture(id_, name)) for position, id_, name in pictures)
        return found

    def _known(self, session: Session, ids: set[int]) -> dict[int, "_Picture"]:
        """Pictures by id."""
        found: dict[int, _Picture] = {}
        for some in _parts(sorted(ids)):
            pictures = session.execute(
                select(Example.id, Example.filename).where(*self._own, Example.id.in_(some))
            )
            found.update((example_id, _Picture(example_id, filename)) for example_id, filename in pictures)
        return found


class _Picture(NamedTuple):
    """A training picture of the campaign."""

    id: int
    filename: str | None


def _parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    return (values[start : start + ASKED_AT_ONCE] for start in range(0, len(values), ASKED_AT_ONCE))


def no_picture(row: Row) -> str:
    """Why a row's picture was not found; continues a sentence."""
    if row.filename:
        mend = ", write its name here as filename into the task's data" if UPLOADS in row.filename else ""
        return (
            f"is about the file {row.filename[:80]!r}, which is none of this campaign's, or could be several"
            f"{mend}"
        )
    if row.position is None and row.example_id is None:
        return "does not say which picture it is about: filename, position or example_id"
    if row.position is not None:
        return f"is about position {row.position}, where this campaign has no picture"
    return f"is about picture {row.example_id}, which is none of this campaign's"


def _one_of_several(row: Row) -> str:
    return (
        f"is about the file {row.filename[:80]!r}, which several pictures here are called; write the folders "
        "that it lies in, or its position, too"
    )


def insert_answers(
    session: Session, import_id: UUID, rows: Sequence[Row], ids: Sequence[int | None], *, before: Before
) -> None:
    """Add what rows say of the pictures with these ids, each once. It counts when the import is ready.

    `before`: what the import's earlier rows say; what these say is added.
    """
    new, said = [], before.said
    for row, example_id in zip(rows, ids, strict=True):
        annotator = before.people.setdefault(sameness(row.annotator), row.annotator)
        one = example_id, row.candidate_class, row.value, annotator
        if one in said:
            continue
        said.add(one)
        new.append(
            {
                "import_id": import_id,
                "example_id": example_id,
                "candidate_class": row.candidate_class,
                "value": row.value,
                "annotator": annotator,
                "answered_at": row.answered_at,
                "line": row.number,
            }
        )
    if new:
        session.execute(insert(ImportedAnswer), new)


def delete_answers(session: Session, import_id: UUID) -> None:
    """Delete what an import that did not end well has added."""
    session.execute(delete(ImportedAnswer).where(ImportedAnswer.import_id == import_id))


def finish_import(
    session: Session,
    claim: Claim,
    settled: Settled,
    *,
    noun: str,
    notes: Sequence[str] = (),
    faults: Sequence[Mapping[str, str]] = (),
) -> None:
    """Let an import count, as it was settled; raises ClaimLost. `faults`: lines that were left out."""
    said = {value.value: settled.counts.get(value, 0) for value in AnswerValue}
    claims.release(
        session,
        claim,
        state=ImportState.READY,
        upload=None,
        notes=list(notes),
        faults=list(faults),
        noun=noun,
        known=settled.known,
        left_out=settled.left_out,
        **said,
    )
    made = session.get_one(LabelImport, claim.id, populate_existing=True)
    campaign, by = session.get_one(Campaign, made.campaign_id), session.get_one(User, made.created_by_id)
    if by.erased_at is not None:  # since they asked for it
        session.info[ADDRESS] = ""
    note(session, Action.LABELS_IMPORTED, campaign, by=by, details={"file": made.filename, **said})
