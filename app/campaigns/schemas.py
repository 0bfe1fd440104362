"""What the JSON API and the forms of campaigns accept and return."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WrapValidator

from app.accounts.models import User
from app.campaigns.class_text import MAX_TEXT
from app.campaigns.classes import MAX_CLASS_EXAMPLES, MAX_CLASSES, ClassDetails
from app.campaigns.drawings import belief_of
from app.campaigns.drawn import Drawing
from app.campaigns.models import (
    CHOSEN,
    Admits,
    Campaign,
    CampaignKind,
    CampaignState,
    Consensus,
    FurtherDrawing,
    Modes,
    PricePer,
)
from app.campaigns.service import MAX_OVERLAP, CampaignDetails
from app.languages import language_tag
from app.schemas import Input, Name, Output, Text, printable, printable_lines
from clarinet.files.names import tidy

ClassName = Annotated[
    str, AfterValidator(tidy), StringConstraints(min_length=1, max_length=80), AfterValidator(printable)
]
ExampleId = Annotated[int, Field(ge=1, le=2**63 - 1)]
Rounds = Annotated[int, Field(ge=1, le=MAX_CLASSES)]
Overlap = Annotated[int, Field(ge=1, le=MAX_OVERLAP)]
GoldShare = Annotated[float, Field(ge=0, le=0.5)]
GoldBound = Annotated[float, Field(ge=0, le=1)]
CONFIRMS = (
    "a second person is asked about every yes; between two classes, about four of nine questions, by chance, "
    "whatever the first one says, unless overlap has all of them asked of several"
)
LeastMs = Annotated[int, Field(ge=0, le=10_000)]
ClassLanguage = Annotated[
    str,
    AfterValidator(language_tag),
    Field(
        max_length=35,
        description="of the classes' names, as a tag: en, el, zh-Hans; empty: not said, no article is used",
    ),
]


class ClassInput(Input):
    """A class to ask about."""

    name: ClassName
    description: Text = ""
    example_ids: Annotated[list[ExampleId], Field(max_length=MAX_CLASS_EXAMPLES, default_factory=list)]

    def details(self) -> ClassDetails:
        """For the service."""
        return ClassDetails(self.name, self.description, tuple(self.example_ids))


class _Chosen(Input):
    """Instructions and policy of a draft."""

    instructions: Text = ""
    confirm_yes: bool = Field(default=True, description=CONFIRMS)
    overlap: Overlap = 1
    consensus: Consensus = Consensus.DAWID_SKENE
    gold_share: GoldShare = 0.05
    gold_bound: GoldBound = 0.7
    least_card_ms: LeastMs = 200
    least_page_ms: LeastMs = 300
    least_picture_ms: LeastMs = 50
    asks_again: bool = True
    skip_twins: bool = Field(default=False, description="ask about images that are the same only once")
    class_language: ClassLanguage = ""
    tells_others: bool = Field(
        default=False, description="once closed, tell annotators what others said to the same questions"
    )
    rounds: Rounds = 1
    modes: Modes = Modes.BOTH

    def chosen(self) -> dict[str, Any]:
        """All of it, by name."""
        return {name: getattr(self, name) for name in CHOSEN}


class CampaignCreate(_Chosen):
    """A campaign to draft. Without classes it asks about the dataset's own."""

    name: Name
    dataset_id: UUID
    classes: Annotated[list[ClassInput], Field(max_length=MAX_CLASSES, default_factory=list)]

    def details(self) -> CampaignDetails:
        """For the service."""
        classes = tuple(item.details() for item in self.classes)
        return CampaignDetails(self.name, self.dataset_id, classes, **self.chosen())


class CampaignUpdate(Input):
    """What to change of a draft; fields that are left out stay."""

    name: Name | None = None
    dataset_id: UUID | None = None
    classes: Annotated[list[ClassInput], Field(max_length=MAX_CLASSES)] | None = None
    instructions: Text | None = None
    confirm_yes: bool | None = Field(default=None, description=CONFIRMS)
    overlap: Overlap | None = None
    consensus: Consensus | None = None
    gold_share: GoldShare | None = None
    gold_bound: GoldBound | None = None
    least_card_ms: LeastMs | None = None
    least_page_ms: LeastMs | None = None
    least_picture_ms: LeastMs | None = None
    asks_again: bool | None = None
    skip_twins: bool | None = None
    class_language: ClassLanguage | None = None
    tells_others: bool | None = None
    rounds: Rounds | None = None
    modes: Modes | None = None

    def details(self, campaign: Campaign) -> CampaignDetails:
        """The draft's details with the changes in them; pictures of classes leave with their dataset."""
        stays = self.dataset_id in (None, campaign.dataset_id)
        kept = tuple(
            ClassDetails(item.name, item.description, tuple(item.example_ids) if stays else ())
            for item in campaign.classes
        )
        given = self.model_dump(exclude_none=True, exclude={"classes"})
        return CampaignDetails(
            classes=kept if self.classes is None else tuple(item.details() for item in self.classes),
            **{name: given.get(name, getattr(campaign, name)) for name in ("name", "dataset_id", *CHOSEN)},
        )


class CampaignForm(_Chosen):
    """The form of a campaign; its classes as `class_text` writes them."""

    name: Name
    dataset_id: UUID
    classes: Annotated[str, StringConstraints(max_length=MAX_TEXT), WrapValidator(printable_lines)] = ""
    confirm_yes: bool = False  # a box without a tick
    asks_again: bool = False  # likewise


def _as_list(given: object) -> object:
    return given if isinstance(given, list) else [given]  # a form with one ticked box


class PicturesForm(Input):
    """Pictures chosen for classes, each "class:example"; `more`: keep these and offer others."""

    pictures: Annotated[
        list[Annotated[str, StringConstraints(pattern=r"^\d{1,4}:\d{1,18}$")]],
        BeforeValidator(_as_list),
        Field(default_factory=list),
    ]
    more: bool = False

    def by_class(self) -> dict[int, tuple[int, ...]]:
        """Ids of examples by position of the class."""
        pairs = [tuple(map(int, item.split(":"))) for item in self.pictures]
        return {
            position: tuple(example_id for place, example_id in pairs if place == position)
            for position, _ in pairs
        }


class PriceInput(Input):
    """What an answer or an hour costs, in any currency; null: nothing is shown."""

    price: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] | None = None
    price_per: PricePer = PricePer.ANSWER


class ClassRead(Output):
    """A class people are asked about; `position` is its label."""

    position: int
    name: str
    description: str
    example_ids: list[int] = Field(description="pictures beside it; none are told to annotators")
    question_count: int | None = Field(
        description="null to annotators of a campaign that is not closed: it would tell how a further "
        "drawing was drawn"
    )


class CampaignRead(Output):
    """A campaign. The seed is shown once it is closed."""

    id: UUID
    name: str
    kind: CampaignKind | None = Field(
        description="evaluation: people judge a model's predictions, and nothing trains; null, while it is "
        "not closed, to annotators, whose answers it could lead"
    )
    instructions: str
    dataset_id: UUID
    state: CampaignState
    is_opening: bool
    opening_failure: str | None
    confirm_yes: bool
    overlap: int
    consensus: Consensus
    gold_share: float | None  # null, as the two beside it, to annotators of a campaign that is not closed
    gold_bound: float | None
    least_card_ms: int
    least_page_ms: int
    least_picture_ms: int
    asks_again: bool
    skip_twins: bool
    class_language: str
    tells_others: bool
    asks_which: bool = Field(description="after a no, the class that the picture shows; see `shows`")
    rounds: int
    modes: Modes
    price: float | None
    price_per: PricePer
    classes: list[ClassRead]
    question_count: int | None = Field(
        description="null to annotators of a campaign that is not closed: more questions than pictures and "
        "rounds give would tell of a further drawing about the same pictures"
    )
    commitment: str | None
    dataset_version: int | None
    dataset_digest: str | None
    revealed_seed: str | None
    admits: Admits
    created_at: datetime
    opened_at: datetime | None
    closed_at: datetime | None
    archived_at: datetime | None

    @classmethod
    def of(cls, campaign: Campaign, *, by: User) -> Self:
        """As this person may know it.

        How many known pictures there are would help to find them, and who knows that a model is judged says
        yes more readily. Numbers of pictures follow the order of import, which can give a class away.
        """
        read = cls.model_validate(campaign)
        if not by.may_review:
            for item in read.classes:
                item.example_ids = []
        if not by.may_review and campaign.state is not CampaignState.CLOSED:
            read.kind = read.gold_share = read.gold_bound = read.price = read.question_count = None
            for item in read.classes:
                item.question_count = None
        return read


class DrawingRead(Output):
    """Questions that were drawn together; the seed is null until the campaign is closed."""

    number: int
    dataset_version: int = Field(description="the last version of the dataset that it is about")
    dataset_digest: str
    question_count: int
    commitment: str | None
    seed: str | None
    drawn_at: datetime | None = Field(description="null while a worker draws them")
    failure: str | None = Field(description="why drawing was given up; asking again tries again")
    by_belief_of: str | None = Field(
        default=None, description="the model by whose belief its classes are drawn; null: uniformly"
    )
    floor_percent: int | None = Field(
        default=None, description="of each question's probability, shared by all possible classes alike"
    )


class DrawingList(Output):
    """The drawings of a campaign."""

    items: list[DrawingRead]
    further_images: int = Field(
        description="images that have joined the dataset and about which nothing is asked yet"
    )

    @classmethod
    def of(
        cls,
        campaign: Campaign,
        drawn: Sequence[Drawing],
        pending: FurtherDrawing | None,
        *,
        further_images: int,
    ) -> Self:
        """All of them, the one that is being drawn last."""
        is_public = campaign.state is CampaignState.CLOSED
        rows: list[Drawing | FurtherDrawing] = [*drawn, *([pending] if pending else [])]
        laws = [belief_of(row) if isinstance(row, FurtherDrawing) else row.belief for row in rows]
        items = [
            DrawingRead(
                number=row.number,
                dataset_version=row.dataset_version,
                dataset_digest=row.dataset_digest,
                question_count=row.question_count,
                commitment=row.commitment,
                seed=row.seed if is_public else None,
                drawn_at=row.drawn_at,
                failure=getattr(row, "failure", None),
                by_belief_of=law and law.model_name,
                floor_percent=law and law.floor_percent,
            )
            for row, law in zip(rows, laws, strict=True)
        ]
        return cls(items=items, further_images=further_images)


class CampaignPage(Output):
    """Some campaigns, newest first; `next` goes into `after` for the following ones."""

    items: list[CampaignRead]
    next: UUID | None
