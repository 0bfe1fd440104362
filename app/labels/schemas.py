"""What the routes of imports accept and return."""

from datetime import datetime
from uuid import UUID

from pydantic import Field
from starlette.datastructures import FormData, UploadFile

from app.labels.errors import BadImport
from app.labels.models import ImportState
from app.schemas import Output
from app.spelling import refuse_unknown_fields


def file_of_form(form: FormData) -> UploadFile:
    """The form's file.

    Raises:
        BadImport: there is none.
    """
    refuse_unknown_fields(form, (), files=("file",))
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise BadImport("Choose a file: a CSV or Label Studio's JSON.")
    return file


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
    faults: list[LineFault] = Field(description="lines that could not be taken; of many the first 100")
    yes: int = Field(description="0 until it is ready, as the others")
    no: int
    unsure: int
    unusable: int
    created_at: datetime


class ImportsRead(Output):
    """A campaign's imports, newest first."""

    items: list[ImportRead]
