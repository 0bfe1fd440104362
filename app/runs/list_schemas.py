"""What the table of runs and its forms accept."""

from dataclasses import fields
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, field_validator

from app.runs.finding import Sort, Wanted
from app.runs.models import MOST_TAGS, TAG, TrialState
from app.runs.schemas import Note, RunName, RunNumber, Tag
from app.schemas import Input, Searched, printable


class RunsQuery(Input):
    """Which runs to list, and how."""

    campaign_id: UUID | None = None
    dataset_id: UUID | None = Field(default=None, description="their source or their target")
    method: Searched | None = None
    setting: Literal["cc", "pc"] | None = None
    state: TrialState | None = None
    tag: Searched | None = None
    sweep_id: UUID | None = Field(default=None, description="runs that were launched together")
    text: Searched | None = Field(
        default=None, description="in their name or note, in any case; or their number"
    )
    archived: bool = Field(default=False, description="those that were put away, in place of the others")
    sort: Sort = Field(default=Sort.NEWEST, description="a minus turns it round; -number: newest first")
    after: RunNumber | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    @property
    def wanted(self) -> Wanted:
        """Without order and page."""
        return Wanted(**{item.name: getattr(self, item.name) for item in fields(Wanted)})


def as_list(given: object) -> object:
    """What a form gives of a field that may be there several times, as a list."""
    return [given] if isinstance(given, str) else given


class RunsForm(RunsQuery):
    """The same from the page, with the columns that it shows."""

    columns: Annotated[list[Annotated[str, StringConstraints(max_length=60)]], BeforeValidator(as_list)] = (
        Field(default=[], max_length=100)
    )


class MarkedForm(Input):
    """What to do with the runs that are marked in the list."""

    act: Literal["compare", "archive", "bring-back", "tag"]
    run: Annotated[list[UUID], BeforeValidator(as_list)] = Field(default=[], max_length=200)
    new_tag: Tag | None = None


class AboutForm(Input):
    """The form of what people write beside a run; tags stand in one line, with commas between."""

    name: RunName = ""
    note: Note = ""
    tags: Annotated[str, StringConstraints(max_length=MOST_TAGS * (TAG + 2)), AfterValidator(printable)] = ""

    @field_validator("tags")
    @classmethod
    def _are_tags(cls, given: str) -> str:
        found = _split(given)
        if len(found) > MOST_TAGS or any(len(tag) > TAG for tag in found):
            raise ValueError(f"At most {MOST_TAGS} tags of at most {TAG} characters fit here")
        return given

    @property
    def listed(self) -> list[str]:
        """The tags."""
        return _split(self.tags)


def _split(text: str) -> list[str]:
    return [tag for part in text.split(",") if (tag := part.strip())]
