"""Plans of a campaign: what is measured, what is typed, what runs reached."""

from decimal import Decimal

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.planning import service as plans
from app.planning.service import Basis, Wishes
from app.quality import service as quality
from app.runs.models import TrialState
from app.stores.folder import FolderStorage
from tests.factories import NOW, answer, make_campaign, make_run, questions_of

NOTHING = Wishes(
    budget=100, price=None, seconds=None, error=None, classes=None, overlap=None, kway_seconds=4.2
)


class TestMeasured:
    def test_seconds_and_error_come_from_the_answers(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, examples=30, confirm_yes=True)
        rows = questions_of(session, campaign)
        for question in rows[:9]:  # nine yes, confirmed
            answer(session, campaign, question.id, "yes", response_ms=800)
            answer(session, campaign, question.id, "yes", response_ms=1200)
        answer(session, campaign, rows[9].id, "yes", response_ms=None)  # a yes that the next two deny
        answer(session, campaign, rows[9].id, "no", response_ms=None)
        answer(session, campaign, rows[9].id, "no", response_ms=None)

        plan = plans.make_plan(session, NOTHING, campaign=campaign, by=admin, now=NOW)

        assert plan.seconds == Basis(1.0, "measured")
        assert plan.classes == Basis(3, "measured")
        assert plan.error.source == "measured"
        # As the labels are weighed by.
        claims = quality.claims(session, campaign)
        assert claims is not None
        assert (plan.error.value, *plan.dependence) == (claims.error, claims.match, claims.other)
        assert claims.several == 10
        assert 0.02 < plan.error.value < 0.3

    def test_without_answers_figures_are_assumed_and_what_is_typed_wins(
        self, session: Session, admin: User
    ) -> None:
        campaign = make_campaign(session, examples=3, confirm_yes=True)
        typed = Wishes(
            budget=100, price=0.05, seconds=None, error=0.02, classes=None, overlap=2, kway_seconds=4.2
        )

        plan = plans.make_plan(session, typed, campaign=campaign, by=admin, now=NOW)

        assert plan.seconds == Basis(plans.ASSUMED_SECONDS, "assumed")
        assert (plan.price, plan.error) == (Basis(0.05, "given"), Basis(0.02, "given"))
        assert (plan.classes, plan.overlap) == (Basis(3, "measured"), Basis(2, "given"))
        assert plan.offers[0].answers == int(Decimal(100) / Decimal("0.05"))

    def test_overlap_tells_no_error_rate(self, session: Session) -> None:
        campaign = make_campaign(session, examples=3, confirm_yes=True)
        campaign.overlap = 2
        question = questions_of(session, campaign)[0]
        answer(session, campaign, question.id, "yes")
        answer(session, campaign, question.id, "yes")

        assert plans.measure(session, campaign).error is None


class TestLearningPoints:
    def test_are_the_runs_that_ended_by_number_of_answers(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        more = make_run(session, storage, state="succeeded", seeds=(0, 1), train=240)
        fewer = make_run(session, storage, state="succeeded", train=120)
        going = make_run(session, storage, state="running", train=60)
        for run, accuracies in ((more, (0.9, 0.8)), (fewer, (0.7,)), (going, (0.5,))):
            run.campaign_id = more.campaign_id
            for trial, accuracy in zip(run.trials, accuracies, strict=True):
                trial.target_accuracy = accuracy
                trial.state = TrialState.RUNNING if run is going else TrialState.SUCCEEDED
        session.flush()
        campaign = session.get_one(Campaign, more.campaign_id)

        points = plans.learning_points(session, campaign, by=admin, now=NOW)

        assert [(point.number, point.answers, point.seeds) for point in points] == [
            (fewer.number, 120, 1),
            (more.number, 240, 2),
        ]
        assert points[1].mean_accuracy == pytest.approx(0.85)
        assert points[1].std_accuracy == pytest.approx(0.0707, abs=1e-4)


class TestRoutes:
    def test_the_api_says_what_a_budget_buys(self, client: TestClient) -> None:
        body = client.get("/api/v1/plan", params={"budget": 100, "price": 0.01, "error": 0}).json()

        assert [offer["name"] for offer in body["offers"]] == ["confirmed", "single", "k-way"]
        assert body["offers"][0]["true_labels"] == 909
        assert body["seconds"] == {"value": 1.0, "source": "assumed"}
        assert body["runs"] == []

    def test_the_api_of_a_campaign_has_its_classes(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()

        body = client.get(f"/api/v1/campaigns/{campaign.id}/plan").json()

        assert body["classes"] == {"value": 3, "source": "measured"}

    @pytest.mark.parametrize(
        "asked",
        [
            {"price": 0},
            {"price": 1e-300},
            {"budget": "inf"},
            {"seconds": "nan"},
            {"error": 1},
            {"classes": 1},
            {"bugdet": 1},
            {"overlap": 9},
        ],
    )
    def test_impossible_figures_are_malformed(
        self, client: TestClient, asked: dict[str, str | float]
    ) -> None:
        assert client.get("/api/v1/plan", params=asked).status_code == 422

    def test_annotators_plan_nothing(self, annotator_client: TestClient) -> None:
        assert annotator_client.get("/api/v1/plan").status_code == 403
        assert annotator_client.get("/plan").status_code == 403

    def test_the_page_works_it_out_or_says_what_is_wrong(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()
        page = {"Accept": "text/html"}
        url = f"/campaigns/{campaign.id}/plan"

        shown = client.get(url, params={"budget": "50", "error_percent": "5"}, headers=page)
        wrong = client.get(url, params={"budget": "much"}, headers=page)
        general = client.get("/plan", headers=page)
        of_two = client.get("/plan", params={"classes": "2"}, headers=page)

        assert shown.status_code == 200
        assert 'value="5"' in shown.text
        assert "each yes confirmed" in shown.text
        assert "four of nine questions confirmed" in of_two.text
        assert "each yes confirmed" not in of_two.text
        assert (wrong.status_code, 'value="much"' in wrong.text) == (422, True)
        assert "Accuracy by number of answers" not in general.text
        assert url in client.get(f"/campaigns/{campaign.id}", headers=page).text
