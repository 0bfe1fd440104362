"""People judge a model's predictions: what is drawn, what is asked, what the answers say."""

from collections import Counter

import pytest
from sqlalchemy import event, select, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import Answer, Purpose
from app.campaigns import service as campaigns
from app.campaigns.errors import CampaignInUse, EvaluationIsFixed
from app.campaigns.models import Campaign, CampaignKind
from app.campaigns.sampling import DRAWN, EVALUATED
from app.campaigns.schemas import CampaignUpdate
from app.datasets.models import Dataset, Example
from app.db import Database
from app.evaluations import service as evaluations
from app.evaluations.judging import cells_of, images_judged, is_unasked, verdict_of
from app.evaluations.models import EvaluatedImage, Evaluation
from app.quality import service as quality
from app.registry import removing
from app.runs import service as runs
from app.runs.models import Run
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.evaluations import laid_out
from tests.factories import NOW, make_user

pytestmark = pytest.mark.dialects

WITHIN = evaluations.Wishes(half_width=0.2)  # of 60 images some 30


@pytest.fixture
def found(session: Session, storage: FolderStorage, admin: User) -> Evaluation:
    """An evaluation of a model that is wrong about every fifth image, laid out."""
    model = laid_out.make_model(session, storage, laid_out.make_target(session, storage))
    return laid_out.make_evaluation(session, storage, model, WITHIN, by=admin)


@pytest.fixture
def campaign(
    *,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    found: Evaluation,
    admin: User,
) -> Campaign:
    """Its campaign, opened."""
    return laid_out.opened(session, settings, database, storage, found, by=admin)


def test_its_campaign_speaks_to_those_who_answered_the_one_before(
    session: Session, storage: FolderStorage, admin: User
) -> None:
    target = laid_out.make_target(session, storage)
    model = laid_out.make_model(session, storage, target)
    source = session.get_one(Campaign, session.get_one(Run, model.run_id).campaign_id)
    source.class_language, source.instructions = "de-AT", "Auch Zeichnungen."

    found = laid_out.make_evaluation(session, storage, model, WITHIN, by=admin)

    made = session.get_one(Campaign, found.campaign_id)
    assert made.name == f"Was sehen Sie? {target.name}"
    assert made.instructions == "Auch Zeichnungen."


class TestQuestions:
    def test_are_about_predictions_and_as_many_drawn_classes(
        self, session: Session, found: Evaluation, campaign: Campaign
    ) -> None:
        asked = laid_out.questions_by_round(session, campaign)

        predicted = dict(
            session.execute(
                select(EvaluatedImage.example_id, EvaluatedImage.class_).where(
                    EvaluatedImage.evaluation_id == found.id
                )
            ).all()
        )
        assert campaign.kind is CampaignKind.EVALUATION
        assert {row.example_id: row.candidate_class for row in asked[EVALUATED]} == predicted
        assert len(asked[DRAWN]) == len(asked[EVALUATED]) == found.sample_size == found.drawn_count
        assert {row.purpose for rows in asked.values() for row in rows} == {Purpose.EVALUATION}
        assert {row.probability for row in asked[EVALUATED]} == {1.0}
        assert {round(row.probability, 9) for row in asked[DRAWN]} == {round(1 / 3, 9)}

    def test_follow_from_the_seeds_that_were_committed_to(self, session: Session, campaign: Campaign) -> None:
        audit = quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True)
        assert (audit.draws_match, audit.commitment_matches, audit.alarms) == (True, True, ())

        moved = laid_out.questions_by_round(session, campaign)[EVALUATED][0]
        others = set(session.scalars(select(Example.id).where(Example.dataset_id == campaign.dataset_id)))
        asked = {row.example_id for row in laid_out.questions_by_round(session, campaign)[EVALUATED]}
        moved.example_id = min(others - asked)  # of no image of the sample
        session.flush()

        audit = quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True)
        assert audit.draws_match is False

    def test_cannot_be_changed(self, session: Session, found: Evaluation, admin: User) -> None:
        assert found.campaign_id is not None
        draft = campaigns.any_campaign(session, found.campaign_id)

        campaigns.edit_campaign(session, draft, CampaignUpdate(name="Renamed").details(draft), by=admin)
        for change in ({"rounds": 2}, {"confirm_yes": True}, {"classes": [{"name": "a"}, {"name": "b"}]}):
            update = CampaignUpdate.model_validate(change)
            with pytest.raises(EvaluationIsFixed):
                campaigns.edit_campaign(session, draft, update.details(draft), by=admin)


class TestResult:
    def test_is_the_share_of_yes_to_predictions(
        self, session: Session, found: Evaluation, campaign: Campaign, annotator: User
    ) -> None:
        before = evaluations.result_of(session, found)
        given = laid_out.answer_all(session, campaign, by=annotator)
        result = evaluations.result_of(session, found)

        wrong = sum(
            row.position % 5 == 0
            for row in session.scalars(
                select(Example)
                .join(EvaluatedImage, EvaluatedImage.example_id == Example.id)
                .where(EvaluatedImage.evaluation_id == found.id)
            )
        )
        assert (before.interval, before.waiting) == (None, found.sample_size)
        assert given == 2 * found.sample_size
        assert (result.right, result.wrong) == (found.sample_size - wrong, wrong)
        assert result.interval is not None
        assert result.interval.low < result.interval.estimate == result.right / result.judged
        assert (result.people, result.is_over, result.corrected) == (1, True, None)
        assert sum(item.sampled for item in result.classes) == found.sample_size

    def test_leaves_out_who_is_left_out(
        self, session: Session, found: Evaluation, campaign: Campaign, annotator: User, admin: User
    ) -> None:
        laid_out.answer_all(session, campaign, by=annotator)
        annotation.leave_out(session, campaign, annotator.id, by=admin, left_out=True)
        session.flush()

        assert evaluations.result_of(session, found).judged == 0

    def test_tells_on_what_several_people_agree(
        self,
        *,
        session: Session,
        settings: Settings,
        database: Database,
        storage: FolderStorage,
        admin: User,
        annotator: User,
    ) -> None:
        model = laid_out.make_model(session, storage, laid_out.make_target(session, storage))
        wishes = evaluations.Wishes(half_width=0.2, drawn_share=0, overlap=2)
        found = laid_out.make_evaluation(session, storage, model, wishes, by=admin)
        campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
        for person, lies in ((annotator, 0), (make_user(session), 3), (make_user(session), 0)):
            laid_out.answer_all(session, campaign, by=person, lies=lies)

        result = evaluations.result_of(session, found)

        assert result.several == found.sample_size
        assert result.unanimous == found.sample_size - 3
        assert result.judged == found.sample_size  # a third person settled what two were divided about
        assert Counter(item.right + item.wrong > 0 for item in result.classes) == {True: 3}


class TestCounting:
    """Counted where the answers lie, it is what each picture's answers say."""

    def test_is_what_the_answers_to_each_picture_say(
        self, session: Session, found: Evaluation, campaign: Campaign, annotator: User
    ) -> None:
        laid_out.answer_all(session, campaign, by=annotator, lies=5)
        first, second, third, *_ = laid_out.questions_by_round(session, campaign)[EVALUATED]
        first.is_set_aside, second.is_waiting, third.is_waiting = True, True, False
        for question in (second, third):
            session.execute(update(Answer).where(Answer.question_id == question.id).values(is_hasty=True))
        session.flush()

        rows = session.execute(images_judged([found.id])).all()
        cells = cells_of(session, [found.id])[found.id]

        said = [verdict_of(row) for row in rows]
        assert said.count(None) == 3
        assert sum(cell.images for cell in cells) == len(rows) == found.sample_size
        for class_ in range(3):
            own = [cell for cell in cells if cell.class_ == class_]
            verdicts = [verdict_of(row) for row in rows if row.class_ == class_]
            assert sum(cell.right for cell in own) == verdicts.count(True)
            assert sum(cell.wrong for cell in own) == verdicts.count(False)
        assert sum(cell.unasked for cell in cells) == sum(map(is_unasked, rows)) == 1

    def test_takes_as_many_statements_for_many_runs_as_for_one(
        self,
        *,
        session: Session,
        settings: Settings,
        database: Database,
        storage: FolderStorage,
        found: Evaluation,
        campaign: Campaign,
        admin: User,
        annotator: User,
    ) -> None:
        laid_out.answer_all(session, campaign, by=annotator)
        target = session.get_one(Dataset, found.dataset_id)
        for wrong_every in (4, 6):
            model = laid_out.make_model(session, storage, target, wrong_every=wrong_every)
            next_one = laid_out.make_evaluation(session, storage, model, WITHIN, by=admin)
            if next_one.campaign_id is not None:  # else chance drew what people have judged already
                again = laid_out.opened(session, settings, database, storage, next_one, by=admin)
                laid_out.answer_all(session, again, by=annotator)
        run_ids = session.scalars(select(Evaluation.run_id)).all()
        told: list[str] = []
        event.listen(database.engine, "before_cursor_execute", lambda *about: told.append(about[2]))

        one = evaluations.measured_by_people(session, run_ids[:1])
        few = len(told)
        many = evaluations.measured_by_people(session, run_ids)

        assert (len(one), len(many)) == (1, 3)
        assert len(told) - few <= few + 1 <= 6  # one more where only some had known pictures


class TestTheNext:
    def test_uses_answers_again_and_is_compared_on_the_same_images(
        self,
        *,
        session: Session,
        settings: Settings,
        database: Database,
        storage: FolderStorage,
        found: Evaluation,
        campaign: Campaign,
        admin: User,
        annotator: User,
    ) -> None:
        laid_out.answer_all(session, campaign, by=annotator)
        target = found.dataset_id
        better = laid_out.make_model(session, storage, session.get_one(Dataset, target), wrong_every=10)

        second = laid_out.make_evaluation(session, storage, better, WITHIN, by=admin)
        again = laid_out.opened(session, settings, database, storage, second, by=admin)
        asked = laid_out.questions_by_round(session, again)
        before = evaluations.result_of(session, second)
        early = evaluations.comparisons_of(session, second)
        laid_out.answer_all(session, again, by=make_user(session))
        [comparison] = evaluations.comparisons_of(session, second)

        first_result, result = (evaluations.result_of(session, each) for each in (found, second))
        assert (second.sample_seed, second.sample_size) == (found.sample_seed, found.sample_size)
        assert len(asked[EVALUATED]) == second.asked_count < second.sample_size
        assert before.judged == second.known_count > 0
        assert before.interval is None  # what is known is no random part: both models say the same there
        assert early == []
        assert result.judged == second.sample_size
        assert (comparison.only_other, comparison.images) == (0, second.sample_size)
        assert comparison.only_this == result.right - first_result.right > 0
        assert comparison.difference.estimate == pytest.approx(comparison.only_this / comparison.images)

    def test_asks_nobody_where_everything_is_known(
        self,
        *,
        session: Session,
        storage: FolderStorage,
        found: Evaluation,
        campaign: Campaign,
        admin: User,
        annotator: User,
    ) -> None:
        laid_out.answer_all(session, campaign, by=annotator)
        target = session.get_one(Dataset, found.dataset_id)
        same = laid_out.make_model(session, storage, target)

        second = laid_out.make_evaluation(session, storage, same, WITHIN, by=admin)

        results = [evaluations.result_of(session, each) for each in (found, second)]
        assert (second.campaign_id, second.asked_count) == (None, 0)
        assert results[0].interval == results[1].interval is not None
        assert results[1].is_over

        # What is counted elsewhere stays; what nothing needs any more can go.
        campaigns.close_campaign(session, campaign, by=admin, now=NOW)
        with pytest.raises(CampaignInUse) as refused:
            campaigns.delete_campaign(session, campaign, by=admin)
        assert [use.id for use in refused.value.used_by.named] == [second.id]
        run = runs.get_run(session, second.run_id, by=admin)
        removing.delete_run(session, storage, run, by=admin, now=NOW)
        campaigns.delete_campaign(session, campaign, by=admin)
        session.expire_all()
        assert session.scalars(select(Evaluation)).all() == []
