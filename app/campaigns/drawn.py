"""What is known of questions that were drawn together, or are to be."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.claims import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """The law of a drawing whose classes were not drawn uniformly."""

    drawing_id: UUID  # whose beliefs are kept
    model_id: UUID  # which may be deleted since
    model_name: str
    floor_percent: int  # of each probability that all possible classes share equally
    round: int  # of its questions
    digest: str  # SHA-256 of the beliefs; "" until it is drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Questions that were drawn together: the campaign's first ones, or further ones."""

    number: int
    seed: str  # secret until the campaign is closed
    commitment: str
    dataset_version: int  # the last one that it is about
    dataset_digest: str
    first_position: int  # of its images in their dataset
    end_position: int
    first_rank: int
    question_count: int
    drawn_at: datetime
    belief: Belief | None = None  # None: uniform


@dataclass(frozen=True, slots=True)
class Further:
    """A claimed drawing, and what it draws from."""

    claim: Claim
    number: int
    campaign_id: UUID
    seed: str
    first_rank: int
    first_position: int
    end_position: int
    class_names: tuple[str, ...]
    rounds: int
    overlap: int
    dataset_id: UUID
    dataset_digest: str
    skip_twins: bool
    belief: Belief | None  # None: uniform
