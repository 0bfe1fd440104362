"""What the routes of imports accept and return."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from starlette.datastructures import FormData, UploadFile

from app.labels.errors import BadImport
from app.labels.importing.reading import MAX_BYTES
from app.schemas import Output
from app.spelling import refuse_unknown_fields


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a form."""

    name: str
    data: bytes


def file_of_form(form: FormData) -> SentFile:
    """The form's file; what exceeds the limit is cut one byte behind it, so that its reader refuses it.

    Raises:
        BadImport: there is none.
    """
    refuse_unknown_fields(form, (), files=("file",))
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise BadImport("Choose a file: a CSV or Label Studio's JSON.")
    return SentFile(file.filename, file.file.read(MAX_BYTES + 1))


class ImportRead(Output):
    """A file of labels from elsewhere: how many things it says."""

    id: UUID
    filename: str
    yes: int
    no: int
    unsure: int
    unusable: int
    created_at: datetime


class ImportsRead(Output):
    """A campaign's imports, newest first."""

    items: list[ImportRead]
