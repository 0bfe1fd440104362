"""What routes and other features call: leases, answers, labels, progress and the audit."""

from app.annotation.answering import GivenAnswer, Outcome, Status, answer_questions, undo_answer
from app.annotation.labels import (
    ExampleLabel,
    Labels,
    answered_per_class,
    drawn_per_class,
    label_arrays,
    labels,
)
from app.annotation.leasing import (
    LEASE,
    LeasedQuestion,
    Standing,
    campaign_to_answer,
    lease_questions,
    release_leases,
    renew_leases,
    standing,
)

__all__ = [
    "LEASE",
    "ExampleLabel",
    "GivenAnswer",
    "Labels",
    "LeasedQuestion",
    "Outcome",
    "Standing",
    "Status",
    "answer_questions",
    "answered_per_class",
    "campaign_to_answer",
    "drawn_per_class",
    "label_arrays",
    "labels",
    "lease_questions",
    "release_leases",
    "renew_leases",
    "standing",
    "undo_answer",
]
