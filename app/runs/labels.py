"""The labels of a run: what a campaign has at this moment, what is told of it, and its frozen file."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from app.annotation import service as annotation
from app.campaigns.models import Campaign
from app.labels import service as labelling
from app.runs.errors import TooFewLabels
from app.storage import Storage
from clarinet.files.label_table import COMPLEMENTARY, TRUE, Labels

# On average over the classes: fewer answers teach nothing, and would only keep a GPU busy.
MIN_LABELS_PER_CLASS = 10
FOLDER = "snapshots"  # in storage
_ARRAYS = ("example_ids", "positions", "kinds", "classes", "weights")  # of a snapshot
_OF_QUESTIONS = ("probabilities", "excluded")  # where some questions followed a model's belief


def collect(
    session: Session, campaign: Campaign, *, imported: bool = False, uniform_only: bool = False
) -> tuple[Labels, dict[str, Any]]:
    """The labels that follow from a campaign's answers now, and their facts; `campaign` has its classes.

    `imported`: with the campaign's labels from elsewhere. `uniform_only`: without those of questions by a
    model's belief.
    """
    found = labelling.derive(session, campaign.id, imported=imported, uniform_only=uniform_only)
    facts = facts_of(
        found.labels,
        classes=[item.name for item in campaign.classes],
        answers=found.answer_count,
        simulated=found.simulated_count,
        unfinished=found.is_unfinished,
        imported=found.imported_count,
        set_aside=found.set_aside_count,
        by_belief=found.by_belief_count,
        left_out=found.left_out_count,
    )
    return found.labels, facts


def facts_of(
    labels: Labels,
    *,
    classes: Sequence[str],
    answers: int,
    simulated: int,
    unfinished: bool,
    imported: int = 0,
    set_aside: int = 0,
    by_belief: int = 0,
    left_out: int = 0,
) -> dict[str, Any]:
    """What a page and a model card say about the labels of a run.

    Args:
        labels: as frozen.
        classes: names in the campaign's order.
        answers: live answers of the campaign.
        simulated: how many of those were given by simulated annotators.
        unfinished: whether questions still lacked answers; the weights then make up for uneven classes.
        imported: labels that rest on imports alone.
        set_aside: pictures that give none: said to be of no use, or beside a class.
        by_belief: labels of questions whose class followed a model's belief.
        left_out: answers to such questions that are not among the labels.
    """
    return {
        "classes": list(classes),
        "complementary": labels.counts(COMPLEMENTARY),
        "true": labels.counts(TRUE),
        "answers": answers,
        "simulated_share": simulated / answers if answers else 0.0,
        "is_unfinished": unfinished,
        "imported": imported,
        "set_aside": set_aside,
    } | {name: count for name, count in (("by_belief", by_belief), ("left_out", left_out)) if count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether a campaign has the labels that a run needs."""

    complementary: int
    true: int
    need: int

    @classmethod
    def of(cls, facts: dict[str, Any]) -> "Readiness":
        """From a snapshot's facts."""
        return cls(
            complementary=sum(facts["complementary"]),
            true=sum(facts["true"]),
            need=MIN_LABELS_PER_CLASS * len(facts["classes"]),
        )

    @classmethod
    def about(cls, session: Session, campaign: Campaign, *, now: datetime) -> "Readiness":
        """What answers must have come to by their sums: a look that costs the same for any number of them.

        First answers of no are complementary labels but for a few on which people disagree; a yes is a true
        label once it was confirmed, where each yes is. `campaign` has its classes.
        """
        counts = annotation.progress(session, campaign, now=now).counts
        later_yes = counts.yes - counts.first_yes
        is_asked_twice = campaign.confirming.of_yes or campaign.overlap > 1
        return cls(
            complementary=counts.first_no,
            true=min(counts.first_yes, later_yes) if is_asked_twice else counts.first_yes,
            need=MIN_LABELS_PER_CLASS * campaign.num_classes,
        )

    @property
    def missing(self) -> int:
        """Complementary labels still to come."""
        return max(0, self.need - self.complementary)

    @property
    def setting(self) -> str:
        """What a form offers: pc once there are as many true labels as classes, so that most have one."""
        return "pc" if self.true * MIN_LABELS_PER_CLASS >= self.need else "cc"

    def require(self, setting: str) -> None:
        """Raises TooFewLabels unless a run of this setting can start."""
        if self.missing:
            raise TooFewLabels(have=self.complementary, need=self.need)
        if setting == "pc" and not self.true:
            raise TooFewLabels(have=0, need=1, kind="true")


def key_of(digest: str) -> str:
    """Where a snapshot lies in storage."""
    return f"{FOLDER}/{digest}.npz"


def freeze(storage: Storage, labels: Labels) -> str:
    """Store labels as a snapshot, under the SHA-256 of the file; gives it. Equal labels give one file.

    One that is there already is written again, in case that it was damaged.
    """
    buffer = io.BytesIO()
    names = [*_ARRAYS, *(name for name in _OF_QUESTIONS if getattr(labels, name) is not None)]
    arrays: dict[str, Any] = {name: getattr(labels, name) for name in names}
    np.savez_compressed(buffer, **arrays)
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    storage.put(key_of(digest), data)
    return digest


def thaw(storage: Storage, digest: str, *, num_classes: int) -> Labels:
    """Read a snapshot back.

    Raises:
        StoredFileMissing, StoredFileDamaged: the file is not what was frozen.
    """
    data = storage.read_as_written(key_of(digest), digest)
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        names = [*_ARRAYS, *(name for name in _OF_QUESTIONS if name in arrays)]
        return Labels(**{name: arrays[name] for name in names}, num_classes=num_classes)
