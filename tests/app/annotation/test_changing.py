"""One's own last answers and figures: changed while the campaign is open, and telling of no known picture."""

from uuid import uuid4

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.errors import AnswerNotFound, CampaignNotOpen, KeyReused, PersonPaused
from app.annotation.models import Answer, AnswerValue, Participant, Purpose, Question
from app.annotation.own import LAST
from app.campaigns.models import Campaign, CampaignState
from app.fast.answering import FAST
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects


def change(session: Session, campaign: Campaign, question_id: int, value: str, by: User) -> service.Status:
    """Change an answer under a new key."""
    locked = service.lock_campaign(session, campaign.id, by=by)
    return service.change_answer(
        session, locked, question_id, AnswerValue(value), key=uuid4(), by=by, now=NOW
    )


def row(session: Session, id_: int) -> tuple[bool, int]:
    """Whether a question waits, and how many answers it needs."""
    query = select(Question.is_waiting, Question.slots).where(Question.id == id_)
    waits, slots = session.execute(query).one()
    return waits, slots


@pytest.mark.parametrize("before", list(AnswerValue))
@pytest.mark.parametrize("after", list(AnswerValue))
def test_any_answer_becomes_any_other_as_if_it_had_been_given(
    session: Session, before: AnswerValue, after: AnswerValue
) -> None:
    campaign = make_campaign(session, confirm_yes=True)
    changed, given = questions_of(session, campaign)[:2]
    person = answer(session, campaign, changed.id, before)
    answer(session, campaign, given.id, after, by=person)

    change(session, campaign, changed.id, after, person)

    assert row(session, changed.id) == row(session, given.id)
    assert_sums(session, campaign)
    shown = [(item.question_id, item.value) for item in service.last_answers(session, campaign, by=person)]
    assert shown == [(given.id, after), (changed.id, after)], "a change moves nothing"
    assert session.scalar(select(func.count()).select_from(Answer)) == 3, "nothing is overwritten"


def test_what_others_finished_is_changed_too_and_asked_again_where_they_disagree_now(
    session: Session,
) -> None:
    campaign = make_campaign(session, confirm_yes=True)
    question = questions_of(session, campaign)[0]
    person = answer(session, campaign, question.id, "yes")
    answer(session, campaign, question.id, "yes")
    assert row(session, question.id) == (False, 2)

    change(session, campaign, question.id, "no", person)

    assert row(session, question.id) == (True, 3)
    assert_sums(session, campaign)
    change(session, campaign, question.id, "yes", person)
    assert row(session, question.id) == (False, 2)
    assert_sums(session, campaign)


def test_one_that_gave_its_slot_away_is_changed_although_others_have_all(session: Session) -> None:
    campaign = make_campaign(session)
    question = questions_of(session, campaign)[0]
    person = answer(session, campaign, question.id, "unsure")
    answer(session, campaign, question.id, "no")

    change(session, campaign, question.id, "yes", person)

    assert row(session, question.id)[0], "one says yes and one no"
    assert_sums(session, campaign)


@pytest.mark.parametrize("execution", [FAST, service.PLAIN], ids=["fast", "plain"])
def test_a_slot_beyond_the_last_one_stops_nobody(
    session: Session, monkeypatch: pytest.MonkeyPatch, execution: service.Execution
) -> None:
    monkeypatch.setattr(annotators, "execution", execution)
    campaign = make_campaign(session, confirm_yes=True)
    question = questions_of(session, campaign)[0]
    person, doubting = answer(session, campaign, question.id, "unsure"), make_user(session)
    answer(session, campaign, question.id, "unsure", by=doubting)
    for value in ("yes", "no", "yes", "no"):
        answer(session, campaign, question.id, value)
    change(session, campaign, question.id, "yes", person)

    annotators.undo(session, campaign, by=person, now=NOW)
    annotators.release(session, campaign, by=person, now=NOW)

    assert not row(session, question.id)[0], "others gave all the answers that it can need"
    leased = annotators.lease(session, campaign, count=6, by=make_user(session), now=NOW)
    assert len(leased) == 5
    before = row(session, question.id)
    annotators.undo(session, campaign, by=doubting, now=NOW)
    assert row(session, question.id) == before
    assert_sums(session, campaign)


def test_a_second_word_by_a_change_sets_the_picture_aside(session: Session) -> None:
    campaign = make_campaign(session)
    question = questions_of(session, campaign)[0]
    answer(session, campaign, question.id, "unusable")
    person = answer(session, campaign, question.id, "no")

    change(session, campaign, question.id, "unusable", person)
    assert service.progress(session, campaign, now=NOW).set_aside == 1
    change(session, campaign, question.id, "no", person)

    assert service.progress(session, campaign, now=NOW).set_aside == 0
    assert_sums(session, campaign)


def test_the_same_key_twice_is_one_change(session: Session) -> None:
    campaign = make_campaign(session)
    first, second = questions_of(session, campaign)[:2]
    person = answer(session, campaign, first.id, "no")
    locked = service.lock_campaign(session, campaign.id, by=person)
    key = uuid4()

    def send(value: AnswerValue) -> service.Status:
        return service.change_answer(session, locked, first.id, value, key=key, by=person, now=NOW)

    assert send(AnswerValue.YES) is service.Status.STORED
    assert send(AnswerValue.YES) is service.Status.REPEATED
    with pytest.raises(KeyReused):
        send(AnswerValue.NO)
    with pytest.raises(AnswerNotFound):
        change(session, campaign, second.id, "no", person)


def test_a_known_picture_is_changed_like_any_other(session: Session, admin: User) -> None:
    campaign = make_campaign(session)
    example_id = questions_of(session, campaign)[0].example_id
    service.mark_known(session, campaign, [service.KnownPicture(example_id, 0)], by=admin)
    gold = session.scalars(
        select(Question.id).where(
            Question.campaign_id == campaign.id, Question.purpose == Purpose.GOLD, Question.is_match.is_(True)
        )
    ).one()
    person = answer(session, campaign, gold, "no")

    change(session, campaign, gold, "yes", person)

    part = session.get_one(Participant, (campaign.id, person.id), populate_existing=True)
    assert (part.gold_answers, part.gold_right, part.gold_wrong) == (1, 1, 0)
    assert [item.value for item in service.last_answers(session, campaign, by=person)] == ["yes"]


@pytest.mark.parametrize("state", [CampaignState.PAUSED, CampaignState.CLOSED])
def test_only_while_it_is_open_and_by_who_is_not_paused(
    session: Session, admin: User, state: CampaignState
) -> None:
    campaign = make_campaign(session)
    question = questions_of(session, campaign)[0]
    person = answer(session, campaign, question.id, "no")

    campaign.state = state
    session.flush()
    with pytest.raises(CampaignNotOpen):
        change(session, campaign, question.id, "yes", person)
    campaign.state = CampaignState.OPEN
    session.flush()
    service.pause_person(session, campaign, person.id, by=admin, now=NOW)
    with pytest.raises(PersonPaused):
        change(session, campaign, question.id, "yes", person)


def test_a_hasty_answer_stays_one_that_says_nothing(session: Session) -> None:
    campaign = make_campaign(session)
    campaign.least_card_ms = 200
    session.flush()
    question = questions_of(session, campaign)[0]
    person = answer(session, campaign, question.id, "no", response_ms=10)

    change(session, campaign, question.id, "yes", person)

    assert row(session, question.id)[0]
    hasty = select(Answer.is_hasty).where(Answer.superseded_at.is_(None))
    assert session.scalars(hasty).all() == [True]


def test_only_the_last_ones_are_listed_and_changed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LAST == 200
    for name in ("own", "changing"):
        monkeypatch.setattr(f"app.annotation.{name}.LAST", 2)
    campaign = make_campaign(session)
    person = make_user(session)
    ids = [question.id for question in questions_of(session, campaign)[:3]]
    for id_ in ids:
        answer(session, campaign, id_, "no", by=person)

    assert [item.question_id for item in service.last_answers(session, campaign, by=person)] == ids[:0:-1]
    with pytest.raises(AnswerNotFound):
        change(session, campaign, ids[0], "yes", person)


class TestFigures:
    @pytest.fixture(autouse=True)
    def _small_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("app.annotation.own.STEP", 4)
        monkeypatch.setattr("app.annotation.own.LEAST_JUDGED", 2)

    def test_agreement_moves_by_steps_alone(self, session: Session) -> None:
        campaign = make_campaign(session, examples=9)
        me, she = make_user(session), make_user(session)
        ids = [question.id for question in questions_of(session, campaign)]
        for id_ in ids[:4]:
            answer(session, campaign, id_, "no", by=she)
        for id_, value in zip(ids[:3], ["no", "no", "yes"], strict=True):
            answer(session, campaign, id_, value, by=me)
        before = service.own_figures(session, campaign, by=me)
        assert (before.agreement, before.agreement_over, before.total) == (None, 0, 3)

        answer(session, campaign, ids[3], "yes", by=me)
        reached = service.own_figures(session, campaign, by=me)
        assert (reached.agreement, reached.agreement_over, reached.agreement_judged) == (0.5, 4, 4)

        annotators.undo(session, campaign, by=me, now=NOW)
        change(session, campaign, ids[0], "yes", me)
        change(session, campaign, ids[0], "no", she)
        answer(session, campaign, ids[2], "no")
        after = service.own_figures(session, campaign, by=me)

        assert (after.agreement, after.agreement_over) == (0.5, 4)
        assert after.counts == {"yes": 2, "no": 1, "unsure": 0, "unusable": 0}

    def test_agreement_is_told_of_what_others_answered_and_not_where_that_is_little(
        self, session: Session
    ) -> None:
        """Two people answered one of mine: two answers of others, and yet one question."""
        campaign = make_campaign(session, examples=8)
        me = make_user(session)
        ids = [question.id for question in questions_of(session, campaign)]

        def said() -> tuple[float | None, int, int]:
            figures = service.own_figures(session, campaign, by=me)
            return figures.agreement, figures.agreement_over, figures.agreement_judged

        answer(session, campaign, ids[0], "no")
        answer(session, campaign, ids[0], "no")
        for id_ in ids[:4]:
            answer(session, campaign, id_, "no", by=me)
        assert said() == (None, 4, 0)
        for id_, value in zip(ids[4:7], ["no", "yes", "no"], strict=True):
            answer(session, campaign, id_, value)
        for id_ in ids[4:]:
            answer(session, campaign, id_, "no", by=me)
        assert said() == (0.8, 8, 4)

    def test_known_pictures_are_counted_and_agree_with_nobody(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session)
        example_id = questions_of(session, campaign)[0].example_id
        service.mark_known(session, campaign, [service.KnownPicture(example_id, 0)], by=admin)
        gold = session.scalars(
            select(Question.id).where(Question.campaign_id == campaign.id, Question.purpose == Purpose.GOLD)
        ).all()
        me = make_user(session)
        for id_ in gold:
            answer(session, campaign, id_, "no")
            answer(session, campaign, id_, "yes", by=me)
        drawn = [item for item in questions_of(session, campaign) if item.purpose is Purpose.LABELLING]
        for question in drawn[:2]:
            answer(session, campaign, question.id, "no", by=me)

        figures = service.own_figures(session, campaign, by=me)

        assert (figures.total, figures.agreement, figures.agreement_over) == (4, None, 4)


def test_what_others_said_is_told_after_closing_where_the_campaign_says_so(session: Session) -> None:
    campaign = make_campaign(session, confirm_yes=True)
    question = questions_of(session, campaign)[0]
    me = answer(session, campaign, question.id, "yes")
    answer(session, campaign, question.id, "no")

    def told() -> AnswerValue | None:
        return service.last_answers(session, campaign, by=me)[0].others

    campaign.tells_others = True
    assert told() is None
    campaign.state = CampaignState.CLOSED
    assert told() == "no"
    campaign.tells_others = False
    assert told() is None


class TestPractice:
    def test_shows_pictures_of_classes_once(self, session: Session) -> None:
        campaign = make_campaign(session)
        ids = [question.example_id for question in questions_of(session, campaign)[:3]]
        for item, example_id in zip(campaign.classes, ids, strict=True):
            item.example_ids = [example_id]
        session.flush()
        person = make_user(session)

        cards = service.practice_cards(session, campaign, by=person)

        assert sorted(card.example_id for card in cards) == sorted(ids)
        assert {card.is_match for card in cards} == {True, False}
        for card in cards:
            assert campaign.classes[card.shown_class].example_ids == [card.example_id]
        service.note_practised(session, campaign, by=person)
        service.note_practised(session, campaign, by=person)
        assert service.practice_cards(session, campaign, by=person) == []
        assert service.progress(session, campaign, now=NOW).annotators == ()

    def test_promises_none_without_pictures_or_after_answers(self, session: Session) -> None:
        campaign = make_campaign(session)
        question = questions_of(session, campaign)[0]
        assert service.practice_cards(session, campaign, by=make_user(session)) == []

        campaign.classes[0].example_ids = [question.example_id]
        session.flush()
        assert len(service.practice_cards(session, campaign, by=make_user(session))) == 1
        person = answer(session, campaign, question.id, "no")
        assert service.practice_cards(session, campaign, by=person) == []
        campaign.state = CampaignState.PAUSED
        assert service.practice_cards(session, campaign, by=make_user(session)) == []
