"""What the JSON API of predictions takes and returns."""

from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import Field

from app.registry.predicting import Predicted
from app.registry.prediction_models import PredictionState
from app.registry.predictor import Served
from app.schemas import Input, Output


class PictureRead(Output):
    """What a model says of one picture, or why it says nothing."""

    name: str
    predicted_class: str | None = Field(description="the likeliest; null where the picture was refused")
    probabilities: list[float] | None = Field(description="in the order of `classes`; they sum to 1")
    refused: str | None = Field(description="why nothing is said of it, as a sentence")


class PicturesRead(Output):
    """What one model says of some pictures, in their order."""

    model_id: UUID
    name: str
    version: int = Field(description="of its name")
    digest: str = Field(description="SHA-256 of the weights of this model, which answered all of them")
    classes: list[str]
    pictures: list[PictureRead]

    @classmethod
    def of(cls, served: Served, predicted: list[Predicted]) -> Self:
        """From the model that answered, and what it said."""
        pictures = [PictureRead.model_validate(one) for one in predicted]
        return cls(
            model_id=served.id,
            name=served.name,
            version=served.version,
            digest=served.digest,
            classes=list(served.classes),
            pictures=pictures,
        )


class PredictionCreate(Input):
    """Which dataset is to be predicted."""

    dataset_id: UUID


class PredictionRead(Output):
    """Where the prediction of a dataset stands; the file is there once it is ready."""

    id: UUID
    model_id: UUID
    dataset_id: UUID | None = Field(description="null once the dataset is deleted")
    dataset_name: str
    dataset_version: int
    state: PredictionState
    progress: int = Field(description="images that were predicted so far")
    progress_total: int
    refused: int | None = Field(
        description="images of which nothing is said; the file says why; null: not known yet"
    )
    failure: str | None
    digest: str | None = Field(description="SHA-256 of the file")
    size_bytes: int | None
    created_at: datetime
    finished_at: datetime | None


class PredictionList(Output):
    """A page of predictions, newest first; give `next` as `after` for the page after it."""

    items: list[PredictionRead]
    next: UUID | None
