"""JSON routes of annotation."""

import itertools
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import callers
from app.accounts import service as accounts
from app.accounts.models import Role, User
from app.annotation import service
from app.annotation.models import Answer, Lease, Purpose, Question
from app.annotation.public_ids import public_ids_of
from app.annotation.service import KnownPicture
from app.campaigns.models import Campaign, CampaignState
from app.clock import utc_now
from app.quality import service as quality
from tests.factories import NOW, answer, make_campaign, make_token, make_user, questions_of


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """An open campaign of thirty pictures."""
    campaign = make_campaign(session, examples=30, confirm_yes=True)
    session.commit()
    return campaign


def url(campaign: Campaign, rest: str) -> str:
    """An address below the campaign."""
    return f"/api/v1/campaigns/{campaign.id}/{rest}"


def given(question_id: int, value: str = "no", response_ms: int | None = 700) -> dict[str, Any]:
    """An answer under a new key."""
    return {"question_id": question_id, "value": value, "response_ms": response_ms, "key": str(uuid4())}


class TestQuestions:
    def test_say_what_to_ask_and_how_far_one_is(
        self, annotator_client: TestClient, session: Session, campaign: Campaign
    ) -> None:
        body = annotator_client.post(url(campaign, "questions"), json={"count": 2}).json()

        first, ids = questions_of(session, campaign)[0], public_ids_of(session, campaign.id)
        assert body["questions"][0] == {
            "id": ids.of(first.id),
            "image_url": url(campaign, f"pictures/{ids.picture(first.example_id)}"),
            "candidate_class": first.candidate_class,
            "class_name": campaign.class_names[first.candidate_class],
        }
        assert len(body["questions"]) == 2
        assert (body["answered_by_me"], body["waiting"], body["lease_s"]) == (0, 30, 600)
        assert body["expires_at"]

    def test_do_not_show_what_is_gold(
        self, annotator_client: TestClient, session: Session, campaign: Campaign, admin: User
    ) -> None:
        campaign.gold_share = 0.5
        known = [KnownPicture(row.example_id, 1) for row in questions_of(session, campaign)]
        service.mark_known(session, campaign, known, by=admin)
        session.commit()

        body = annotator_client.post(url(campaign, "questions"), json={"count": 20}).json()

        ids = public_ids_of(session, campaign.id)
        gold = set(session.scalars(select(Question.id).where(Question.purpose == Purpose.GOLD)))
        is_gold = [ids.question_id(question["id"]) in gold for question in body["questions"]]
        assert 2 < sum(is_gold) < 18
        # Sorted by what is shown, gold stands between the others.
        shown = sorted(zip((question["id"] for question in body["questions"]), is_gold, strict=True))
        assert sum(a != b for (_, a), (_, b) in itertools.pairwise(shown)) > 2
        batch = [given(body["questions"][0]["id"]), given(next(iter(gold)))]
        answered = annotator_client.post(url(campaign, "answers"), json={"answers": batch}).json()
        assert [result["status"] for result in answered["results"]] == ["stored", "refused"]
        # Each of the 30 pictures once, as a known one or as a drawn question.
        assert body["waiting"] == 30

    def test_a_second_tab_gets_the_same(self, annotator_client: TestClient, campaign: Campaign) -> None:
        first = annotator_client.post(url(campaign, "questions"), json={"count": 3}).json()
        second = annotator_client.post(url(campaign, "questions"), json={"count": 3}).json()

        assert first["questions"] == second["questions"]

    @pytest.mark.parametrize("body", [{"count": 0}, {"count": 101}, {"number": 3}, {"count": "many"}, []])
    def test_wrong_counts_are_malformed(
        self, annotator_client: TestClient, campaign: Campaign, body: object
    ) -> None:
        assert annotator_client.post(url(campaign, "questions"), json=body).status_code == 422

    def test_a_paused_campaign_says_so_to_who_takes_part(
        self, annotator_client: TestClient, session: Session, campaign: Campaign
    ) -> None:
        annotator_client.post(url(campaign, "questions"), json={"count": 1})
        campaign.state = CampaignState.PAUSED
        session.commit()

        response = annotator_client.post(url(campaign, "questions"), json={"count": 1})

        assert (response.status_code, response.json()["type"]) == (409, "/problems/campaign-not-open")


class TestAnswers:
    def test_are_stored_repeated_or_refused(
        self, annotator_client: TestClient, campaign: Campaign, session: Session
    ) -> None:
        leased = annotator_client.post(url(campaign, "questions"), json={"count": 2}).json()["questions"]
        batch = [given(leased[0]["id"], "yes"), given(leased[1]["id"], response_ms=None), given(10**9)]

        first = annotator_client.post(url(campaign, "answers"), json={"answers": batch}).json()["results"]
        again = annotator_client.post(url(campaign, "answers"), json={"answers": batch}).json()["results"]

        assert [result["key"] for result in first] == [item["key"] for item in batch]
        assert [result["status"] for result in first] == ["stored", "stored", "refused"]
        assert [result["status"] for result in again] == ["repeated", "repeated", "refused"]
        assert [result["detail"] is None for result in first] == [True, True, False]
        assert session.scalar(select(func.count()).select_from(Answer)) == 2
        body = annotator_client.post(url(campaign, "questions"), json={"count": 1}).json()
        assert (body["answered_by_me"], body["waiting"]) == (2, 28)  # a yes and a no look alike

    def test_bring_the_next_questions_if_asked_to(
        self, annotator_client: TestClient, campaign: Campaign
    ) -> None:
        leased = annotator_client.post(url(campaign, "questions"), json={"count": 3}).json()["questions"]

        first = {"answers": [given(leased[0]["id"])]}
        alone = annotator_client.post(url(campaign, "answers"), json=first).json()
        batch: dict[str, Any] = {"answers": [given(leased[1]["id"])], "next": {"count": 2}}
        both = annotator_client.post(url(campaign, "answers"), json=batch).json()
        asked = annotator_client.post(url(campaign, "questions"), json={"count": 2}).json()

        assert alone["next"] is None
        assert alone["goes_on"] is True
        assert both["next"] == asked
        assert both["next"]["questions"][0] == leased[2]  # what is held comes first
        assert (asked["answered_by_me"], asked["waiting"]) == (2, 28)

    def test_count_where_no_questions_may_be_had(
        self, annotator_client: TestClient, campaign: Campaign, session: Session
    ) -> None:
        leased = annotator_client.post(url(campaign, "questions"), json={"count": 1}).json()["questions"]
        campaign.state = CampaignState.PAUSED
        session.commit()

        batch: dict[str, Any] = {"answers": [given(leased[0]["id"])], "next": {"count": 1}}
        body = annotator_client.post(url(campaign, "answers"), json=batch).json()

        assert [result["status"] for result in body["results"]] == ["stored"]
        assert body["next"] is None
        assert body["goes_on"] is False
        assert session.scalar(select(func.count()).select_from(Answer)) == 1

    def test_a_key_with_another_value_is_409_and_stores_nothing(
        self, annotator_client: TestClient, campaign: Campaign, session: Session
    ) -> None:
        leased = annotator_client.post(url(campaign, "questions"), json={"count": 2}).json()["questions"]
        one = given(leased[0]["id"])
        annotator_client.post(url(campaign, "answers"), json={"answers": [one]})

        response = annotator_client.post(
            url(campaign, "answers"), json={"answers": [given(leased[1]["id"]), one | {"value": "yes"}]}
        )

        assert (response.status_code, response.json()["type"]) == (409, "/problems/key-reused")
        assert session.scalar(select(func.count()).select_from(Answer)) == 1

    @pytest.mark.parametrize(
        "change",
        [
            {"value": "maybe"},
            {"response_ms": -1},
            {"response_ms": 10**12},
            {"question_id": 2**63},
            {"key": "mine"},
            {"at": 1},
        ],
    )
    def test_wrong_answers_are_malformed(
        self, annotator_client: TestClient, campaign: Campaign, change: dict[str, Any]
    ) -> None:
        body = {"answers": [given(1) | change]}

        assert annotator_client.post(url(campaign, "answers"), json=body).status_code == 422

    @pytest.mark.parametrize("count", [0, 201])
    def test_batches_are_bounded(self, annotator_client: TestClient, campaign: Campaign, count: int) -> None:
        body = {"answers": [given(1) for _ in range(count)]}

        assert annotator_client.post(url(campaign, "answers"), json=body).status_code == 422


def test_undo_gives_the_question_back(annotator_client: TestClient, campaign: Campaign) -> None:
    (question,) = annotator_client.post(url(campaign, "questions"), json={"count": 1}).json()["questions"]
    annotator_client.post(url(campaign, "answers"), json={"answers": [given(question["id"], "yes")]})

    undone = annotator_client.post(url(campaign, "undo"), json={})
    nothing = annotator_client.post(url(campaign, "undo"), json={})

    assert undone.json() == {"undone": [{"question": question, "value": "yes"}]}
    assert (nothing.status_code, nothing.json()["type"]) == (409, "/problems/nothing-to-undo")
    body = annotator_client.post(url(campaign, "questions"), json={"count": 1}).json()
    assert (body["questions"], body["answered_by_me"]) == ([question], 0)


def test_leases_are_renewed_and_released(
    annotator_client: TestClient, app: FastAPI, session: Session, campaign: Campaign
) -> None:
    other = TestClient(app, headers={"Authorization": f"Bearer {make_token(session, make_user(session))}"})
    assert annotator_client.post(url(campaign, "leases/renew"), json={}).json() == {"expires_at": None}
    mine = annotator_client.post(url(campaign, "questions"), json={"count": 2}).json()
    renewed = annotator_client.post(url(campaign, "leases/renew"), json={}).json()
    assert renewed["expires_at"] >= mine["expires_at"]

    released = annotator_client.post(url(campaign, "leases/release"), json={})

    assert (released.status_code, released.content) == (204, b"")
    theirs = other.post(url(campaign, "questions"), json={"count": 2}).json()
    assert theirs["questions"] == mine["questions"]


class TestProgressAndAudit:
    def test_progress_counts_what_stands(
        self, client: TestClient, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        rows = questions_of(session, campaign)
        answer(session, campaign, rows[0].id, "yes", by=annotator)
        answer(session, campaign, rows[1].id, "no", by=annotator)
        session.commit()

        body = client.get(url(campaign, "progress")).json()

        assert body["answers"] == {"yes": 1, "no": 1, "unsure": 0, "unusable": 0}
        assert (body["questions"], body["finished"], body["waiting"]) == (30, 1, 28)
        assert body["left_over"] == 1, "nobody else has come yet who could confirm the yes"
        assert body["annotators"][0]["name"] == annotator.name
        assert body["annotators"][0]["is_simulated"] is False
        assert sum(item["drawn"] for item in body["classes"]) == 30

    def test_the_audit_keeps_the_seed_until_closing(
        self, annotator_client: TestClient, session: Session, campaign: Campaign
    ) -> None:
        quality.keep_check(session, quality.check_draws(session, campaign, now=NOW))
        session.commit()
        before = annotator_client.get(url(campaign, "audit")).json()
        campaign.state = CampaignState.CLOSED
        session.commit()
        after = annotator_client.get(url(campaign, "audit")).json()

        assert (before["seed"], before["draws_match"]) == (None, None)
        assert (after["seed"], after["draws_match"], after["passed"]) == ("00" * 32, True, True)
        assert after["commitment"] == before["commitment"]
        assert "annotators" not in after

    def test_for_an_admin_the_server_recomputes_before_closing_and_keeps_the_seed(
        self, client: TestClient, campaign: Campaign
    ) -> None:
        response = client.get(url(campaign, "audit"), params={"recompute": True})

        body = response.json()
        assert (body["seed"], body["draws_match"], body["commitment_matches"]) == (None, True, True)
        assert campaign.seed not in response.text

    @pytest.mark.parametrize("what", ["progress", "labels", "answers"])
    def test_annotators_see_no_totals(
        self, annotator_client: TestClient, campaign: Campaign, what: str
    ) -> None:
        assert annotator_client.get(url(campaign, what)).status_code == 403


@pytest.mark.parametrize("rest", ["questions", "answers", "undo", "leases/renew", "leases/release"])
def test_strangers_cannot_touch_a_campaign_that_is_not_open(
    annotator_client: TestClient, anonymous: TestClient, session: Session, rest: str
) -> None:
    campaign = make_campaign(session, state="paused")
    session.commit()
    body = {"answers": [given(questions_of(session, campaign)[0].id)]} if rest == "answers" else {}

    assert annotator_client.post(url(campaign, rest), json=body).status_code == 404
    assert anonymous.post(url(campaign, rest), json=body).status_code == 401


class TestWhoCalls:
    """Nobody is taken for who called before: each request asks."""

    @pytest.fixture
    def known(self, annotator_client: TestClient, campaign: Campaign) -> TestClient:
        """Somebody who asked before."""
        for _ in range(2):
            assert annotator_client.post(url(campaign, "questions"), json={"count": 1}).status_code == 200
        return annotator_client

    def test_a_revoked_token_opens_nothing(
        self, known: TestClient, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        held = session.scalar(select(func.count()).select_from(Lease))
        [token] = session.scalars(accounts.tokens_of(annotator, now=utc_now()))
        accounts.revoke_token(session, token.id, by=annotator, now=NOW)
        session.commit()

        for _ in range(2):
            assert known.post(url(campaign, "questions"), json={"count": 5}).status_code == 401
        assert session.scalar(select(func.count()).select_from(Lease)) == held

    def test_who_may_not_ask_is_not_told_what_there_is(
        self, known: TestClient, session: Session, annotator: User
    ) -> None:
        annotator.disabled_at = NOW
        session.commit()

        nowhere = f"/api/v1/campaigns/{uuid4()}"
        assert known.post(f"{nowhere}/answers", json={"answers": [given(1)]}).status_code == 401
        assert known.post(f"{nowhere}/questions", json={"count": 1}).status_code == 401

    def test_a_new_role_holds_at_once(self, known: TestClient, session: Session, annotator: User) -> None:
        draft = make_campaign(session, state=CampaignState.DRAFT)
        session.commit()
        statuses = []
        for role in (Role.ANNOTATOR, Role.ADMIN, Role.ANNOTATOR):
            annotator.role = role
            session.commit()
            statuses.append(known.post(url(draft, "questions"), json={"count": 1}).status_code)

        assert statuses == [404, 409, 404]  # only an admin knows of it, and nobody can answer it

    def test_who_signed_out_is_out_at_once(
        self, anonymous: TestClient, app: FastAPI, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        secret = accounts.start_session(session, annotator, now=utc_now())
        session.commit()
        anonymous.cookies.set("clarinet", secret)
        token = callers.csrf_token(app.state.settings.signing_secret(), secret)
        statuses = []
        for _ in range(2):
            with_token = {"X-CSRF-Token": token}
            statuses.append(
                anonymous.post(url(campaign, "questions"), json={"count": 1}, headers=with_token).status_code
            )
        statuses.append(anonymous.post(url(campaign, "questions"), json={"count": 1}).status_code)
        accounts.sign_out(session, secret)
        session.commit()
        statuses.append(
            anonymous.post(url(campaign, "questions"), json={"count": 1}, headers=with_token).status_code
        )

        assert statuses == [200, 200, 403, 401]

    def test_who_is_renamed_goes_on(
        self, known: TestClient, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        annotator.name = "Another Name"
        session.commit()

        assert known.post(url(campaign, "questions"), json={"count": 1}).status_code == 200
