"""What the JSON API and the forms of known pictures and of people in a campaign accept and return."""

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field, model_validator

from app.annotation.service import KnownPicture, Person
from app.schemas import Input, Output

MAX_PER_CLASS = 1000
MAX_PICTURES = 10_000


class KnownPictureInput(Input):
    """A picture whose class is known."""

    example_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    class_position: Annotated[int, Field(ge=0, le=2**31 - 1)]

    def known(self) -> KnownPicture:
        """For the service."""
        return KnownPicture(self.example_id, self.class_position)


class GoldInput(Input):
    """Pictures to make gold: these, or random ones of each class, as far as true classes are known."""

    pictures: Annotated[list[KnownPictureInput], Field(max_length=MAX_PICTURES, default_factory=list)]
    per_class: Annotated[int, Field(ge=1, le=MAX_PER_CLASS)] | None = None

    @model_validator(mode="after")
    def one_of_them(self) -> Self:
        """Both or neither would leave open what is wanted."""
        if bool(self.pictures) == (self.per_class is not None):
            raise ValueError("Give either pictures or a number per class")
        return self


class GoldForm(Input):
    """Random known pictures of each class."""

    per_class: Annotated[int, Field(ge=1, le=MAX_PER_CLASS)]


class GoldRead(Output):
    """How many pictures this request made gold, and how many are."""

    marked: int
    pictures: int


class PersonRead(Output):
    """One person in a campaign. Gold counts since they were last let go on; the model estimates the rates."""

    user_id: UUID
    name: str
    is_simulated: bool
    answers: int
    gold_right: int
    gold_wrong: int
    gold_accuracy: float | None
    sensitivity: float | None
    specificity: float | None
    paused_at: datetime | None
    is_paused_by_gold: bool
    is_left_out: bool


class QualityRead(Output):
    """How reliable the people of a campaign are."""

    gold_pictures: int
    people: list[PersonRead]

    @classmethod
    def of(cls, pictures: int, people: list[Person]) -> Self:
        """For the API."""
        return cls(gold_pictures=pictures, people=[PersonRead.model_validate(person) for person in people])
