"""Bases of what the JSON API and the forms accept and return, and the text they take."""

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    StringConstraints,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from app.languages import gettext as _
from clarinet.files.names import is_printable

MOST_FIELDS = 50  # of an object; each one that is not known is an error of its own, a kilobyte of memory


def few_fields(given: Any, most: int = MOST_FIELDS) -> Any:
    """Refuse an object of so many fields that what is wrong with each of them would not fit in memory."""
    if isinstance(given, dict) and len(given) > most:
        raise ValueError(_("There are too many fields"))
    return given


class Input(BaseModel):
    """A request body. A misspelt field is an error, not silence."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, given: Any) -> Any:
        return few_fields(given)


class Output(BaseModel):
    """A response, read from a row or built by hand."""

    model_config = ConfigDict(from_attributes=True)


def printable(text: str) -> str:
    """Refuse control characters: they forge log lines and terminals obey them."""
    if not is_printable(text):
        raise ValueError(_("Only letters, digits, signs and spaces, please"))
    return text


def printable_lines(given: object, check: ValidatorFunctionWrapHandler) -> str:
    """The same for text of several lines. A line end counts as one character; forms send it as two."""
    text: str = check(given.replace("\r\n", "\n") if isinstance(given, str) else given)
    for line in text.split("\n"):
        printable(line.replace("\t", " "))
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(printable)]
# What to look for: a database would refuse a NUL byte as a fault of ours.
Searched = Annotated[str, StringConstraints(max_length=120), AfterValidator(printable)]
Text = Annotated[str, StringConstraints(max_length=4000), WrapValidator(printable_lines)]
