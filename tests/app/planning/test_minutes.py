"""Minutes, not answers: measured curves in an annotator's time."""

import json
import statistics
import xml.etree.ElementTree as ET
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import Answer, AnswerValue, Lease
from app.campaigns.models import Campaign
from app.planning import service as plans
from app.planning.minutes import Point, drawing_of, minutes_of
from app.planning.paces import Paces, paces_of
from app.planning.studied import STUDIED
from app.runs import words
from app.storage import Storage
from tests import annotators
from tests.factories import NOW, answer, make_campaign, make_run, questions_of

RECORDS = Path(__file__).parents[3] / "docs" / "results" / "active.jsonl"


class TestStudied:
    def test_what_is_kept_here_is_what_the_records_say(self) -> None:
        looks = {"art_painting->photo": "photographs", "U->M": "digits"}
        found: dict[tuple[str, str, int], list[dict[str, float]]] = {}
        for line in RECORDS.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            found.setdefault((looks[record["task"]], record["way"], record["answers"]), []).append(record)

        told = {
            (of, way, answers // 4)
            if way == "ordinary"
            else (
                of,
                way,
                round(statistics.fmean(item["questions"] + item["yes"] for item in members)),
            ): sorted(round(item["target_accuracy"], 4) for item in members)
            for (of, way, answers), members in found.items()
        }
        assert told == {(item.looks, item.way, item.answers): sorted(item.accuracies) for item in STUDIED}


class TestMinutes:
    def test_seconds_turn_answers_into_minutes_and_nothing_is_added(self) -> None:
        (task, *_) = minutes_of(card=1.5, page=None, kway=6.0)

        lines = {line.way: line for line in task.lines}
        measured = [item for item in STUDIED if (item.looks, item.way) == (task.looks, "uniform")]
        assert [point.minutes for point in lines["uniform-card"].points] == pytest.approx(
            [item.answers * 1.5 / 60 for item in measured]
        )
        assert [point.seeds for point in lines["uniform-card"].points] == [
            len(item.accuracies) for item in measured
        ]
        assert "uniform-page" not in lines
        for line in task.lines:
            assert line.seconds == (6.0 if line.way == "ordinary" else 1.5)
            assert not {line.title} & set(task.not_measured)

    def test_a_page_has_a_line_of_its_own_once_its_seconds_are_known(self) -> None:
        (task, *_) = minutes_of(card=1.0, page=0.25, kway=4.2)

        lines = {line.way: line for line in task.lines}
        card, page = lines["uniform-card"].points, lines["uniform-page"].points
        assert [4 * point.minutes for point in page] == pytest.approx([point.minutes for point in card])
        assert [point.mean for point in page] == [point.mean for point in card]

    def test_a_drawing_keeps_every_point_inside_and_accuracy_on_0_to_100(self) -> None:
        runs = [Point(1.0, 60, 0.0, 0.0, 0.0, 1), Point(137.0, 8220, 1.0, 0.9, 1.0, 3)]
        for task in minutes_of(card=1.0, page=0.3, kway=4.2, runs=runs):
            drawing = drawing_of(task)

            assert [words for _, words in drawing.up] == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
            assert drawing.across[0] == (64, "0.2" if task.looks == "photographs" else "1")
            assert drawing.across[-1] == (624, "200")
            steps = [words for _, words in drawing.across]
            assert steps[-5:] == ["10", "20", "50", "100", "200"]
            dots = {line.title: line.dots for line in drawing.lines}
            own = "This campaign's own runs, a dot each"
            assert dots[own][0][1] == 336  # 0 % stands at the bottom
            assert dots[own][1][1] == 16
            paths = {line.title: line.path for line in drawing.lines}
            assert [title for title, path in paths.items() if not path] == [own]
            assert all(64 <= x <= 624 and 16 <= y <= 336 for line in dots.values() for x, y in line)

    def test_what_took_no_minutes_is_left_out_of_the_drawing_alone(self) -> None:
        runs = [Point(0.0, 0, 0.7, 0.7, 0.7, 1), Point(2.0, 120, 0.8, 0.8, 0.8, 1)]
        for task in minutes_of(card=1.0, page=None, kway=4.2, runs=runs):
            own = drawing_of(task).lines[-1]

            assert len(own.dots) == len(own.bars) == 1
            assert task.lines[-1].points == tuple(runs)

    def test_it_is_told_when_each_way_came_near_the_best(self) -> None:
        tasks = {task.looks: task for task in minutes_of(card=1.0, page=None, kway=4.2)}
        photographs = tasks["photographs"]

        assert photographs.best == pytest.approx(0.9768, abs=1e-4)
        told = {
            each.title: round(each.point.minutes, 2) for each in photographs.reached if each.point is not None
        }
        assert told == {
            "Yes/no, one picture at a time": round(286 / 60, 2),
            "Choosing one class of all": round(125 * 4.2 / 60, 2),
            "Yes/no by the model's belief, pictures with a no again": round(642 / 60, 2),
            "Yes/no by the model's belief, other pictures": round(696 / 60, 2),
        }
        assert list(told.values()) == sorted(told.values())


class TestPaces:
    def test_pages_and_cards_are_told_apart_by_what_came_together(self, session: Session) -> None:
        campaign = make_campaign(session, examples=40)
        rows = questions_of(session, campaign)
        person = answer(session, campaign, rows[0].id, response_ms=1500)
        answer(session, campaign, rows[1].id, by=person, response_ms=2500, now=NOW + timedelta(seconds=3))
        page = [annotation.SubmittedAnswer(row.id, AnswerValue.NO, 400, uuid4(), 12) for row in rows[2:14]]
        session.add_all(
            Lease(question_id=row.id, slot=0, user_id=person.id, expires_at=NOW + annotation.LEASE)
            for row in rows[2:14]
        )
        session.flush()
        outcomes = annotators.submit(session, campaign, page, by=person, now=NOW + timedelta(seconds=20))

        assert {outcome.status for outcome in outcomes} == {annotation.Status.STORED}
        assert paces_of(session, campaign) == Paces(card=2.0, page=0.4)

    def test_nothing_is_known_without_answers(self, session: Session) -> None:
        assert paces_of(session, make_campaign(session)) == Paces(None, None)

    def test_a_plan_takes_both_from_the_campaign_and_what_is_typed_wins(
        self, session: Session, admin: User
    ) -> None:
        campaign = make_campaign(session, examples=5)
        answer(session, campaign, questions_of(session, campaign)[0].id, response_ms=3000)
        nothing = plans.Wishes(
            budget=100, price=None, seconds=None, error=None, classes=None, overlap=None, kway_seconds=4.2
        )

        plan = plans.make_plan(session, nothing, campaign=campaign, by=admin, now=NOW)

        assert plan.card_seconds == plans.Basis(3.0, "measured")
        assert plan.page_seconds is None


class TestRoutes:
    def test_each_run_of_a_campaign_is_a_row_and_a_dot_of_its_own_by_the_time_that_is_shown(
        self, client: TestClient, session: Session, storage: Storage
    ) -> None:
        run = make_run(session, storage, train=12, state="succeeded")
        run.trials[0].target_accuracy = 0.5
        campaign = session.get_one(Campaign, run.campaign_id)
        session.commit()

        page = client.get(f"/campaigns/{campaign.id}/plan", params={"seconds": "2"}).text

        told = f"Run {run.number}, {words.method_of(run).words}, {words.LEARNS_FROM[run.setting]}"
        assert page.count(f'<th scope="row">{told}</th>') == 2  # beside both tasks
        assert (
            "Each grey dot is a run of this campaign, by all the answers that it had, at 2.00 s each" in page
        )
        assert "a dot each" in page

    def test_a_run_on_imports_alone_stands_in_the_table(
        self, client: TestClient, session: Session, storage: Storage
    ) -> None:
        run = make_run(session, storage, state="succeeded")
        run.snapshot_facts = {**run.snapshot_facts, "answers": 0, "imported": 120}
        run.trials[0].target_accuracy = 0.7
        session.commit()

        page = client.get(f"/campaigns/{run.campaign_id}/plan")

        assert page.status_code == 200
        assert f'<th scope="row">Run {run.number}, ' in page.text

    def test_a_measured_time_says_over_which_answers(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, examples=5)
        answer(session, campaign, questions_of(session, campaign)[0].id, response_ms=3000)
        session.commit()

        page = client.get(f"/campaigns/{campaign.id}/plan").text

        assert "3.00 s for a yes or no to one picture at a time (measured here, over the latest 5 000" in page
        assert "were simulated" not in page
        person = session.scalars(select(User).join(Answer, Answer.user_id == User.id)).one()
        person.is_simulated = True
        session.commit()
        page = client.get(f"/campaigns/{campaign.id}/plan").text
        assert "100 % of the answers here were simulated" in page

    def test_the_page_draws_it_with_its_assumptions(self, client: TestClient) -> None:
        page = client.get("/plan", params={"seconds": "2", "page_seconds": "0.5", "kway_seconds": "4.2"}).text

        assert "Minutes, not answers" in page
        told = "2.00 s for a yes or no to one picture at a time (given), 0.50 s for each on a page (given)"
        assert told in page
        assert "the median of crowd workers in CIFAR-10N" in page
        assert "Yes/no, a page of pictures" in page
        for part in page.split("<svg xmlns")[1:]:
            ET.fromstring("<svg xmlns" + part.split("</svg>")[0] + "</svg>")

    def test_the_api_says_the_same(self, client: TestClient) -> None:
        body = client.get("/api/v1/plan", params={"seconds": 2, "kway_seconds": 5}).json()

        assert body["page_seconds"] is None
        assert {item["looks"] for item in body["minutes"]} == {item.looks for item in STUDIED}
        seconds = {line["way"]: line["seconds"] for item in body["minutes"] for line in item["lines"]}
        assert seconds["uniform-card"] == 2
        assert seconds.get("ordinary", 5) == 5
