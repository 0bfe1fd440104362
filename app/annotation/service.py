"""What routes and other features call: leases, answers, labels, progress and the audit."""

from app.annotation.answering import GivenAnswer, Outcome, Status, answer_questions, undo_answer
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
    "GivenAnswer",
    "LeasedQuestion",
    "Outcome",
    "Standing",
    "Status",
    "answer_questions",
    "campaign_to_answer",
    "lease_questions",
    "release_leases",
    "renew_leases",
    "standing",
    "undo_answer",
]
