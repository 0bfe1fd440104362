"""Pictures that cannot be used: one word takes none away, two set it aside, an admin has the last."""

from collections.abc import Callable

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import Purpose, Question
from app.campaigns.models import Campaign
from app.fast.answering import FAST
from app.journal import service as journal
from app.journal.models import Action
from app.labels import service as labelling
from app.quality import service as quality
from clarinet.files.label_table import LabelRow
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects


@pytest.fixture(autouse=True, params=[FAST, service.PLAIN], ids=["fast", "plain"])
def _execution(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here holds for both executions."""
    monkeypatch.setattr(annotators, "execution", request.param)


def about(session: Session, campaign: Campaign, example_id: int) -> list[tuple[bool, bool]]:
    """Of each question about a picture, by round: whether it waits, and whether it is set aside."""
    query = select(Question.is_waiting, Question.is_set_aside).where(
        Question.campaign_id == campaign.id, Question.example_id == example_id, Question.round >= 0
    )
    return [(waits, is_aside) for waits, is_aside in session.execute(query.order_by(Question.round))]


def labelled(session: Session, campaign: Campaign) -> dict[int, list[LabelRow]]:
    """Labels by picture."""
    found: dict[int, list[LabelRow]] = {}
    for row in labelling.labels(session, campaign):
        found.setdefault(row.example_id, []).append(row)
    return found


def twice(session: Session, make: Callable[..., Campaign] = make_campaign) -> tuple[Campaign, int, list[int]]:
    """A campaign of two rounds, one of its pictures, and the questions about that, by round."""
    campaign = make(session, rounds=2, examples=6)
    example_id = questions_of(session, campaign)[0].example_id
    rows = [item for item in questions_of(session, campaign) if item.example_id == example_id]
    return campaign, example_id, [row.id for row in sorted(rows, key=lambda row: row.round)]


def test_one_persons_word_takes_no_picture_away(session: Session) -> None:
    campaign, example_id, (first, second) = twice(session)

    one = answer(session, campaign, first, "unusable")
    answer(session, campaign, second, "unusable", by=one)

    assert about(session, campaign, example_id) == [(True, False), (True, False)]
    assert_sums(session, campaign)


def test_two_peoples_word_sets_it_aside_with_all_its_questions(session: Session) -> None:
    campaign, example_id, (first, second) = twice(session)
    answer(session, campaign, first, "unusable")
    other = next(item for item in questions_of(session, campaign) if item.example_id != example_id)
    answer(session, campaign, other.id, "no")

    second_person = answer(session, campaign, second, "unusable")

    assert about(session, campaign, example_id) == [(False, True), (False, True)]
    assert_sums(session, campaign)
    held = annotators.lease(session, campaign, count=50, by=second_person, now=NOW)
    assert held
    assert not {first, second} & {item.id for item in held}
    assert service.progress(session, campaign, now=NOW).set_aside == 1


def test_what_was_said_of_it_makes_no_label_until_it_is_kept(session: Session, admin: User) -> None:
    campaign, example_id, (first, second) = twice(session)
    answer(session, campaign, first, "no")
    answer(session, campaign, second, "unusable")
    assert example_id in labelled(session, campaign)

    answer(session, campaign, second, "unusable")

    assert example_id not in labelled(session, campaign)
    derived = labelling.derive(session, campaign.id)
    assert (derived.answered.sum(), derived.set_aside_count) == (0, 1)
    quality.review_picture(session, campaign, example_id, kept=True, by=admin, now=NOW)
    assert example_id in labelled(session, campaign)
    assert about(session, campaign, example_id) == [(False, False), (True, False)]
    assert_sums(session, campaign)


def test_the_journal_tells_what_a_rule_and_an_admin_did_to_a_picture(session: Session, admin: User) -> None:
    campaign, example_id, (first, second) = twice(session)
    answer(session, campaign, first, "unusable")
    person = answer(session, campaign, second, "unusable")
    answer(session, campaign, first, "unusable", by=person)  # it is aside by now
    annotators.undo(session, campaign, by=person, now=NOW)
    annotators.undo(session, campaign, by=person, now=NOW)
    quality.review_picture(session, campaign, example_id, kept=True, by=admin, now=NOW)

    lines = journal.entries(session, by=admin, campaign_id=campaign.id, limit=3)[::-1]
    assert [(line.action, line.by_name, line.details["picture"]) for line in lines] == [
        (Action.PICTURE_SET_ASIDE, None, example_id),
        (Action.PICTURE_BROUGHT_BACK, None, example_id),
        (Action.PICTURE_REVIEWED, admin.name, example_id),
    ]


def test_an_undo_asks_on(session: Session) -> None:
    campaign, example_id, (first, second) = twice(session)
    answer(session, campaign, first, "unusable")
    person = answer(session, campaign, second, "unusable")

    [(question, value)] = annotators.undo(session, campaign, by=person, now=NOW)

    assert (question.id, value) == (second, "unusable")
    assert about(session, campaign, example_id) == [(True, False), (True, False)]
    assert_sums(session, campaign)
    answer(session, campaign, second, "no", by=person)
    assert_sums(session, campaign)


def test_who_holds_a_question_of_it_may_answer_and_it_stays_aside(session: Session) -> None:
    campaign, example_id, (first, _) = twice(session)
    answer(session, campaign, first, "unusable")
    answer(session, campaign, first, "unusable")

    late = answer(session, campaign, first, "yes")

    assert about(session, campaign, example_id) == [(False, True), (False, True)]
    annotators.undo(session, campaign, by=late, now=NOW)
    assert about(session, campaign, example_id) == [(False, True), (False, True)]
    assert_sums(session, campaign)


def test_the_admins_word_stands_above_peoples(session: Session, admin: User) -> None:
    campaign, example_id, (first, second) = twice(session)
    people = [answer(session, campaign, first, "unusable") for _ in range(2)]
    quality.review_picture(session, campaign, example_id, kept=True, by=admin, now=NOW)

    answer(session, campaign, second, "unusable", by=people[0])
    answer(session, campaign, second, "unusable", by=people[1])
    assert about(session, campaign, example_id)[1] == (True, False)

    quality.review_picture(session, campaign, example_id, kept=False, by=admin, now=NOW)
    annotators.undo(session, campaign, count=2, by=people[1], now=NOW)
    assert about(session, campaign, example_id) == [(False, True), (False, True)]
    assert_sums(session, campaign)


def test_a_hasty_word_says_nothing(session: Session) -> None:
    campaign, example_id, (first, _) = twice(session)
    answer(session, campaign, first, "unusable")
    campaign.least_card_ms = 200
    session.flush()

    answer(session, campaign, first, "unusable", response_ms=10)

    assert about(session, campaign, example_id)[0] == (True, False)


def test_a_word_about_a_known_picture_counts_and_is_neither_right_nor_wrong(
    session: Session, admin: User
) -> None:
    campaign, example_id, (first, _) = twice(session)
    service.mark_known(session, campaign, [service.KnownPicture(example_id, 0)], by=admin)
    gold = session.scalars(
        select(Question.id).where(
            Question.campaign_id == campaign.id,
            Question.example_id == example_id,
            Question.purpose == Purpose.GOLD,
        )
    ).all()
    person = answer(session, campaign, gold[0], "unusable")
    answer(session, campaign, first, "unusable")

    assert about(session, campaign, example_id) == [(False, True), (False, True)]
    [shown] = [item for item in quality.people(session, campaign) if item.user_id == person.id]
    assert (shown.gold_right, shown.gold_wrong) == (0, 0)
    assert service.mark_known(session, campaign, [service.KnownPicture(example_id, 1)], by=admin) == 0


def test_an_admin_sees_who_said_so(session: Session, admin: User) -> None:
    campaign, example_id, (first, second) = twice(session)
    names = [answer(session, campaign, id_, "unusable").name for id_ in (first, second)]

    count, [picture] = quality.pictures_to_review(session, campaign, limit=5)

    assert (count, picture.example_id, list(picture.said_by)) == (1, example_id, names)
    assert (picture.set_aside, picture.kept) == (True, None)
    made = quality.review_picture(session, campaign, example_id, kept=False, by=admin, now=NOW)
    assert (made.set_aside, made.kept, made.reviewed_by) == (True, False, admin.name)
    assert quality.pictures_to_review(session, campaign, limit=5) == (0, [])
    assert quality.reviewed_pictures(session, campaign, limit=5) == (1, [made])
    assert quality.unusable_pictures(session, campaign, by=admin, limit=5) == [made]


def test_what_is_set_aside_is_left_to_nobody(session: Session) -> None:
    campaign = make_campaign(session, examples=12, confirm_yes=True)
    campaign.price = 1.0
    aside, *others = questions_of(session, campaign)
    for _ in range(2):
        answer(session, campaign, aside.id, "unusable")
    person = make_user(session)
    for question in others:
        answer(session, campaign, question.id, "no", by=person)

    far = service.progress(session, campaign, now=NOW)

    assert (far.waiting, far.fresh, far.set_aside) == (0, 0, 1)
    assert far.cost is not None
    assert far.cost.to_go == 0
    for by in (person, make_user(session)):
        assert service.standing(session, campaign, by=by).waiting == 0


def test_a_known_picture_that_was_set_aside_is_not_held_again(session: Session, admin: User) -> None:
    campaign = make_campaign(session, examples=40)
    campaign.gold_share = 0.5  # one behind each other question
    # One whose drawn question comes later: nobody is asked about a picture in both ways.
    example_id = max(questions_of(session, campaign), key=lambda question: question.rank).example_id
    service.mark_known(session, campaign, [service.KnownPicture(example_id, 0)], by=admin)
    me = make_user(session)
    gold = select(Question.id).where(Question.campaign_id == campaign.id, Question.purpose == Purpose.GOLD)
    known = set(session.scalars(gold))
    held = {item.id for item in annotators.lease(session, campaign, count=8, by=me, now=NOW)}
    assert held & known
    for _ in range(2):
        answer(session, campaign, min(known), "unusable")
    annotators.release(session, campaign, by=me, now=NOW)

    held = {item.example_id for item in annotators.lease(session, campaign, count=8, by=me, now=NOW)}

    assert example_id not in held
