"""What routes, tasks and other features call: the audit, people, the review, history."""

from app.quality.auditing import ALARM, audit, started_campaign
from app.quality.claims import Claims
from app.quality.dawid_skene import INDEPENDENT, SHARES, Dependence, chances, spreads, thresholds_of
from app.quality.dependence import usual
from app.quality.doubts import open_questions
from app.quality.draw_checks import check_draws, keep_check, waiting_checks
from app.quality.history import history
from app.quality.judging import AnsweredQuestion, Judge, judge_of, question_answers
from app.quality.people import people, people_and_claims
from app.quality.picture import picture
from app.quality.precomputed import (
    claims,
    figures_at,
    is_large,
    keep_figures,
    precompute,
    waiting_figures,
)
from app.quality.review import (
    ask_again,
    decide,
    doubts,
    get_decision,
    most_doubtful,
    standing_decisions,
    take_back_decision,
)
from app.quality.unusable import pictures_to_review, review_picture, reviewed_pictures, unusable_pictures

__all__ = [
    "ALARM",
    "INDEPENDENT",
    "SHARES",
    "AnsweredQuestion",
    "Claims",
    "Dependence",
    "Judge",
    "ask_again",
    "audit",
    "chances",
    "check_draws",
    "claims",
    "decide",
    "doubts",
    "figures_at",
    "get_decision",
    "history",
    "is_large",
    "judge_of",
    "keep_check",
    "keep_figures",
    "most_doubtful",
    "open_questions",
    "people",
    "people_and_claims",
    "picture",
    "pictures_to_review",
    "precompute",
    "question_answers",
    "review_picture",
    "reviewed_pictures",
    "spreads",
    "standing_decisions",
    "started_campaign",
    "take_back_decision",
    "thresholds_of",
    "unusable_pictures",
    "usual",
    "waiting_checks",
    "waiting_figures",
]
