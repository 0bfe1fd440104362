"""What routes, tasks and other features call: leases, answers, gold, progress."""

from app.annotation.answering import PLAIN, Execution
from app.annotation.beside_classes import (
    count_beside_classes,
    questions_beside_classes,
    set_aside_beside_classes,
    stands_beside_class,
)
from app.annotation.changing import change_answer, change_shown_answer
from app.annotation.gold import KnownPicture, gold_count, gold_lasts, mark_known, some_known
from app.annotation.holding import LeasedQuestion, end_leases_of_strangers
from app.annotation.leasing import (
    Leased,
    release_leases,
    renew_leases,
    standing,
)
from app.annotation.left_to_ask import is_asked_of_all, nobody_is_left, people_at_work
from app.annotation.locking import LockedCampaign, campaign_to_answer, lock_campaign
from app.annotation.naming import keep_names
from app.annotation.own import OwnAnswer, OwnFigures, last_answers, own_figures, tells_others
from app.annotation.participants import (
    is_paused,
    leave_out,
    pause_person,
    pause_unreliable,
    paused_among,
    paused_count,
    resume_person,
)
from app.annotation.practice import PracticeCard, note_practised, practice_cards
from app.annotation.progress import finished_questions, progress
from app.annotation.remaining import has_more, with_more
from app.annotation.rules import LEASE
from app.annotation.setting_aside import pictures_set_aside, review_picture
from app.annotation.submissions import Outcome, Status, SubmittedAnswer
from app.annotation.undoing import UNDO_LIMIT, undo_answers
from app.annotation.waiting import wait_again, wait_no_longer

__all__ = [
    "LEASE",
    "PLAIN",
    "UNDO_LIMIT",
    "Execution",
    "KnownPicture",
    "Leased",
    "LeasedQuestion",
    "LockedCampaign",
    "Outcome",
    "OwnAnswer",
    "OwnFigures",
    "PracticeCard",
    "Status",
    "SubmittedAnswer",
    "campaign_to_answer",
    "change_answer",
    "change_shown_answer",
    "count_beside_classes",
    "end_leases_of_strangers",
    "finished_questions",
    "gold_count",
    "gold_lasts",
    "has_more",
    "is_asked_of_all",
    "is_paused",
    "keep_names",
    "last_answers",
    "leave_out",
    "lock_campaign",
    "mark_known",
    "nobody_is_left",
    "note_practised",
    "own_figures",
    "pause_person",
    "pause_unreliable",
    "paused_among",
    "paused_count",
    "people_at_work",
    "pictures_set_aside",
    "practice_cards",
    "progress",
    "questions_beside_classes",
    "release_leases",
    "renew_leases",
    "resume_person",
    "review_picture",
    "set_aside_beside_classes",
    "some_known",
    "standing",
    "stands_beside_class",
    "tells_others",
    "undo_answers",
    "wait_again",
    "wait_no_longer",
    "with_more",
]
