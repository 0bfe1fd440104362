"""What the routes of imports accept and return."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field
from sqlalchemy.orm import Session
from starlette.datastructures import FormData, UploadFile

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.labels import service
from app.labels.errors import BadImport
from app.labels.importing.accepting import Choices
from app.labels.importing.settling import LEAVE_OUT
from app.labels.models import ImportState, LabelImport
from app.schemas import Output
from app.spelling import refuse_unknown_fields
from app.storage import Storage
from clarinet.files.names import is_printable, names_in_line

CONTRADICTIONS, FIRST = ("refuse", LEAVE_OUT), ("0", "1")
FIELDS = {"contradictions": CONTRADICTIONS, "first_class": FIRST, "first_position": FIRST}
MAX_IGNORED, MAX_NO_LABEL = 4000, 120  # characters
TEXTS = {"ignore_columns": MAX_IGNORED, "no_label": MAX_NO_LABEL}


def file_of_form(form: FormData) -> tuple[UploadFile, Choices]:
    """The form's file, and how it is to be read.

    Raises:
        BadImport: there is none, or a choice that is none.
    """
    refuse_unknown_fields(form, [*FIELDS, *TEXTS], files=("file",))
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise BadImport("Choose a file: a CSV or Label Studio's JSON.")
    given = {name: str(form.get(name) or "") for name in FIELDS}
    for name, values in FIELDS.items():
        if given[name] not in ("", *values):
            raise BadImport(f"{name} is {given[name]!r:.40}; it may be {' or '.join(values)}.")
    texts = {name: str(form.get(name) or "").strip() for name in TEXTS}
    for name, most in TEXTS.items():
        if len(texts[name]) > most or not is_printable(texts[name]):
            raise BadImport(f"{name} has at most {most} characters, and none that cannot be seen.")
    return file, Choices(
        leaves_out=given["contradictions"] == LEAVE_OUT,
        first_class=_first(given["first_class"]),
        first_position=_first(given["first_position"]),
        ignored=names_in_line(texts["ignore_columns"]),
        no_label=texts["no_label"],
    )


def _first(given: str) -> Literal[0, 1] | None:
    return None if not given else 1 if given == "1" else 0


def keep_file(
    session: Session,
    storage: Storage,
    campaign: Campaign,
    file: UploadFile,
    choices: Choices,
    *,
    by: User,
    now: datetime,
) -> LabelImport:
    """Keep what `file_of_form` gave, and have it read; raises as `service.create_import`."""
    name = file.filename or ""
    return service.create_import(
        session, storage, campaign, file.file, filename=name, choices=choices, by=by, now=now
    )


class LineFault(Output):
    """A line, or task, of a file that could not be taken."""

    where: str = Field(examples=["line 7"])
    why: str = Field(examples=["is about the class 'wolf', which this campaign does not have"])


class ImportRead(Output):
    """A file of labels from elsewhere: where its import stands, and how many things it says."""

    id: UUID
    filename: str
    state: ImportState
    failure: str | None = Field(description="of one that failed: what is wrong, in a sentence")
    faults: list[LineFault] = Field(
        description="lines that could not be taken, or were left out; of many the first 100"
    )
    notes: list[str] = Field(
        description="what of it was not read, was here already or left out, in sentences"
    )
    yes: int = Field(description="0 until it is ready, as the others")
    no: int
    unsure: int
    unusable: int
    known: int = Field(description="of these answers, how many other imports of the campaign had said")
    left_out: int = Field(
        description="further answers, of people who contradict themselves about the picture, when it was read"
    )
    left_out_later: int = Field(
        default=0,
        description="of the answers above, how many count nothing now: who gave them contradicts themselves "
        "in a later import; taken back, it leaves them counting",
    )
    created_at: datetime

    @classmethod
    def of(cls, item: LabelImport, not_counting: Mapping[UUID, int]) -> "ImportRead":
        """As it counts now: `not_counting` by the ids of imports."""
        later = max(0, not_counting.get(item.id, 0) - item.left_out)
        return cls.model_validate(item).model_copy(update={"left_out_later": later})


class DisagreementRead(Output):
    """A picture about which people of imports differ, among themselves or from answers here."""

    example_id: int
    position: int
    filename: str | None
    why: str = Field(examples=["imports say 'cat': 2 yes, 1 no"])


class ImportsRead(Output):
    """A campaign's imports, newest first."""

    items: list[ImportRead]


class DisagreementsRead(Output):
    """Where people of a campaign's imports differ, among themselves or from answers here."""

    count: int = Field(description="pictures about which people differ")
    items: list[DisagreementRead] = Field(description="of many the first 100, by position")
