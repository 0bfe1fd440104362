"""What routes, tasks and other features call: the audit, people, the review, history."""

from app.quality.auditing import Audit, audit, started_campaign
from app.quality.history import Event, History, history
from app.quality.people import Person, people
from app.quality.review import (
    OpenQuestion,
    ShownDecision,
    ask_again,
    decide,
    most_doubtful,
    open_questions,
    standing_decisions,
    take_back_decision,
)

__all__ = [
    "Audit",
    "Event",
    "History",
    "OpenQuestion",
    "Person",
    "ShownDecision",
    "ask_again",
    "audit",
    "decide",
    "history",
    "most_doubtful",
    "open_questions",
    "people",
    "standing_decisions",
    "started_campaign",
    "take_back_decision",
]
