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
    class_factors,
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
from app.annotation.review import (
    OpenQuestion,
    ShownDecision,
    ask_again,
    decide,
    open_questions,
    standing_decisions,
    take_back_decision,
)

__all__ = [
    "LEASE",
    "UNDO_LIMIT",
    "Audit",
    "ExampleLabel",
    "GivenAnswer",
    "Labels",
    "LeasedQuestion",
    "OpenQuestion",
    "Outcome",
    "Progress",
    "ShownDecision",
    "Standing",
    "Status",
    "answer_questions",
    "answered_per_class",
    "ask_again",
    "audit",
    "campaign_to_answer",
    "class_factors",
    "decide",
    "drawn_per_class",
    "finished_questions",
    "label_arrays",
    "labels",
    "lease_questions",
    "open_questions",
    "progress",
    "release_leases",
    "renew_leases",
    "standing",
    "standing_decisions",
    "started_campaign",
    "take_back_decision",
    "undo_answer",
    "undo_answers",
]
