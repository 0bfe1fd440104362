"""Questions, leases and answers."""

import enum
from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    ForeignKey,
    Index,
    Text,
    UniqueConstraint,
    false,
    literal_column,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, BigId, enum_column


class Purpose(enum.StrEnum):
    """Only labelling questions train. The chi-square is about these, or about an evaluation's drawn ones."""

    LABELLING = "labelling"
    GOLD = "gold"
    EVALUATION = "evaluation"


class AnswerValue(enum.StrEnum):
    """What a person can say to a question."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"
    UNUSABLE = "unusable"  # the picture cannot be used, whatever is asked about it

    @property
    def is_of_class(self) -> bool:
        """Whether it says something about the class that was asked about."""
        return self in OF_CLASS


OF_CLASS = (AnswerValue.YES, AnswerValue.NO)


class Question(Base):
    """ "Is this a *k*?" about one example; drawn with the others of its drawing, never drawn again."""

    __tablename__ = "question"
    __table_args__ = (
        UniqueConstraint("campaign_id", "example_id", "round"),
        # The queue: what is still to be asked, in asking order. Finished questions leave the index, and so do
        # those that return to another person; these are looked for by class.
        Index(
            "ix_question_first",
            "campaign_id",
            "rank",
            sqlite_where=text("is_waiting AND slots <= least"),
            postgresql_where=text("is_waiting AND slots <= least"),
        ),
        Index(
            "ix_question_returning",
            "campaign_id",
            "candidate_class",
            "rank",
            sqlite_where=text("is_waiting AND slots > least"),
            postgresql_where=text("is_waiting AND slots > least"),
        ),
        Index(
            "ix_question_gold",
            "campaign_id",
            "candidate_class",
            sqlite_where=text("purpose = 'gold'"),
            postgresql_where=text("purpose = 'gold'"),
        ),
        # What more than one person is asked: every yes to be confirmed, every disagreement.
        Index(
            "ix_question_several",
            "campaign_id",
            "candidate_class",
            sqlite_where=text("slots > 1"),
            postgresql_where=text("slots > 1"),
        ),
        # Pictures that cannot be used: few, and left out of all that labels come from.
        Index(
            "ix_question_set_aside",
            "campaign_id",
            "example_id",
            sqlite_where=text("is_set_aside"),
            postgresql_where=text("is_set_aside"),
        ),
        CheckConstraint("probability > 0 AND probability <= 1", name="probability"),
        CheckConstraint("slots >= 1", name="slots_positive"),
        CheckConstraint("least BETWEEN 1 AND 4", name="least_in_range"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    example_id: Mapped[int] = mapped_column(ForeignKey("example.id", ondelete="RESTRICT"), index=True)
    # 1 at opening; of gold the one that is about the images among which its picture joined.
    drawing: Mapped[int] = mapped_column(default=1, server_default="1")
    round: Mapped[int]  # 0 .. rounds - 1; of gold -1 - candidate_class
    candidate_class: Mapped[int]  # position of the campaign's class
    probability: Mapped[float]  # with which this class was drawn
    purpose: Mapped[Purpose] = mapped_column(enum_column(Purpose), default=Purpose.LABELLING)
    is_match: Mapped[bool | None]  # gold: whether yes is right; else unknown
    rank: Mapped[int] = mapped_column(BigId)  # place in the queue; gold stands in none
    # Yes/no answers it needs whatever they say: the campaign's overlap, more where it was asked again.
    least: Mapped[int] = mapped_column(default=1, server_default="1")
    slots: Mapped[int] = mapped_column(default=1)  # how many yes/no answers it needs; grows with confirmation
    is_waiting: Mapped[bool] = mapped_column(default=True)  # some slot has no answer yet
    # Its picture cannot be used: nobody more is asked, and what was answered gives no label.
    is_set_aside: Mapped[bool] = mapped_column(default=False, server_default=false())


# As the partial index has it: for `is_set_aside = 1` SQLite would not use that.
IS_SET_ASIDE: ColumnElement[bool] = literal_column("question.is_set_aside")


class PictureReview(Base):
    """What a reviewer said of a picture of which people said that it cannot be used; the last word counts."""

    __tablename__ = "picture_review"

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    example_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("example.id", ondelete="RESTRICT"), primary_key=True, autoincrement=False
    )
    is_kept: Mapped[bool]  # False: it is left out
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    reviewed_at: Mapped[datetime]


class Lease(Base):
    """One slot of a question, held by one person: until a time, or for good once answered."""

    __tablename__ = "lease"
    __table_args__ = (
        UniqueConstraint("question_id", "slot"),  # so a slot can never be answered by two people
        UniqueConstraint("question_id", "user_id"),  # nor a question twice by one
        # What somebody holds now; answered slots, which grow without bound, leave the index.
        Index(
            "ix_lease_held",
            "user_id",
            sqlite_where=text("expires_at IS NOT NULL"),
            postgresql_where=text("expires_at IS NOT NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    question_id: Mapped[int] = mapped_column(ForeignKey("question.id", ondelete="CASCADE"))
    slot: Mapped[int]
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime | None]  # None: answered, held for good
    # Since when its holder has known the question; renewals leave it. None: held since before it was written.
    held_since: Mapped[datetime | None]
    # Order among what its holder holds of the campaign. Written whenever the slot changes hands, not by
    # renewals; the id would not do, because a taken-over slot keeps its row.
    turn: Mapped[int] = mapped_column(default=0)
    # Of a known picture: the question beside it. If somebody else gets that, this one is lost, too.
    beside_id: Mapped[int | None] = mapped_column(BigId)


class Answer(Base):
    """What somebody said, once. Append-only: an undo supersedes it, nothing edits it."""

    __tablename__ = "answer"
    __table_args__ = (
        UniqueConstraint("user_id", "key"),
        Index(
            "uq_answer_live",
            "question_id",
            "user_id",
            unique=True,
            sqlite_where=text("superseded_at IS NULL"),
            postgresql_where=text("superseded_at IS NULL"),
        ),
        Index("ix_answer_user_id_id", "user_id", "id"),
        Index(
            "ix_answer_question_id", "question_id"
        ),  # a campaign that goes takes each answer by its question
        Index(
            "ix_answer_unsure",
            "question_id",
            sqlite_where=text("value = 'unsure' AND superseded_at IS NULL"),
            postgresql_where=text("value = 'unsure' AND superseded_at IS NULL"),
        ),
        Index(
            "ix_answer_unusable",
            "question_id",
            sqlite_where=text("value = 'unusable' AND superseded_at IS NULL"),
            postgresql_where=text("value = 'unusable' AND superseded_at IS NULL"),
        ),
        Index(
            "ix_answer_hasty",
            "question_id",
            sqlite_where=text("is_hasty"),
            postgresql_where=text("is_hasty"),
        ),
        CheckConstraint("response_ms IS NULL OR response_ms >= 0", name="response_not_negative"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    question_id: Mapped[int] = mapped_column(ForeignKey("question.id", ondelete="CASCADE"))
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    value: Mapped[AnswerValue] = mapped_column(enum_column(AnswerValue))
    response_ms: Mapped[int | None]  # from picture shown to key pressed, measured by the client
    key: Mapped[UUID]  # made by the client: the same key twice is the same answer
    created_at: Mapped[datetime]
    superseded_at: Mapped[datetime | None]
    # Given faster than anybody can look: it counts as given, and says nothing about its question.
    is_hasty: Mapped[bool] = mapped_column(default=False, server_default=false())


class Naming(Base):
    """What the picture shows instead, as somebody named it after their no.

    It tells which mistakes a model makes; no label is derived from it.
    """

    __tablename__ = "naming"
    __table_args__ = (CheckConstraint("named_ms IS NULL OR named_ms >= 0", name="named_not_negative"),)

    answer_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("answer.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    class_: Mapped[int | None]  # None: none of the campaign's classes, or they could not tell
    named_ms: Mapped[
        int | None
    ]  # from their no to the name, measured by the client; beside the answer's time


class PausedFor(enum.StrEnum):
    """Why somebody is paused."""

    KNOWN_PICTURES = "known-pictures"  # too often wrong about them
    LOOKING = "looking"  # answers as nobody does who looks
    HASTE = "haste"  # answers faster than anybody can look
    ADMIN = "admin"


class Participant(Base):
    """One person's part in one campaign: how they did on gold, and whether they may go on."""

    __tablename__ = "participant"

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"), primary_key=True)
    gold_answers: Mapped[int] = mapped_column(default=0)  # live ones, "can't tell" included
    gold_right: Mapped[int] = mapped_column(default=0)  # since they were last let go on
    gold_wrong: Mapped[int] = mapped_column(default=0)
    paused_at: Mapped[datetime | None]
    paused_by_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("user.id", ondelete="RESTRICT")
    )  # None: the program
    paused_for: Mapped[PausedFor | None] = mapped_column(enum_column(PausedFor))
    # An admin let them go on: they are not paused again for what they said until then, or for looking.
    is_vouched_for: Mapped[bool] = mapped_column(default=False, server_default=false())
    asked_again: Mapped[
        int | None
    ]  # questions that they alone answered, when others were asked; None: not yet
    is_left_out: Mapped[bool] = mapped_column(default=False)  # their answers make no labels


class Practice(Base):
    """Somebody has done the practice cards of a campaign, or skipped them. Nothing else is kept of them."""

    __tablename__ = "practice"

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), primary_key=True)


class UsedTime(Base):
    """The time of the last day that one person's looks have used up, over all campaigns.

    Only its own person's requests write a row, one at a time.
    """

    __tablename__ = "used_time"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), primary_key=True)
    spans: Mapped[str] = mapped_column(Text)  # as `used_time` writes them


class Tally(Base):
    """What one person's live answers about one class add up to, kept with each answer: pages need not count.

    Only its own person's requests write a row, so nobody waits for anybody. Its figures can always be
    recomputed from the answers.
    """

    __tablename__ = "tally"

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"), primary_key=True)
    candidate_class: Mapped[int] = mapped_column(primary_key=True)
    yes: Mapped[int] = mapped_column(default=0)
    no: Mapped[int] = mapped_column(default=0)
    unsure: Mapped[int] = mapped_column(default=0)
    unusable: Mapped[int] = mapped_column(default=0, server_default="0")
    first_yes: Mapped[int] = mapped_column(default=0)  # to questions that nobody had said yes or no to
    first_no: Mapped[int] = mapped_column(default=0)
    # Second answers to a first yes, net: whoever takes the first one back counts in their own row.
    confirmed: Mapped[int] = mapped_column(default=0, server_default="0")
    denied: Mapped[int] = mapped_column(default=0, server_default="0")
    finished: Mapped[int] = mapped_column(default=0)  # questions that stopped waiting by these answers, net
    timed: Mapped[int] = mapped_column(default=0)  # answers whose time is known
    active_ms: Mapped[int] = mapped_column(BigId, default=0)  # their times added up
    last_at: Mapped[datetime]
    # The latest of a person's classes says until when their answers used up the time in which they can have
    # looked (`haste`). Known pictures, which enter no sum here, use it up as well.
    looked_until: Mapped[datetime | None]


_sums = Tally.__table__.c
# All that somebody answered about a class.
ALL_ANSWERS: ColumnElement[int] = _sums.yes + _sums.no + _sums.unsure + _sums.unusable
