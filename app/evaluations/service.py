"""What routes, tasks and other features call: evaluations, their results and comparisons."""

from app.evaluations.asking import Judged, Plan, Wishes, create_evaluation, plans
from app.evaluations.comparing import Comparison, compare_two, comparisons_of
from app.evaluations.drawing import name_questions, questions_to_ask
from app.evaluations.listing import evaluation_of, get_evaluation, list_evaluations
from app.evaluations.naming import Confusion, confusion_of, named_of
from app.evaluations.results import (
    Measured,
    Result,
    measured_by_people,
    models_by_people,
    result_of,
    results_of,
    trials_by_people,
)
from app.evaluations.verdicts import Verdict, verdicts_of

__all__ = [
    "Comparison",
    "Confusion",
    "Judged",
    "Measured",
    "Plan",
    "Result",
    "Verdict",
    "Wishes",
    "compare_two",
    "comparisons_of",
    "confusion_of",
    "create_evaluation",
    "evaluation_of",
    "get_evaluation",
    "list_evaluations",
    "measured_by_people",
    "models_by_people",
    "name_questions",
    "named_of",
    "plans",
    "questions_to_ask",
    "result_of",
    "results_of",
    "trials_by_people",
    "verdicts_of",
]
