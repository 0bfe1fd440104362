"""Ask, look, answer, look, undo, answer again: no route tells an annotator what is known or what is right."""

import re
from typing import Any
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import Purpose, Question
from app.annotation.public_ids import public_ids_of
from app.campaigns.models import Campaign, CampaignState
from tests.factories import make_campaign

HTML = {"accept": "text/html"}
# Made anew with each request, whatever was answered.
PASSING = re.compile(
    r'(csrf-token" content="[^"]*"|name="csrf_token" value="[^"]*"|\d+ (s|min) ago|just now)'
)


class Attacker:
    """Somebody who answers and looks at everything that an annotator may call."""

    def __init__(self, client: TestClient, campaign: Campaign) -> None:
        self.client = client
        self.here = f"/campaigns/{campaign.id}"
        self.seen: dict[str, str] = {}  # by the last look, since which nothing was answered

    def post(self, what: str, **body: Any) -> Any:
        response = self.client.post(f"/api/v1{self.here}/{what}", json=body)
        assert response.status_code in (200, 204), response.text
        return response.json() if response.content else None

    def leased(self) -> Any:
        return self.post("questions", count=40)

    def look(self) -> dict[str, str]:
        """Every page and answer of the API but the questions that are held."""
        seen = {}
        for path, headers in (
            ("/annotate", HTML),
            (f"/annotate{self.here.removeprefix('/campaigns')}", HTML),
            (f"{self.here}/audit", HTML),
            ("/api/v1/campaigns", {}),
            (f"/api/v1{self.here}", {}),
            (f"/api/v1{self.here}/audit", {}),
        ):
            response = self.client.get(path, headers=headers)
            assert response.status_code == 200, path
            seen[path] = PASSING.sub("", response.text)
        return seen

    def answer(self, question_id: int, value: str) -> Any:
        given = {"question_id": question_id, "value": value, "response_ms": 900, "key": str(uuid4())}
        return self.post("answers", answers=[given], next={"count": 40})

    def effect(self, question: Any, value: str) -> tuple[object, ...]:
        """All that changes where this question is answered, and where that is taken back."""
        before, held = self.seen or self.look(), self.leased()
        told = self.answer(question["id"], value)
        after = self.look()
        [undone] = self.post("undo")["undone"]
        back, again = self.look(), self.leased()
        self.seen = back
        assert undone["question"] == question
        assert [item["id"] for item in again["questions"]].count(question["id"]) == 1
        still = set(map(_id, told["next"]["questions"]))
        assert set(map(_id, held["questions"])) - {question["id"]} <= still
        return (
            [(result["status"], result["detail"], sorted(result)) for result in told["results"]],
            undone["value"],
            sorted(question),
            {path: _moved(before[path], after[path]) for path in before},
            {path: _moved(before[path], back[path]) for path in before},
            told["next"]["waiting"] - held["waiting"],
            told["next"]["answered_by_me"] - held["answered_by_me"],
            again["waiting"] - held["waiting"],
        )


def _id(question: Any) -> int:
    return int(question["id"])


def _moved(before: str, after: str) -> list[int]:
    """How far each number on a page moved; a page whose words changed has others."""
    numbers = [[int(number) for number in re.findall(r"\d+", page)] for page in (before, after)]
    assert len(numbers[0]) == len(numbers[1])
    return [two - one for one, two in zip(*numbers, strict=True)]


@pytest.fixture(params=[True, False], ids=["yes confirmed", "a yes stands alone"])
def campaign(request: pytest.FixtureRequest, session: Session, admin: User) -> Campaign:
    """Half of the questions are about known pictures."""
    made = make_campaign(session, examples=60, confirm_yes=request.param)
    made.gold_share, made.gold_bound, made.price = 0.5, 0.0, 0.05
    known = service.some_known(session, made, per_class=10)
    service.mark_known(session, made, known, by=admin)
    session.commit()
    return made


def known_among(session: Session, campaign: Campaign, questions: list[Any]) -> list[bool]:
    """What the attacker would like to know."""
    ids = public_ids_of(session, campaign.id)
    purposes = dict(
        session.execute(
            select(Question.id, Question.purpose).where(Question.campaign_id == campaign.id)
        ).all()
    )
    return [purposes[ids.question_id(question["id"])] is Purpose.GOLD for question in questions]


@pytest.mark.parametrize("value", ["yes", "no", "unsure"])
def test_what_follows_from_an_answer_is_the_same_for_every_question(
    annotator_client: TestClient, session: Session, campaign: Campaign, value: str
) -> None:
    attacker = Attacker(annotator_client, campaign)
    questions = attacker.leased()["questions"]
    is_known = known_among(session, campaign, questions)
    assert 3 <= sum(is_known) <= len(questions) - 3, "there is something to tell apart"
    some = [at for at in range(len(questions)) if is_known[at]][:2]
    others = [at for at in range(len(questions)) if not is_known[at]][:3]

    effects = [attacker.effect(questions[at], value) for at in sorted([*some, *others])]

    assert all(effect == effects[0] for effect in effects)


def test_a_right_answer_and_a_wrong_one_look_alike(annotator_client: TestClient, campaign: Campaign) -> None:
    attacker = Attacker(annotator_client, campaign)

    for question in attacker.leased()["questions"][:4]:
        yes, no = (attacker.effect(question, value) for value in ("yes", "no"))
        assert yes[:1] + yes[2:] == no[:1] + no[2:]


def test_questions_given_back_come_again_in_the_same_order_with_the_known_ones(
    annotator_client: TestClient, campaign: Campaign
) -> None:
    attacker = Attacker(annotator_client, campaign)
    first = attacker.leased()["questions"]

    for _ in range(3):
        attacker.post("leases/release")
        assert attacker.leased()["questions"] == first

    attacker.answer(first[0]["id"], "no")
    attacker.post("leases/release")
    assert attacker.leased()["questions"][: len(first) - 1] == first[1:]


def test_figures_of_an_unfinished_campaign_are_for_admins(
    client: TestClient, annotator_client: TestClient, session: Session, campaign: Campaign
) -> None:
    attacker = Attacker(annotator_client, campaign)
    attacker.answer(attacker.leased()["questions"][0]["id"], "no")
    here = f"/api/v1/campaigns/{campaign.id}"
    hidden = ("gold_share", "gold_bound", "price")
    told = ("yes_rate", "yes_p_value", "yes_by_true_class", "yes_by_true_class_at", "unsure_by_class")

    for read in (
        annotator_client.get(here).json(),
        annotator_client.get("/api/v1/campaigns").json()["items"][0],
    ):
        assert [read[name] for name in hidden] == [None] * 3
    audit = annotator_client.get(f"{here}/audit").json()
    assert [audit[name] for name in told] == [None] * 5
    assert {item[name] for item in audit["classes"] for name in ("answered", "yes_rate", "unsure_rate")} == {
        None
    }
    assert annotator_client.get(f"{here}/quality").status_code == 403
    assert annotator_client.get(f"{here}/progress").status_code == 403
    assert [client.get(here).json()[name] for name in hidden] == [0.5, 0.0, 0.05]
    assert client.get(f"{here}/audit").json()["yes_by_true_class"] is not None

    campaign.state = CampaignState.CLOSED
    session.commit()
    assert annotator_client.get(f"{here}/audit").json()["unsure_by_class"] is not None
