"""Labels that follow from answers."""

from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Question
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.labels import service as labelling
from app.labels.deriving import combine
from clarinet.files.label_table import LabelKind, LabelRow
from tests import annotators
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects

TRUE, COMPLEMENTARY = LabelKind.TRUE, LabelKind.COMPLEMENTARY


def by_position(session: Session, campaign: Campaign) -> dict[int, Question]:
    """First-round questions by the position of their example."""
    rows = session.execute(
        select(Example.position, Question)
        .join(Example, Example.id == Question.example_id)
        .where(Question.campaign_id == campaign.id, Question.round == 0)
    )
    return {row.position: row.Question for row in rows}


class TestLabels:
    def test_are_what_the_answers_add_up_to_in_position_order(self, session: Session) -> None:
        campaign = make_campaign(session, examples=5, confirm_yes=True)
        asked = by_position(session, campaign)
        answer(session, campaign, asked[3].id, "no")
        for value in ("yes", "no", "yes", "yes"):
            answer(session, campaign, asked[1].id, value)
        answer(session, campaign, asked[2].id, "unsure")
        answer(session, campaign, asked[0].id, "yes")

        found = list(labelling.labels(session, campaign))

        assert [(x.position, x.kind, x.class_, x.answers) for x in found] == [
            (1, TRUE, asked[1].candidate_class, 4),
            (3, COMPLEMENTARY, asked[3].candidate_class, 1),
        ]
        assert [x.example_id for x in found] == [asked[1].example_id, asked[3].example_id]

    def test_undone_answers_do_not_count(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=annotator)
        annotators.undo(session, campaign, by=annotator, now=NOW)

        assert list(labelling.labels(session, campaign)) == []

    def test_a_true_label_leaves_no_complementary_one(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, rounds=3)
        values = {0: "no", 1: "yes", 2: "no"}
        for question in questions_of(session, campaign):
            answer(session, campaign, question.id, values[question.round])

        (label,) = labelling.labels(session, campaign)

        asked = {question.round: question.candidate_class for question in questions_of(session, campaign)}
        assert (label.kind, label.class_, label.answers) == (TRUE, asked[1], 1)

    def test_several_rounds_give_several_complementary_classes(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, rounds=2)
        for question in questions_of(session, campaign):
            answer(session, campaign, question.id, "no")

        found = list(labelling.labels(session, campaign))

        assert {label.kind for label in found} == {COMPLEMENTARY}
        assert [label.class_ for label in found] == sorted(
            q.candidate_class for q in questions_of(session, campaign)
        )
        assert [label.answers for label in found] == [2, 2]

    def test_two_true_classes_contradict_each_other(self) -> None:
        found = [LabelRow(0, TRUE, class_, 1.0, example_id=1, answers=1) for class_ in (0, 2)]

        assert combine(found) == []


class TestArrays:
    def test_have_one_row_per_example_and_class(self, session: Session) -> None:
        campaign = make_campaign(session, examples=2, rounds=2)
        rows = questions_of(session, campaign)
        first = [q for q in rows if q.example_id == rows[0].example_id]
        second = [q for q in rows if q.example_id != rows[0].example_id]
        for question in first:
            answer(session, campaign, question.id, "no")
        answer(session, campaign, second[0].id, "no")
        answer(session, campaign, second[1].id, "yes")

        found = labelling.derive(session, campaign.id)

        given = found.labels
        assert given.example_ids is not None
        assert given.positions is not None
        labels = set(
            zip(given.example_ids.tolist(), given.complementary.tolist(), given.true.tolist(), strict=True)
        )
        assert labels == {
            *((q.example_id, q.candidate_class, -1) for q in first),
            (second[1].example_id, -1, second[1].candidate_class),
        }
        assert not found.is_unfinished
        assert given.weights.tolist() == [1, 1, 1]
        assert given.weights.dtype == np.float32
        assert (np.diff(given.positions) >= 0).all()

    def test_an_unfinished_campaign_weights_classes_by_drawn_over_answered(self, session: Session) -> None:
        campaign = make_campaign(session, examples=60)
        rows = questions_of(session, campaign)
        zeros = [q for q in rows if q.candidate_class == 0]
        ones = [q for q in rows if q.candidate_class == 1]
        for question in [*zeros[:4], *ones[:1]]:
            answer(session, campaign, question.id, "no")
        answer(session, campaign, zeros[4].id, "yes")
        answer(session, campaign, zeros[5].id, "unsure")

        found = labelling.derive(session, campaign.id)

        assert found.is_unfinished
        assert found.drawn.tolist() == [c.question_count for c in campaign.classes]
        assert found.answered.tolist() == [5, 1, 0]
        assert labelling.answered_per_class(session, campaign.id, num_classes=3).tolist() == [5, 1, 0]
        assert labelling.class_factors(session, campaign.id)[0].tolist() == pytest.approx(
            [len(zeros) / 5, len(ones), 60 - len(zeros) - len(ones)]
        )
        assert labelling.drawn_per_class(session, campaign.id).sum() == 60
        expected = {0: len(zeros) / 5, 1: float(len(ones))}
        classes = found.labels.classes
        assert found.labels.weights.tolist() == pytest.approx([expected[c] for c in classes.tolist()])

    def test_what_all_at_work_cannot_tell_is_made_up_for_and_told(self, session: Session) -> None:
        campaign = make_campaign(session, examples=12)
        person = make_user(session)
        first, *others = questions_of(session, campaign)
        for question in others:
            answer(session, campaign, question.id, "no", by=person)
        before = labelling.derive(session, campaign.id)

        answer(session, campaign, first.id, "unsure", by=person)

        found = labelling.derive(session, campaign.id)
        assert before.is_unfinished
        assert found.is_unfinished, "nobody at work is left to ask, and the weights make up for it"
        factors = labelling.class_factors(session, campaign.id)[0]
        assert factors[first.candidate_class] > 1
        assert set(found.labels.weights) == set(factors.astype(np.float32))

    def test_say_how_many_answers_are_simulated(self, session: Session) -> None:
        campaign = make_campaign(session)
        rows = questions_of(session, campaign)
        robot = make_user(session)
        robot.is_simulated = True
        answer(session, campaign, rows[0].id, "no", by=robot)
        answer(session, campaign, rows[1].id, "unsure", by=robot)
        answer(session, campaign, rows[2].id, "no")

        found = labelling.derive(session, campaign.id)

        assert (found.answer_count, found.simulated_count) == (3, 2)

    def test_without_answers_are_empty(self, session: Session) -> None:
        campaign = make_campaign(session)

        found = labelling.derive(session, campaign.id)

        assert len(found.labels) == 0
        assert found.answered.tolist() == [0, 0, 0]
        assert found.is_unfinished


def test_an_unknown_campaign_has_no_labels(session: Session) -> None:
    with pytest.raises(Exception, match="No row"):
        labelling.derive(session, UUID(int=0))
