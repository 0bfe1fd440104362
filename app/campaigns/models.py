"""Campaigns: one labelling effort over the train split of one source dataset, drawn once or several times."""

import enum
from datetime import datetime
from secrets import token_hex
from uuid import UUID, uuid4

from sqlalchemy import (
    JSON,
    CheckConstraint,
    ForeignKey,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    false,
    true,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.campaigns.confirming import NEWEST, Confirming
from app.claims import Claimable
from app.db import Base, BigId, enum_column


class CampaignState(enum.StrEnum):
    """A campaign's life. A draft whose opening was asked for stays a draft until its questions are drawn."""

    DRAFT = "draft"
    OPEN = "open"
    PAUSED = "paused"
    CLOSED = "closed"


class CampaignKind(enum.StrEnum):
    """What a campaign's answers are for."""

    LABELLING = "labelling"  # they become labels
    EVALUATION = "evaluation"  # they tell how often a model is right, and can never train


class Modes(enum.StrEnum):
    """How questions may be put: one picture at a time, pages of one class, or as each person likes."""

    CARD = "card"
    GRID = "grid"
    BOTH = "both"


class Admits(enum.StrEnum):
    """Who may know of a campaign and answer in it, admins and reviewers aside."""

    EVERYBODY = "everybody"  # with an account; outside workers only where they are members
    INVITED = "invited"  # its members, and who is in one of its groups


class PricePer(enum.StrEnum):
    """What people are paid by."""

    ANSWER = "answer"
    HOUR = "hour"


class Consensus(enum.StrEnum):
    """How the answers to one question become a label with a weight."""

    MAJORITY = "majority"
    DAWID_SKENE = "dawid-skene"


# Columns that say how a campaign asks; whoever drafts one chooses them by these names.
POLICY = (
    "confirm_yes",
    "overlap",
    "consensus",
    "gold_share",
    "gold_bound",
    "least_card_ms",
    "least_page_ms",
    "least_picture_ms",
    "asks_again",
    "skip_twins",
    "class_language",
    "tells_others",
    "rounds",
    "modes",
)
CHOSEN = ("instructions", *POLICY)


class Campaign(Claimable, Base):
    """One labelling effort: a source dataset, ordered classes, a policy, a state."""

    __tablename__ = "campaign"
    __table_args__ = (
        CheckConstraint("rounds >= 1", name="rounds_positive"),
        CheckConstraint("overlap BETWEEN 1 AND 3", name="overlap_in_range"),
        CheckConstraint("gold_share BETWEEN 0 AND 0.5", name="gold_share_in_range"),
        CheckConstraint("gold_bound BETWEEN 0 AND 1", name="gold_bound_in_range"),
        CheckConstraint("price > 0", name="price_positive"),
        # 0.1.0 knows no evaluations: it would draw an ordinary campaign's questions for a draft.
        CheckConstraint(
            "kind <> 'evaluation' OR state <> 'draft' OR opening_requested_at IS NULL",
            name="evaluation_not_for_older",
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    name: Mapped[str] = mapped_column(String(120), unique=True)
    kind: Mapped[CampaignKind] = mapped_column(
        enum_column(CampaignKind), default=CampaignKind.LABELLING, server_default=CampaignKind.LABELLING
    )
    instructions: Mapped[str] = mapped_column(Text, default="")
    dataset_id: Mapped[UUID] = mapped_column(ForeignKey("dataset.id", ondelete="RESTRICT"), index=True)
    state: Mapped[CampaignState] = mapped_column(enum_column(CampaignState), default=CampaignState.DRAFT)
    confirm_yes: Mapped[bool] = mapped_column(default=True)  # see `confirming`
    # Which part of the questions between two classes is confirmed: 1 of campaigns of before 4/9 was the part.
    confirm_law: Mapped[int] = mapped_column(SmallInteger, default=NEWEST, server_default="1")
    overlap: Mapped[int] = mapped_column(default=1, server_default="1")  # yes/no answers to each question
    consensus: Mapped[Consensus] = mapped_column(
        enum_column(Consensus), default=Consensus.DAWID_SKENE, server_default=Consensus.DAWID_SKENE
    )
    # Of the questions put to each person, those whose right answer is known; none where nothing was marked.
    gold_share: Mapped[float] = mapped_column(default=0.05, server_default="0.05")
    gold_bound: Mapped[float] = mapped_column(default=0.7, server_default="0.7")  # worse than this is paused
    # Answers that come faster count for nothing: a card, or a page and each of its pictures; 0: none is too
    # fast.
    least_card_ms: Mapped[int] = mapped_column(default=200, server_default="200")
    least_page_ms: Mapped[int] = mapped_column(default=300, server_default="300")
    least_picture_ms: Mapped[int] = mapped_column(default=50, server_default="50")
    # What somebody alone answered who turns out to be unreliable is asked again.
    asks_again: Mapped[bool] = mapped_column(default=True, server_default=true())
    price: Mapped[float | None]  # of an answer or an hour, in any currency; to show what the campaign costs
    price_per: Mapped[PricePer] = mapped_column(
        enum_column(PricePer), default=PricePer.ANSWER, server_default=PricePer.ANSWER
    )
    # Ask about pictures that are the same, pixel by pixel, only once.
    skip_twins: Mapped[bool] = mapped_column(default=False, server_default=false())
    # Of the classes' names, as in `lang` attributes; empty: not said, and questions use no article.
    class_language: Mapped[str] = mapped_column(String(35), default="", server_default="")
    # Once it is closed, annotators are told what others said to the questions that they answered.
    tells_others: Mapped[bool] = mapped_column(default=False, server_default=false())
    # Of an evaluation: after each no people name what the picture shows, one picture at a time.
    asks_which: Mapped[bool] = mapped_column(default=False, server_default=false())
    rounds: Mapped[int] = mapped_column(default=1)  # questions per example, drawn without replacement
    modes: Mapped[Modes] = mapped_column(enum_column(Modes), default=Modes.BOTH, server_default="both")
    # Who may know of it; can change at any time.
    admits: Mapped[Admits] = mapped_column(
        enum_column(Admits), default=Admits.EVERYBODY, server_default=Admits.EVERYBODY
    )
    seed: Mapped[str] = mapped_column(String(64))  # 256 bits in hex; secret until the campaign is closed
    # What annotators see in place of numbers is keyed with it, and nobody is ever told. None: the seed does,
    # of campaigns that were open when this was added.
    names_secret: Mapped[str | None] = mapped_column(String(64), default=lambda: token_hex(32))
    commitment: Mapped[str | None] = mapped_column(String(64))  # SHA-256, published when it opens
    dataset_digest: Mapped[str | None] = mapped_column(String(64))  # of the dataset as it was at opening
    dataset_version: Mapped[int | None]  # which that was; further drawings are about later ones
    # Of an evaluation: what its images are drawn by, and how many; see `sampling`.
    sample_seed: Mapped[str | None] = mapped_column(String(64))
    sample_size: Mapped[int | None]
    # Where it drew by predicted class: see `sampling.Stratum`, one for each class.
    sample_strata: Mapped[list[list[int]] | None] = mapped_column(JSON(none_as_null=True))
    question_count: Mapped[int] = mapped_column(default=0)  # drawn so far, by all drawings
    # Of these, drawn by a model's belief, and the sum of the probabilities with which they were: so many yes
    # are expected.
    believed_count: Mapped[int] = mapped_column(default=0, server_default="0")
    believed_yes: Mapped[float] = mapped_column(default=0.0, server_default="0")
    # How far back in the queue a question goes that is to be asked again: a multiple of the questions that
    # were drawn at first, and no fewer than there are. So its rank still tells its place.
    rank_step: Mapped[int] = mapped_column(BigId, default=0, server_default="0")
    opening_requested_at: Mapped[datetime | None]
    asking_requested_at: Mapped[datetime | None]  # the same of an evaluation, where 0.1.0 does not look
    opening_failure: Mapped[str | None] = mapped_column(
        Text
    )  # a sentence, when the last opening was given up
    opened_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None]
    archived_at: Mapped[datetime | None]  # hidden from lists since then
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]

    classes: Mapped[list["CampaignClass"]] = relationship(
        lazy="raise",
        order_by="CampaignClass.position",
        cascade="all, delete-orphan",
        back_populates="campaign",
    )

    @property
    def is_evaluation(self) -> bool:
        """Whether its answers tell how often a model is right: no label, nothing that trains."""
        return self.kind is CampaignKind.EVALUATION

    @property
    def confirming(self) -> Confirming:
        """What a second person is asked; its classes were loaded."""
        return Confirming(self.confirm_yes, self.overlap, self.num_classes, self.confirm_law)

    @property
    def is_opening(self) -> bool:
        """Whether its opening was asked for and its questions are not drawn yet."""
        asked_at = self.asking_requested_at if self.is_evaluation else self.opening_requested_at
        return self.state is CampaignState.DRAFT and asked_at is not None

    def ask_to_open(self, now: datetime) -> None:
        """Note that somebody wants its questions drawn."""
        if self.is_evaluation:
            self.asking_requested_at = now
        else:
            self.opening_requested_at = now

    @property
    def revealed_seed(self) -> str | None:
        """The seed, once it is no secret any more."""
        return self.seed if self.state is CampaignState.CLOSED else None

    @property
    def shown_state(self) -> str:
        """The state as people see it: a draft that is being opened is "opening"."""
        return "opening" if self.is_opening else str(self.state)

    @property
    def class_names(self) -> list[str]:
        """Names of the classes; a class's place is its label."""
        return [item.name for item in self.classes]

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)


class CampaignClass(Base):
    """A class people are asked about; `position` is its label."""

    __tablename__ = "campaign_class"
    __table_args__ = (UniqueConstraint("campaign_id", "name"),)

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80))
    description: Mapped[str] = mapped_column(Text, default="")
    example_ids: Mapped[list[int]]  # up to a few examples shown as pictures of this class
    question_count: Mapped[int] = mapped_column(default=0)  # drawn for this class

    campaign: Mapped[Campaign] = relationship(lazy="raise", back_populates="classes")


class PersonGroup(Base):
    """People under one name, so that a campaign need not name each of them."""

    __tablename__ = "person_group"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    name: Mapped[str] = mapped_column(String(120), unique=True)
    created_at: Mapped[datetime]


class GroupPerson(Base):
    """Somebody in a group."""

    __tablename__ = "group_person"

    group_id: Mapped[UUID] = mapped_column(
        ForeignKey("person_group.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[UUID] = mapped_column(
        ForeignKey("user.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class CampaignMember(Base):
    """Somebody who is a member of a campaign by name."""

    __tablename__ = "campaign_member"

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[UUID] = mapped_column(
        ForeignKey("user.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class CampaignGroup(Base):
    """A group all of whose people are members of a campaign."""

    __tablename__ = "campaign_group"

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    group_id: Mapped[UUID] = mapped_column(
        ForeignKey("person_group.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class FurtherDrawing(Claimable, Base):
    """Questions about images that joined the dataset after those that a campaign asks about, or by a belief.

    They are drawn together, from a seed of their own, and appear together. The first drawing stands in the
    campaign itself. A drawing by a model's belief asks once more about images of which no answer was yes.
    """

    __tablename__ = "campaign_drawing"
    __table_args__ = (
        UniqueConstraint("campaign_id", "number"),
        CheckConstraint("number >= 2", name="number_after_first"),
        CheckConstraint("(commitment IS NULL) = (drawn_at IS NULL)", name="committed_once_drawn"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    number: Mapped[int]  # 2, 3, ...
    seed: Mapped[str] = mapped_column(String(64))  # 256 bits in hex; secret until the campaign is closed
    commitment: Mapped[str | None] = mapped_column(String(64))  # SHA-256, published when it is drawn
    dataset_version: Mapped[int]  # the last one that it is about
    dataset_digest: Mapped[str] = mapped_column(String(64))
    first_position: Mapped[int]  # of its images in their dataset
    end_position: Mapped[int]  # one after the last
    first_rank: Mapped[int] = mapped_column(BigId)  # of its questions in the queue
    question_count: Mapped[int] = mapped_column(default=0)
    failure: Mapped[str | None] = mapped_column(Text)  # a sentence, when drawing was given up
    requested_at: Mapped[datetime]
    requested_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    drawn_at: Mapped[datetime | None]
    # By a model's belief; all of these None: uniformly. The model may be deleted: what was drawn follows from
    # its beliefs.
    model_id: Mapped[UUID | None]
    model_name: Mapped[str | None] = mapped_column(String(160))  # what people call it
    floor_percent: Mapped[int | None]  # of each probability that all possible classes share equally
    round: Mapped[int | None]  # of its questions
    beliefs_digest: Mapped[str | None] = mapped_column(String(64))  # SHA-256 of them, once drawn


class DrawingBeliefs(Base):
    """What the model of a drawing believed, from which it was drawn: see `believed.KeptBeliefs`."""

    __tablename__ = "campaign_drawing_beliefs"

    drawing_id: Mapped[UUID] = mapped_column(
        ForeignKey("campaign_drawing.id", ondelete="CASCADE"), primary_key=True
    )
    data: Mapped[bytes] = mapped_column(LargeBinary)
