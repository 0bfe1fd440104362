"""Between two classes four of nine questions are confirmed, whatever is said: a yes and a no are alike."""

import random
from itertools import pairwise
from uuid import uuid4

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.leasing import answers_to_come
from app.annotation.models import AnswerValue, Question
from app.annotation.progress import Counts, answers_to_go
from app.annotation.public_ids import public_ids_of
from app.campaigns.models import Campaign
from app.labels import service as labelling
from app.runs.labels import Readiness
from clarinet.files.label_table import LabelKind
from tests import annotators
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = [pytest.mark.dialects, pytest.mark.usefixtures("each_execution")]

YES, NO = AnswerValue.YES, AnswerValue.NO
TRUE, COMPLEMENTARY = LabelKind.TRUE, LabelKind.COMPLEMENTARY


def of_two(session: Session, *, examples: int = 100, overlap: int = 1) -> Campaign:
    return make_campaign(
        session, examples=examples, class_names=("cat", "dog"), confirm_yes=True, overlap=overlap
    )


@pytest.fixture
def campaign(session: Session) -> Campaign:
    return of_two(session)


def halves(session: Session, campaign: Campaign) -> tuple[list[Question], list[Question]]:
    """Questions that are confirmed, of which a majority settles each, and those that are not."""
    questions = questions_of(session, campaign)
    locked = service.lock_campaign(session, campaign.id, by=make_user(session))
    by_lead: dict[int, list[Question]] = {0: [], 1: [], 2: []}
    for question in questions:
        by_lead[locked.lead(question.id)].append(question)
    assert min(len(by_lead[0]), len(by_lead[1])) >= 4
    return by_lead[1], by_lead[0]


def say(session: Session, campaign: Campaign, question: Question, values: str) -> None:
    """Give these answers, y, n or u, each of somebody new."""
    for letter in values:
        answer(session, campaign, question.id, {"y": "yes", "n": "no", "u": "unsure"}[letter])
    session.refresh(question)


@pytest.mark.parametrize(
    ("said", "slots", "waits"),
    [
        ("", 1, True),
        ("y", 2, True),
        ("n", 2, True),
        ("u", 1, True),  # the first one is still to come
        ("yy", 2, False),
        ("nn", 2, False),
        ("yn", 3, True),
        ("ny", 3, True),
        ("yny", 3, False),  # two of three settle it, as they do
        ("ynn", 3, False),  # here
    ],
)
def test_of_a_question_that_is_confirmed(
    session: Session, campaign: Campaign, said: str, slots: int, waits: bool
) -> None:
    confirmed, _ = halves(session, campaign)

    say(session, campaign, confirmed[0], said)

    assert (confirmed[0].slots, confirmed[0].is_waiting) == (slots, waits)


def test_of_some_a_fourth_is_asked_where_people_differ(session: Session, campaign: Campaign) -> None:
    locked = service.lock_campaign(session, campaign.id, by=make_user(session))
    one, two, *_ = (found for found in questions_of(session, campaign) if locked.lead(found.id) == 2)

    say(session, campaign, one, "nn")
    say(session, campaign, two, "nyn")
    before = two.slots, two.is_waiting
    say(session, campaign, two, "n")

    assert (one.slots, one.is_waiting) == (2, False)
    assert before == (4, True)
    assert (two.slots, two.is_waiting) == (4, False)


@pytest.mark.parametrize("said", ["y", "n", "uy", "un"])
def test_one_answer_settles_any_other(session: Session, campaign: Campaign, said: str) -> None:
    _, others = halves(session, campaign)

    say(session, campaign, others[0], said)

    assert (others[0].slots, others[0].is_waiting) == (1, False)


def test_a_lone_yes_gives_a_label_as_a_lone_no_does(session: Session, campaign: Campaign) -> None:
    confirmed, others = halves(session, campaign)
    said = {confirmed[0]: "yy", confirmed[1]: "yny", confirmed[2]: "nyn", others[0]: "y", others[1]: "n"}
    for question, values in said.items():
        say(session, campaign, question, values)

    found = {label.example_id: label.kind for label in labelling.labels(session, campaign)}

    kinds = dict(zip(said, (TRUE, TRUE, COMPLEMENTARY, TRUE, COMPLEMENTARY), strict=True))
    assert found == {question.example_id: kind for question, kind in kinds.items()}
    counted = Readiness.about(session, campaign, now=NOW)
    assert (counted.true, counted.complementary) == (3, 2), "by first answers"


@pytest.mark.parametrize("value", [YES, NO])
def test_what_is_taken_back_or_changed_leaves_it_confirmed(
    session: Session, campaign: Campaign, annotator: User, value: AnswerValue
) -> None:
    confirmed, _ = halves(session, campaign)
    other = NO if value is YES else YES
    answer(session, campaign, confirmed[0].id, value.value, by=annotator)
    ids = public_ids_of(session, campaign.id)

    service.change_shown_answer(
        session, campaign.id, ids.of(confirmed[0].id), other, key=uuid4(), by=annotator, now=NOW
    )
    session.refresh(confirmed[0])
    changed = (confirmed[0].slots, confirmed[0].is_waiting)
    annotators.undo(session, campaign, by=annotator, now=NOW)
    session.refresh(confirmed[0])

    assert changed == (2, True)
    assert (confirmed[0].slots, confirmed[0].is_waiting) == (1, True), "as it was at first"


def test_whoever_wants_every_answer_confirmed_asks_two_people(session: Session) -> None:
    campaign = of_two(session, overlap=2)
    one, two, three, four = questions_of(session, campaign)[:4]

    for question, values in ((one, "y"), (two, "yy"), (three, "nn"), (four, "yny")):
        say(session, campaign, question, values)

    assert [(q.slots, q.is_waiting) for q in (one, two, three, four)] == [
        (2, True),
        (2, False),
        (2, False),
        (3, False),
    ]
    assert service.progress(session, campaign, now=NOW).counts.total == 8


def test_the_answers_to_come_are_half_as_many_again_at_most(session: Session, campaign: Campaign) -> None:
    twice, older = of_two(session, overlap=2), of_two(session)
    older.confirm_law = 1

    assert answers_to_go(campaign, Counts(), finished=0) == pytest.approx(100 * (1 + 4 / 9))
    assert answers_to_go(older, Counts(), finished=0) == 100 * 1.5
    assert answers_to_go(twice, Counts(), finished=0) == 100 * 2
    assert answers_to_come(campaign) == 155
    assert service.progress(session, campaign, now=NOW).agreement is None, "no yes alone is confirmed"


def test_campaigns_of_before_keep_their_law(session: Session, campaign: Campaign) -> None:
    leads = {law: _leads(session, campaign, law) for law in (1, 2)}

    assert sum(lead > 0 for lead in leads[1]) > sum(lead > 0 for lead in leads[2])
    assert all(old >= new for old, new in zip(leads[1], leads[2], strict=True)), "of the same questions fewer"


def _leads(session: Session, campaign: Campaign, law: int) -> list[int]:
    campaign.confirm_law = law
    session.flush()
    locked = service.lock_campaign(session, campaign.id, by=make_user(session))
    return [locked.lead(question.id) for question in questions_of(session, campaign)]


def test_the_share_of_yes_is_one_half_however_slow_somebody_is(session: Session) -> None:
    """Two people who see all rightly, one of whom answers three pages while the other answers one."""
    campaign = of_two(session, examples=600)
    truth = random.Random(5)
    shows = {question.example_id: truth.randrange(2) for question in questions_of(session, campaign)}
    fast, slow = make_user(session), make_user(session)
    asked: dict[int, list[tuple[bool, bool]]] = {0: [], 1: []}  # of each: whether it returned, whether yes
    met: set[int] = set()
    turn = 0
    while turn < 400:
        turn += 1
        who = 1 if turn % 4 == 0 else 0
        by = slow if who else fast
        page = annotators.lease(session, campaign, count=12, one_class=True, by=by, now=NOW)
        given = []
        for item in page:
            is_yes = shows[item.example_id] == item.candidate_class
            asked[who].append((item.id in met, is_yes))
            met.add(item.id)
            given.append(service.SubmittedAnswer(item.id, YES if is_yes else NO, 900, uuid4()))
        annotators.submit(session, campaign, given, by=by, now=NOW)
        if len(asked[0]) + len(asked[1]) >= 900 and not page:
            break

    answers = asked[0] + asked[1]
    returned = [is_yes for is_returning, is_yes in answers if is_returning]
    assert len(answers) - len(returned) == 600
    assert abs(len(returned) - 600 * 4 / 9) < 4 * 150**0.5
    # Whether a question returned says nothing of what is right: whoever could tell would know no more.
    for said in (returned, [is_yes for _, is_yes in asked[1]], [is_yes for _, is_yes in asked[1][-150:]]):
        assert abs(sum(said) / len(said) - 1 / 2) < 4 * (1 / 4 / len(said)) ** 0.5
    # While first questions come, about every third is one that returns, and at most as many as chance has it.
    firsts_end = max(place for place, (is_returning, _) in enumerate(asked[1]) if not is_returning)
    behind = [
        is_returning
        for (before, _), (is_returning, _) in zip(asked[1], asked[1][1 : firsts_end + 1], strict=False)
        if not before
    ]
    assert 0.3 < sum(behind) / len(behind) < 0.75


def test_nobody_is_told_what_is_confirmed(session: Session, campaign: Campaign, annotator: User) -> None:
    confirmed, others = halves(session, campaign)
    say(session, campaign, confirmed[1], "n")
    told = [service.standing(session, campaign, by=annotator)]
    # One that is confirmed, one that is not, one whose confirmation this is, and another first one.
    for question in (confirmed[0], others[0], confirmed[1], others[1]):
        answer(session, campaign, question.id, "yes", by=annotator)
        told.append(service.standing(session, campaign, by=annotator))

    assert [before.waiting - after.waiting for before, after in pairwise(told)] == [1, 1, 1, 1]
