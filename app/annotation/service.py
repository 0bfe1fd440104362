"""What routes, tasks and other features call: leases, answers, labels, progress and the audit."""

from app.annotation.answering import (
    UNDO_LIMIT,
    GivenAnswer,
    Outcome,
    Status,
    answer_questions,
    undo_answer,
    undo_answers,
)
from app.annotation.auditing import Audit, audit, started_campaign
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
from app.annotation.progress import Progress, finished_questions, progress

__all__ = [
    "LEASE",
    "UNDO_LIMIT",
    "Audit",
    "ExampleLabel",
    "GivenAnswer",
    "Labels",
    "LeasedQuestion",
    "Outcome",
    "Progress",
    "Standing",
    "Status",
    "answer_questions",
    "answered_per_class",
    "audit",
    "campaign_to_answer",
    "drawn_per_class",
    "finished_questions",
    "label_arrays",
    "labels",
    "lease_questions",
    "progress",
    "release_leases",
    "renew_leases",
    "standing",
    "started_campaign",
    "undo_answer",
    "undo_answers",
]
