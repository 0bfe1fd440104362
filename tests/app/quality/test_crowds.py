"""What the default policy makes of crowds who see images wrongly: fixed seeds, figures as promised.

The figures of docs/results/quality.md: `python -m tests.app.quality.crowds`.
"""

import random
from uuid import uuid4

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import gold, service
from app.annotation.consensus import verdict, weighed
from app.annotation.errors import PersonPaused
from app.annotation.models import Answer, AnswerValue, Purpose, Question
from app.annotation.participants import is_too_often_wrong
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.labels import service as labelling
from app.quality.judging import question_answers
from clarinet.files.label_table import LabelKind, LabelRow
from tests import annotators
from tests.app.quality.crowds import (
    ALWAYS_NO,
    CONFUSION,
    HONEST,
    NUM_CLASSES,
    RANDOM,
    Crowd,
    Figures,
    weights_of_seen,
)
from tests.app.quality.test_judging import fitted_to_every_answer
from tests.factories import NOW, asked_again, make_campaign, make_user

CLASS_NAMES = [str(class_) for class_ in range(NUM_CLASSES)]


@pytest.fixture(autouse=True)
def _confusion() -> None:
    if not CONFUSION.exists():
        pytest.skip(f"no human_confusion.csv in CLARINET_DATA ({CONFUSION.parent})")


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.long
class TestTheDefaultPolicy:
    def test_keeps_labels_right_for_few_more_questions(self, seed: int) -> None:
        found = Figures.of(Crowd([HONEST] * 8, 100_000, seed))

        assert found.wrong_yes <= 0.015
        assert found.wrong_no <= 0.022
        assert found.extra <= 0.15
        assert found.unlabelled <= 0.03

    def test_asking_doubtful_ones_again_labels_more_of_them_and_no_worse(self, seed: int) -> None:
        crowd = Crowd([HONEST] * 8, 100_000, seed)
        before = Figures.of(crowd)

        crowd.ask_again()

        after = Figures.of(crowd)
        assert after.unlabelled < before.unlabelled / 2
        assert after.wrong_yes <= 0.015
        assert after.wrong_no <= 0.022
        assert after.extra <= before.extra + 0.025

    @pytest.mark.parametrize("bad", [RANDOM, ALWAYS_NO])
    def test_bad_people_are_found_out_and_what_they_said_is_asked_again(self, seed: int, bad: str) -> None:
        crowd = Crowd([*[HONEST] * 7, bad], 50_000, seed)
        majority, before = Figures.of(crowd, by_people=False), Figures.of(crowd)

        crowd.ask_again()

        after = Figures.of(crowd)
        assert before.wrong_no_weighed < 0.9 * majority.wrong_no
        assert after.wrong_no < 0.022
        assert after.wrong_yes < 0.015


def test_confirmation_is_worth_its_answers() -> None:
    alone = Figures.of(Crowd([HONEST] * 8, 50_000, 0, confirm_yes=False), by_people=False)

    assert 0.16 < alone.wrong_yes < 0.19  # what the matrix says: 17.7 % of the images are seen wrongly


class TestPausing:
    """Whoever sees through the matrix is left alone; whoever does not look is found."""

    def until_paused(self, right: NDArray[np.bool_], bound: float = 0.7) -> list[int | None]:
        """After how many known pictures each row of answers gets its person paused."""
        ends: list[int | None] = []
        for row in right:
            sums = np.cumsum(row)
            paused = (
                n
                for n in range(1, len(row) + 1)
                if not row[n - 1] and is_too_often_wrong(int(sums[n - 1]), n - int(sums[n - 1]), bound=bound)
            )
            ends.append(next(paused, None))
        return ends

    def test_of_honest_people_hardly_anybody_is_paused(self) -> None:
        chance = np.random.default_rng(0)
        seen = np.diff(weights_of_seen(), axis=1, prepend=0)
        truth = chance.integers(0, NUM_CLASSES, (1000, 200))
        is_match = chance.random(truth.shape) < 1 / 2
        others = (truth + chance.integers(1, NUM_CLASSES, truth.shape)) % NUM_CLASSES
        says_yes = chance.random(truth.shape) < seen[truth, np.where(is_match, truth, others)]

        paused = [end for end in self.until_paused(says_yes == is_match) if end is not None]

        assert len(paused) <= 10  # of 1000 people with 200 known pictures each

    @pytest.mark.parametrize("accuracy", [0.5, 0.3])
    def test_who_does_not_look_is_found(self, accuracy: float) -> None:
        right = np.random.default_rng(0).random((500, 200)) < accuracy

        ends = sorted(end or 10**6 for end in self.until_paused(right))

        assert ends[249] <= 50  # half of them within this many known pictures
        assert ends[-1] <= 200


class People:
    """Accounts that answer through the service as a crowd does."""

    def __init__(self, session: Session, campaign: Campaign, kinds: list[str], seed: int) -> None:
        self.session, self.campaign = session, campaign
        self.kinds = {make_user(session): kind for kind in kinds}
        self.seen = weights_of_seen()
        self.chance = np.random.default_rng(seed)
        rows = session.execute(
            select(Example.id, Example.true_class).where(Example.dataset_id == campaign.dataset_id)
        )
        self.truth = {row.id: row.true_class for row in rows}
        self.paused: set[User] = set()

    def work(self, batch: int = 25) -> None:
        """Until nobody gets anything."""
        is_busy = True
        while is_busy:
            turns = [self._turn(user, batch) for user in self.kinds if user not in self.paused]
            is_busy = any(turns)

    def _turn(self, user: User, batch: int) -> bool:
        try:
            leased = annotators.lease(self.session, self.campaign, count=batch, by=user, now=NOW)
        except PersonPaused:
            self.paused.add(user)
            annotators.release(self.session, self.campaign, by=user, now=NOW)
            return True  # what they held waits for others
        given = [
            service.SubmittedAnswer(question.id, self._says(user, question), None, uuid4())
            for question in leased
        ]
        if given:
            annotators.submit(self.session, self.campaign, given, by=user, now=NOW)
        return bool(given)

    def _says(self, user: User, question: service.LeasedQuestion) -> AnswerValue:
        chance = self.chance.random()
        if self.kinds[user] == RANDOM:
            return AnswerValue.YES if chance < 1 / 2 else AnswerValue.NO
        seen = int((chance >= self.seen[self.truth[question.example_id]]).sum())
        return AnswerValue.YES if seen == question.candidate_class else AnswerValue.NO


class TestThroughTheService:
    def test_labels_are_as_good_as_the_simulation_says(self, session: Session) -> None:
        count = 1_500
        campaign = make_campaign(
            session, examples=count, class_names=CLASS_NAMES, confirm_yes=True, consensus="dawid-skene"
        )
        people = People(session, campaign, [HONEST] * 6, seed=0)

        people.work()

        labels = list(labelling.labels(session, campaign))
        yes = [label for label in labels if label.kind is LabelKind.TRUE]
        no = [label for label in labels if label.kind is LabelKind.COMPLEMENTARY]
        wrong_yes = sum(people.truth[label.example_id] != label.class_ for label in yes)
        wrong_no = sum(people.truth[label.example_id] == label.class_ for label in no)
        answers = service.progress(session, campaign, now=NOW).counts.total
        # The promised shares, and three standard deviations of so small a campaign above them.
        assert wrong_yes <= 0.015 * len(yes) + 3 * (0.015 * len(yes)) ** 0.5
        assert wrong_no <= 0.022 * len(no) + 3 * (0.022 * len(no)) ** 0.5
        assert answers / count - 1 <= 0.15 + 3 * (0.15 / count) ** 0.5
        assert len(labels) > 0.96 * count
        assert service.progress(session, campaign, now=NOW).waiting == 0
        self.assert_as_computed(session, campaign, labels)

    def assert_as_computed(self, session: Session, campaign: Campaign, labels: list[LabelRow]) -> None:
        """The labels are what the pure functions make of the very same answers."""
        probability = self.probabilities(session, campaign)
        expected: dict[int, tuple[LabelKind, float]] = {}
        for row in session.execute(question_answers(campaign.id)):
            found = verdict(row.yes, row.no, confirm_yes=True)
            found = weighed(found, probability[row.id], num_classes=NUM_CLASSES)
            if found.kind:
                expected[row.example_id] = (found.kind, found.weight)
        assert {label.example_id: label.kind for label in labels} == {
            example_id: kind for example_id, (kind, _) in expected.items()
        }
        for label in labels:
            assert label.weight == pytest.approx(expected[label.example_id][1], abs=1e-5)

    def probabilities(self, session: Session, campaign: Campaign) -> dict[int, float]:
        """That yes is right by question, from the model fitted to every single answer."""
        questions, _, found = fitted_to_every_answer(session, campaign)
        return dict(zip(questions, found.probability_yes.tolist(), strict=True))

    def test_who_does_not_look_is_paused_and_can_be_left_out(
        self, session: Session, admin: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gold, "_chance", random.Random(3))
        campaign = make_campaign(
            session, examples=1_000, class_names=CLASS_NAMES, confirm_yes=True, consensus="dawid-skene"
        )
        campaign.gold_share = 0.3
        known = service.some_known(session, campaign, per_class=20)
        service.mark_known(session, campaign, known, by=admin)
        people = People(session, campaign, [*[HONEST] * 4, RANDOM], seed=1)

        people.work()

        (bad,) = (user for user, kind in people.kinds.items() if kind == RANDOM)
        assert people.paused == {bad}
        service.leave_out(session, campaign, bad.id, by=admin, left_out=True)
        assert asked_again(session, campaign, count=1_000, by=admin) > 0
        people.work()
        labels = list(labelling.labels(session, campaign))
        wrong = [
            (people.truth[label.example_id] == label.class_) != (label.kind is LabelKind.TRUE)
            for label in labels
        ]
        # What everybody has met as a known picture is asked of nobody; its class is known.
        marked = {picture.example_id for picture in known}
        others = [label for label in labels if label.example_id not in marked]
        assert len(others) > 0.98 * (1_000 - len(marked))
        assert len(labels) > 0.9 * 1_000
        assert sum(wrong) <= 0.022 * len(labels) + 3 * (0.022 * len(labels)) ** 0.5
        gold_answers = session.scalars(
            select(Answer.id)
            .join(Question, Question.id == Answer.question_id)
            .where(Question.campaign_id == campaign.id, Question.purpose == Purpose.GOLD)
        ).all()
        assert len(gold_answers) > 200
