"""Progress and the audit."""

import random
from dataclasses import asdict
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import case, func, select, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import locking, service
from app.annotation.models import Answer, AnswerValue, Lease, Purpose, Question, Tally
from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign, CampaignState, PricePer
from app.datasets.models import Dataset
from app.errors import Conflict
from app.quality import service as quality
from tests import annotators
from tests.factories import NOW, answer, asked_again, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects


class TestProgress:
    def test_counts_answers_by_class_and_by_person(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=6, confirm_yes=True)
        rows = questions_of(session, campaign)
        robot = make_user(session)
        robot.is_simulated = True
        answer(session, campaign, rows[0].id, "yes", by=annotator, response_ms=500)
        answer(session, campaign, rows[1].id, "no", by=annotator, response_ms=1500)
        answer(session, campaign, rows[2].id, "unsure", by=annotator, response_ms=None)
        answer(session, campaign, rows[0].id, "yes", by=robot)

        found = service.progress(session, campaign, now=NOW)

        assert (found.questions, found.finished, found.waiting) == (6, 2, 4)
        assert (found.counts.yes, found.counts.no, found.counts.unsure) == (2, 1, 1)
        assert found.counts.yes_rate == 0.5  # the confirmation does not count
        assert found.expected_yes_rate == pytest.approx(1 / 3)
        assert found.simulated_answers == 1
        mine, theirs = found.annotators
        assert (mine.user_id, mine.counts.total, mine.mean_ms) == (annotator.id, 3, 1000)
        assert (theirs.is_simulated, theirs.counts.yes_rate) == (True, None)
        first = found.classes[rows[0].candidate_class]
        assert first.counts.yes == 2
        assert [c.drawn for c in found.classes] == [c.question_count for c in campaign.classes]
        assert service.finished_questions(session, [campaign.id]) == {campaign.id: 2}

    def test_agreement_is_about_first_yeses_alone(self, session: Session) -> None:
        campaign = make_campaign(session, examples=6, confirm_yes=True)
        rows = questions_of(session, campaign)
        for question, second in ((rows[0], "yes"), (rows[1], "yes"), (rows[2], "no")):
            answer(session, campaign, question.id, "yes")
            answer(session, campaign, question.id, second)
        answer(session, campaign, rows[2].id, "no")  # a third one, because two differed
        answer(session, campaign, rows[3].id, "no")
        asked_again(session, campaign, count=1, by=make_user(session, role="admin"))
        answer(session, campaign, rows[3].id, "no")

        assert service.progress(session, campaign, now=NOW).agreement == pytest.approx(2 / 3)

    def test_agreement_follows_an_undone_and_a_changed_answer(self, session: Session) -> None:
        campaign = make_campaign(session, examples=6, confirm_yes=True)
        confirmed, denied = questions_of(session, campaign)[:2]
        undoing, changing = make_user(session), make_user(session)
        answer(session, campaign, confirmed.id, "yes", by=undoing)
        answer(session, campaign, confirmed.id, "yes")
        answer(session, campaign, denied.id, "yes", by=changing)
        answer(session, campaign, denied.id, "no")
        assert service.progress(session, campaign, now=NOW).agreement == 0.5

        annotators.undo(session, campaign, by=undoing, now=NOW)
        assert service.progress(session, campaign, now=NOW).agreement == 0

        locked = locking.lock_campaign(session, campaign.id, by=changing)
        service.change_answer(session, locked, denied.id, AnswerValue.NO, key=uuid4(), by=changing, now=NOW)
        found = service.progress(session, campaign, now=NOW)
        assert found.agreement is None
        assert undoing.id not in {person.user_id for person in found.annotators}

    def test_nothing_waits_once_a_campaign_is_closed(self, session: Session) -> None:
        campaign = make_campaign(session, state="closed")
        campaign.price = 0.5

        found = service.progress(session, campaign, now=NOW)

        assert (found.questions, found.finished, found.waiting, found.fresh) == (6, 0, 0, 0)
        assert found.seconds_left is None
        assert found.cost is not None
        assert found.cost.to_go == 0

    def test_of_a_fresh_campaign_is_nothing(self, session: Session) -> None:
        found = service.progress(session, make_campaign(session), now=NOW)

        assert (found.finished, found.share, found.counts.total) == (0, 0, 0)
        assert found.counts.yes_rate is None
        assert found.answers_per_minute is None
        assert found.seconds_left is None
        assert found.annotators == ()

    def test_pace_and_time_left_follow_the_latest_answers(self, session: Session) -> None:
        campaign = make_campaign(session, examples=10)
        for second, question in enumerate(questions_of(session, campaign)[:4]):
            answer(session, campaign, question.id, "no", now=NOW + timedelta(seconds=10 * second))

        now = NOW + timedelta(seconds=40)
        found = service.progress(session, campaign, now=now)

        assert found.answers_per_minute == pytest.approx(6)
        assert found.seconds_left == pytest.approx(60)
        assert service.progress(session, campaign, now=now + timedelta(hours=1)).answers_per_minute is None

    def test_sums_equal_the_answers_they_stand_for_after_any_history(self, session: Session) -> None:
        campaign = make_campaign(session, examples=30, confirm_yes=True)
        chance = random.Random(1)
        people = [make_user(session) for _ in range(4)]
        for _ in range(150):
            person = chance.choice(people)
            if chance.random() < 0.2:
                try:
                    annotators.undo(session, campaign, by=person, now=NOW)
                except Conflict:
                    continue
            leased = annotators.lease(session, campaign, count=3, by=person, now=NOW)
            given = [
                service.SubmittedAnswer(
                    q.id, chance.choice(list(AnswerValue)), chance.choice([None, 700]), uuid4()
                )
                for q in leased
            ]
            annotators.submit(session, campaign, given, by=person, now=NOW)

        assert_sums(session, campaign)
        assert session.scalar(
            select(func.count()).select_from(Answer).where(Answer.superseded_at.is_not(None))
        )


def assert_sums(session: Session, campaign: Campaign) -> None:
    """The tallies equal what the answers themselves add up to."""
    expected = {
        (user_id, class_): tuple(int(count or 0) for count in counts)
        for user_id, class_, *counts in session.execute(
            select(
                Answer.user_id,
                Question.candidate_class,
                *(func.sum(case((Answer.value == value, 1), else_=0)) for value in AnswerValue),
                func.count(Answer.response_ms),
                func.sum(Answer.response_ms),
            )
            .join(Question, Question.id == Answer.question_id)
            .where(Question.campaign_id == campaign.id, Answer.superseded_at.is_(None))
            .group_by(Answer.user_id, Question.candidate_class)
        )
    }
    rows = session.scalars(select(Tally).where(Tally.campaign_id == campaign.id)).all()
    kept = {
        (row.user_id, row.candidate_class): (
            row.yes,
            row.no,
            row.unsure,
            row.unusable,
            row.timed,
            row.active_ms,
        )
        for row in rows
    }
    assert {key: sums for key, sums in kept.items() if any(sums)} == expected
    finished = session.scalar(
        select(func.count())
        .select_from(Question)
        .where(Question.campaign_id == campaign.id, Question.is_waiting.is_(False))
    )
    assert sum(row.finished for row in rows) == finished
    seconds = answers_to_a_first_yes(session, campaign)
    assert sum(row.confirmed for row in rows) == seconds.count("yes")
    assert sum(row.denied for row in rows) == seconds.count("no")


def answers_to_a_first_yes(session: Session, campaign: Campaign) -> list[str]:
    """What whoever has the second slot said, where whoever has the first one said yes."""
    said = {
        (question_id, slot): value
        for question_id, slot, value in session.execute(
            select(Answer.question_id, Lease.slot, Answer.value)
            .join(Question, Question.id == Answer.question_id)
            .join(Lease, (Lease.question_id == Question.id) & (Lease.user_id == Answer.user_id))
            .where(
                Question.campaign_id == campaign.id,
                Question.purpose != Purpose.GOLD,
                Answer.superseded_at.is_(None),
                Answer.is_hasty.is_(False),
            )
        )
    }
    firsts = [question_id for (question_id, slot), value in said.items() if slot == 0 and value == "yes"]
    return [said[id_, 1] for id_ in firsts if (id_, 1) in said]


class TestCost:
    def answered(self, session: Session, **price: object) -> Campaign:
        """Six questions: two answered by a person, in 1 s and 3 s, one confirmed by a program."""
        campaign = make_campaign(session, examples=6, confirm_yes=True)
        person, robot = make_user(session), make_user(session)
        robot.is_simulated = True
        rows = questions_of(session, campaign)
        answer(session, campaign, rows[0].id, "yes", by=person, response_ms=1000)
        answer(session, campaign, rows[1].id, "no", by=person, response_ms=3000)
        answer(session, campaign, rows[0].id, "yes", by=robot, response_ms=10)
        for name, value in price.items():
            setattr(campaign, name, value)
        return campaign

    def test_is_not_shown_without_a_price(self, session: Session) -> None:
        assert service.progress(session, self.answered(session), now=NOW).cost is None

    def test_by_the_answer(self, session: Session) -> None:
        campaign = self.answered(session, price=0.5)

        found = service.progress(session, campaign, now=NOW)

        # Four questions wait, and a third of them will be a yes that is asked again.
        assert found.cost is not None
        assert (found.cost.so_far, found.cost.to_go) == pytest.approx((1.0, 0.5 * (4 + 4 / 3)))

    def test_by_the_hour(self, session: Session) -> None:
        campaign = self.answered(session, price=36.0, price_per=PricePer.HOUR)

        found = service.progress(session, campaign, now=NOW)

        # 36 an hour is 0.01 a second; four seconds so far, two for each answer to come.
        assert found.cost is not None
        assert (found.cost.so_far, found.cost.to_go) == pytest.approx((0.04, 0.02 * (4 + 4 / 3)))

    def test_by_the_hour_before_any_answer_is_unknown(self, session: Session) -> None:
        campaign = make_campaign(session)
        campaign.price, campaign.price_per = 36.0, PricePer.HOUR

        found = service.progress(session, campaign, now=NOW)

        assert found.cost is not None
        assert (found.cost.so_far, found.cost.to_go) == (0, None)

    def test_agreement_is_how_often_a_yes_is_confirmed(self, session: Session) -> None:
        campaign = make_campaign(session, examples=6, confirm_yes=True)
        rows = questions_of(session, campaign)
        for question, values in zip(rows, ["yy", "yy", "yn", "n"], strict=False):
            for value in values:
                answer(session, campaign, question.id, {"y": "yes", "n": "no"}[value])

        assert service.progress(session, campaign, now=NOW).agreement == pytest.approx(2 / 3)
        campaign.overlap = 2
        assert service.progress(session, campaign, now=NOW).agreement is None


class TestAudit:
    def closed(self, session: Session, **details: int) -> Campaign:
        """A closed campaign of some questions."""
        return make_campaign(session, state="closed", **({"examples": 60} | details))  # type: ignore[arg-type]

    @pytest.mark.parametrize("rounds", [1, 3])
    def test_of_an_honest_campaign_passes(self, session: Session, rounds: int) -> None:
        campaign = self.closed(session, rounds=rounds)

        found = quality.audit(session, campaign, now=NOW, recompute=True)

        assert found.passed
        assert (found.draws_match, found.commitment_matches) == (True, True)
        assert found.seed == campaign.seed
        assert found.alarms == ()
        assert sum(found.drawn_per_class or ()) == 60 * rounds
        assert found.uniformity is not None
        assert found.uniformity.degrees == 2

    def test_still_passes_after_questions_went_to_the_end_of_the_queue(self, session: Session) -> None:
        campaign = make_campaign(session, examples=20, confirm_yes=True)
        for question in questions_of(session, campaign):
            answer(session, campaign, question.id, "unsure")
            answer(session, campaign, question.id, "yes")

        assert quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True).draws_match

    def test_before_closing_the_seed_stays_secret(self, session: Session) -> None:
        campaign = make_campaign(session, examples=60)

        found = quality.audit(session, campaign, now=NOW, recompute=True)

        assert campaign.seed not in str(asdict(found))
        assert (found.draws_match, found.commitment_matches) == (None, None)
        assert found.commitment == campaign.commitment
        assert found.passed
        assert quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True).draws_match

    def test_one_changed_class_is_found(self, session: Session) -> None:
        campaign = self.closed(session)
        question = questions_of(session, campaign)[17]
        question.candidate_class = (question.candidate_class + 1) % 3
        session.flush()

        found = quality.audit(session, campaign, now=NOW, recompute=True)

        assert found.draws_match is False
        assert not found.passed
        assert found.alarms

    def test_a_missing_question_is_found(self, session: Session) -> None:
        campaign = self.closed(session)
        session.delete(questions_of(session, campaign)[3])
        session.flush()

        assert quality.audit(session, campaign, now=NOW, recompute=True).draws_match is False

    def test_two_questions_that_changed_places_are_found(self, session: Session) -> None:
        campaign = self.closed(session)
        one, other = questions_of(session, campaign)[:2]
        one.rank, other.rank = other.rank, one.rank
        session.flush()

        assert quality.audit(session, campaign, now=NOW, recompute=True).draws_match is False

    def test_another_seed_does_not_fit_the_commitment(self, session: Session) -> None:
        campaign = self.closed(session)
        campaign.seed = "11" * 32
        session.flush()

        found = quality.audit(session, campaign, now=NOW, recompute=True)

        assert (found.commitment_matches, found.draws_match, found.passed) == (False, False, False)

    def test_a_changed_dataset_is_found(self, session: Session) -> None:
        campaign = self.closed(session)
        session.get_one(Dataset, campaign.dataset_id).digest = "e" * 64

        found = quality.audit(session, campaign, now=NOW, recompute=True)

        assert not found.dataset_unchanged
        assert not found.passed

    def test_uneven_classes_raise_an_alarm_even_without_the_seed(self, session: Session) -> None:
        campaign = make_campaign(session, examples=60)
        session.execute(update(Question).where(Question.campaign_id == campaign.id).values(candidate_class=1))

        found = quality.audit(session, campaign, now=NOW, recompute=True)

        assert found.uniformity is not None
        assert found.uniformity.p_value < 1e-6
        assert not found.passed

    def test_cannot_tell_that_concentrates_on_a_class_raises_an_alarm(self, session: Session) -> None:
        campaign = make_campaign(session, examples=60)
        person = make_user(session)
        for question in questions_of(session, campaign):
            answer(
                session, campaign, question.id, "unsure" if question.candidate_class == 2 else "no", by=person
            )

        found = quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True)

        assert found.unsure_by_class.p_value < 1e-6
        (class_alarm,) = (alarm for alarm in found.alarms if "Can't tell" in alarm)
        assert campaign.class_names[2] in class_alarm
        assert found.passed  # the draws are what was promised

    def test_a_draft_has_none(self, session: Session) -> None:
        draft = make_campaign(session, state="draft")

        with pytest.raises(CampaignNotFound):
            quality.started_campaign(session, draft.id, by=None)

    @pytest.mark.parametrize("state", ["open", "paused", "closed"])
    def test_whatever_was_opened_has_one(self, session: Session, state: str) -> None:
        campaign = make_campaign(session, state=state)

        assert quality.started_campaign(session, campaign.id, by=None).state is CampaignState(state)
