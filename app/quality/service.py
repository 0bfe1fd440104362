"""What routes, tasks and other features call: the audit, people, the review, history."""

from app.quality.auditing import Audit, audit, started_campaign
from app.quality.draw_checks import check_draws, keep_check, waiting_checks
from app.quality.history import Event, History, history
from app.quality.judging import AnsweredQuestion, Judge, judge_of, question_answers
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
    "AnsweredQuestion",
    "Audit",
    "Event",
    "History",
    "Judge",
    "OpenQuestion",
    "Person",
    "ShownDecision",
    "ask_again",
    "audit",
    "check_draws",
    "decide",
    "history",
    "judge_of",
    "keep_check",
    "most_doubtful",
    "open_questions",
    "people",
    "question_answers",
    "standing_decisions",
    "started_campaign",
    "take_back_decision",
    "waiting_checks",
]
