"""JSON routes of campaigns."""

from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app import jobs
from app.campaigns import service
from app.jobs import Job
from tests.factories import make_campaign, make_rows_only_dataset

API = "/api/v1/campaigns"


class TestCreate:
    def test_answers_201_with_the_draft(self, client: TestClient, session: Session) -> None:
        dataset = make_rows_only_dataset(session, examples=4, class_names=("cat", "dog"))
        session.commit()

        response = client.post(API, json={"name": " Pets ", "dataset_id": str(dataset.id)})

        assert response.status_code == 201
        body = response.json()
        assert response.headers["location"] == f"{API}/{body['id']}"
        assert (body["name"], body["state"], body["confirm_yes"], body["rounds"]) == (
            "Pets",
            "draft",
            True,
            1,
        )
        assert [item["name"] for item in body["classes"]] == ["cat", "dog"]
        assert body["revealed_seed"] is None
        assert service.any_campaign(session, UUID(body["id"])).seed not in response.text

    @pytest.mark.parametrize(
        ("change", "slug"),
        [
            ({"classes": [{"name": "only"}]}, "invalid-classes"),
            ({"rounds": 3}, "invalid-classes"),
            ({"name": ""}, "malformed-request"),
            ({"name": "a\x00b"}, "malformed-request"),
            ({"seed": "00"}, "malformed-request"),
            ({"classes": [{"name": "a"}, {"name": "b", "colour": "red"}]}, "malformed-request"),
        ],
    )
    def test_wrong_input_is_a_problem(
        self, client: TestClient, session: Session, change: dict[str, object], slug: str
    ) -> None:
        dataset = make_rows_only_dataset(session, examples=4, class_names=("cat", "dog"))
        session.commit()

        response = client.post(API, json={"name": "Pets", "dataset_id": str(dataset.id)} | change)

        assert response.status_code == 422
        assert response.json()["type"] == f"/problems/{slug}"

    def test_an_unknown_dataset_is_a_conflict(self, client: TestClient) -> None:
        response = client.post(API, json={"name": "Pets", "dataset_id": str(uuid4())})

        assert (response.status_code, response.json()["type"]) == (409, "/problems/source-not-ready")


class TestLife:
    def test_open_pause_go_on_and_close(
        self, client: TestClient, session: Session, published: list[Job]
    ) -> None:
        draft = make_campaign(session, state="draft")
        campaign = make_campaign(session)
        session.commit()

        opening = client.post(f"{API}/{draft.id}/open")
        assert (opening.status_code, opening.json()["is_opening"]) == (202, True)
        assert published == [Job(jobs.OPEN_CAMPAIGN, (str(draft.id),))]

        states = [
            client.post(f"{API}/{campaign.id}/{step}").json()["state"] for step in ("pause", "open", "close")
        ]
        assert states == ["paused", "open", "closed"]
        closed = client.get(f"{API}/{campaign.id}").json()
        assert closed["revealed_seed"] == "00" * 32
        assert len(closed["commitment"]) == 64

    def test_a_wrong_step_is_a_problem(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, state="closed")
        session.commit()

        response = client.post(f"{API}/{campaign.id}/pause")

        assert (response.status_code, response.json()["type"]) == (409, "/problems/wrong-campaign-state")
        assert "closed" in response.json()["detail"]

    def test_patch_changes_only_what_it_names(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, state="draft")
        session.commit()

        response = client.patch(
            f"{API}/{campaign.id}", json={"instructions": "Look twice.", "confirm_yes": True, "modes": "card"}
        )

        body = response.json()
        assert response.status_code == 200
        assert (body["name"], body["instructions"], body["confirm_yes"]) == (
            campaign.name,
            "Look twice.",
            True,
        )
        assert body["modes"] == "card"
        assert [item["name"] for item in body["classes"]] == ["cat", "dog", "owl"]

    def test_patch_of_an_open_campaign_is_a_conflict(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()

        response = client.patch(f"{API}/{campaign.id}", json={"name": "Other"})

        assert (response.status_code, response.json()["type"]) == (409, "/problems/not-a-draft")


class TestDelete:
    def test_a_draft_is_gone(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, state="draft")
        session.commit()

        assert client.delete(f"{API}/{campaign.id}").status_code == 204
        assert client.get(f"{API}/{campaign.id}").status_code == 404

    def test_of_an_open_campaign_is_a_conflict(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()

        response = client.delete(f"{API}/{campaign.id}")

        assert response.status_code == 409
        assert response.json()["type"].endswith("/problems/wrong-campaign-state")


class TestReading:
    def test_lists_page_by_key(self, client: TestClient, session: Session) -> None:
        made = {str(make_campaign(session).id) for _ in range(3)}
        session.commit()

        first = client.get(API, params={"limit": 2}).json()
        rest = client.get(API, params={"limit": 2, "after": first["next"]}).json()

        assert {item["id"] for item in first["items"] + rest["items"]} == made
        assert rest["next"] is None

    def test_annotators_see_open_ones_only(self, annotator_client: TestClient, session: Session) -> None:
        campaigns = {
            state: make_campaign(session, state=state) for state in ("draft", "open", "paused", "closed")
        }
        session.commit()

        listed = annotator_client.get(API).json()["items"]

        assert [item["id"] for item in listed] == [str(campaigns["open"].id)]
        for state, campaign in campaigns.items():
            status = annotator_client.get(f"{API}/{campaign.id}").status_code
            assert status == (200 if state == "open" else 404)

    @pytest.mark.parametrize("step", ["open", "pause", "close"])
    def test_annotators_cannot_change_a_campaign(
        self, annotator_client: TestClient, session: Session, step: str
    ) -> None:
        campaign = make_campaign(session)
        session.commit()

        assert annotator_client.post(f"{API}/{campaign.id}/{step}").status_code == 403
        assert annotator_client.patch(f"{API}/{campaign.id}", json={"name": "x"}).status_code == 403
        assert annotator_client.post(API, json={}).status_code == 403


class TestPrice:
    def test_is_set_at_any_time_and_shown(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()
        url = f"/api/v1/campaigns/{campaign.id}/price"

        body = client.put(url, json={"price": 12.5, "price_per": "hour"}).json()
        page = client.get(f"/campaigns/{campaign.id}", headers={"Accept": "text/html"}).text
        progress = client.get(f"/api/v1/campaigns/{campaign.id}/progress").json()
        gone = client.put(url, json={}).json()

        assert (body["price"], body["price_per"]) == (12.5, "hour")
        assert "12.5 for an hour" in page
        assert progress["cost"] == {"so_far": 0.0, "to_go": None}
        assert gone["price"] is None

    def test_by_a_form(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()
        url, page = f"/campaigns/{campaign.id}/price", {"Accept": "text/html"}

        saved = client.post(url, data={"price": "0.01", "price_per": "answer"}, headers=page)
        wrong = client.post(url, data={"price": "-1"}, headers=page)

        assert saved.status_code == 303
        assert (wrong.status_code, "Not a price" in wrong.text) == (422, True)
        assert client.get(f"/api/v1/campaigns/{campaign.id}").json()["price"] == 0.01

    def test_annotators_see_no_form_and_may_not(self, annotator_client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()

        assert annotator_client.put(f"/api/v1/campaigns/{campaign.id}/price", json={}).status_code == 403
