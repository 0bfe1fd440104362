"""What the JSON API of a trial's pictures takes and returns."""

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field

from app.mistakes import umaps
from app.mistakes.drawing import By, Layout
from app.mistakes.models import Umap, UmapState
from app.mistakes.service import Among, Only, Order, Picture, Wanted
from app.schemas import Input, Output

PLACE = "place among `classes`, from 0"
MOST_CLASSES = 10_000  # far more than any campaign has
Class = Annotated[int, Field(ge=0, le=MOST_CLASSES, description=PLACE)]
ExampleId = Annotated[int, Field(ge=1, le=2**63 - 1, description="example id")]


class TrialPredictionsQuery(Input):
    """Which pictures of a trial to list, and how."""

    among: Among | None = Field(
        default=None,
        description="the target's test images that score, or its training images; or some of the source. "
        "Without it the test images, where any score",
    )
    true_class: Class | None = None
    predicted_class: Class | None = None
    only: Only | None = Field(
        default=None,
        description="`mistakes`: wrong by the true class or by what most people say; `disputed`: by people",
    )
    order: Order = Field(
        default=Order.POSITION, description="`unsure`: by the margin to the second class, smallest first"
    )
    after: ExampleId | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    def wanted(self, among: Among) -> Wanted:
        """Without the page; `among`: which ones, where nobody says it."""
        return Wanted(
            among=self.among or among,
            true_class=self.true_class,
            predicted_class=self.predicted_class,
            only=self.only,
            order=self.order,
        )


class ClassProbability(Output):
    """How probable a class is."""

    class_: int = Field(serialization_alias="class", description=PLACE)
    probability: float


class PeopleSay(Output):
    """What people who were asked say of a prediction."""

    yes: int = Field(description="who say that it is right")
    no: int
    is_right: bool | None = Field(description="as most say; null where they are divided")


class TrialPredictionRead(Output):
    """What a trial's model says of one picture."""

    example_id: int
    dataset_id: UUID
    among: Among
    position: int
    filename: str | None
    true_class: int | None = Field(description=f"{PLACE}; null where it is not known")
    predicted_class: int = Field(description=PLACE)
    probability: float = Field(description="of the predicted class")
    margin: float = Field(description="by how much it is before the second class")
    likeliest: list[ClassProbability] = Field(description="in falling order; of many classes the first ten")
    people: PeopleSay | None = Field(description="null where nobody was asked about this prediction")
    image_url: str

    @classmethod
    def of(cls, picture: Picture, image_url: str) -> Self:
        """From what is known, and where the image lies."""
        said = picture.verdict
        return cls(
            example_id=picture.example_id,
            dataset_id=picture.dataset_id,
            among=picture.among,
            position=picture.position,
            filename=picture.filename,
            true_class=picture.true_class,
            predicted_class=picture.predicted_class,
            probability=picture.probability,
            margin=picture.margin,
            likeliest=[ClassProbability(class_=one, probability=share) for one, share in picture.likeliest],
            people=None if said is None else PeopleSay(yes=said.yes, no=said.no, is_right=said.is_right),
            image_url=image_url,
        )


class TrialPredictionList(Output):
    """A page of pictures; give `next` as `after` for the page after it."""

    classes: list[str]
    count: int = Field(description="of all pages")
    prediction_id: UUID | None = Field(
        description="the prediction of the target that this is read from; null: kept at the trial's end"
    )
    items: list[TrialPredictionRead]
    next: int | None


class TrialConfusionQuery(Input):
    """Of which pictures."""

    among: Among | None = Field(default=None, description="as of the list of predictions")


class TrialConfusionRead(Output):
    """Counts of true and predicted classes; each cell has its pictures under `predictions`."""

    classes: list[str]
    among: Among
    images: int = Field(description="of these, whether their true class is known or not")
    counts: list[list[int]] | None = Field(
        description="[true class][predicted class]; null where no true class is known"
    )
    predicted: list[int] = Field(description="how many are taken for each class")


class MapPointRead(Output):
    """Where a model places a picture."""

    example_id: int
    among: Among
    predicted_class: int = Field(description=PLACE)
    probability: float
    place: list[float] = Field(
        description="principal components of its features, the first two are drawn; or two places by UMAP"
    )


class FeatureMapRead(Output):
    """Where a model places pictures of source and target: by components of its features, or by UMAP."""

    layout: Layout
    classes: list[str]
    shares: list[float] = Field(description="of the variance that each component has; by UMAP empty")
    points: list[MapPointRead]


class TrialMapQuery(Input):
    """By what the pictures are placed."""

    layout: Layout = Field(default=Layout.PCA, description="`umap` is there once somebody has asked for it")


class UmapRead(Output):
    """Where the UMAP of a trial's map stands."""

    state: UmapState | None = Field(description="null: nobody has asked for it")
    words: str | None = Field(description="why it is not there; null where it is")
    is_installed: bool = Field(description="whether this server has the package that computes it")
    asked_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, umap: Umap | None) -> Self:
        """From its row, if there is one."""
        return cls(
            state=umap and umap.state,
            words=None if umap and umap.state is UmapState.READY else umaps.words_of(umap),
            is_installed=umaps.is_installed(),
            asked_at=umap and umap.asked_at,
            finished_at=umap and umap.finished_at,
        )


class _OnPages(Input):
    """What addresses of pages say beyond their paths; links have it, nobody types it."""

    def chosen(self, **changed: object) -> dict[str, str]:
        """The same as a query, without the page and what goes without saying; `changed`: None leaves out."""
        values = self.model_dump(mode="json", exclude={"after", "limit"}, exclude_defaults=True) | changed
        return {name: str(value) for name, value in values.items() if value is not None}


class PicturesQuery(TrialPredictionsQuery, _OnPages):
    """Which pictures a page lists."""

    order: Order = Order.SURE


class PictureQuery(PicturesQuery):
    """Where a picture was opened: in which list, or on the map that `by` colours."""

    by: By | None = None
    layout: Layout = Layout.PCA


class MapQuery(_OnPages):
    """What the page of the map shows: coloured by what, and of which class."""

    by: By = By.DOMAIN
    layout: Layout = Layout.PCA
    predicted_class: Class | None = None
    after: ExampleId | None = None
