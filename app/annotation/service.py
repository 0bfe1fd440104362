"""What routes, tasks and other features call: leases, answers, labels, progress and the audit."""

from app.annotation.answering import GivenAnswer, Outcome, Status, answer_questions
from app.annotation.auditing import Audit, audit, started_campaign
from app.annotation.gold import KnownPicture, gold_count, mark_known, some_known
from app.annotation.history import Event, History, history
from app.annotation.importing.storing import (
    Prepared,
    delete_import,
    imports_of,
    prepare_import,
    store_import,
)
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
from app.annotation.participants import Person, leave_out, pause_person, paused_count, people, resume_person
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
from app.annotation.undoing import UNDO_LIMIT, undo_answer, undo_answers

__all__ = [
    "LEASE",
    "UNDO_LIMIT",
    "Audit",
    "Event",
    "ExampleLabel",
    "GivenAnswer",
    "History",
    "KnownPicture",
    "Labels",
    "LeasedQuestion",
    "OpenQuestion",
    "Outcome",
    "Person",
    "Prepared",
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
    "delete_import",
    "drawn_per_class",
    "finished_questions",
    "gold_count",
    "history",
    "imports_of",
    "label_arrays",
    "labels",
    "lease_questions",
    "leave_out",
    "mark_known",
    "open_questions",
    "pause_person",
    "paused_count",
    "people",
    "prepare_import",
    "progress",
    "release_leases",
    "renew_leases",
    "resume_person",
    "some_known",
    "standing",
    "standing_decisions",
    "started_campaign",
    "store_import",
    "take_back_decision",
    "undo_answer",
    "undo_answers",
]
