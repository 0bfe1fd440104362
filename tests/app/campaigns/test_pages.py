"""Pages of campaigns: list, form, progress, buttons."""

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns import openings, service
from app.campaigns.models import Campaign, Modes
from tests.factories import answer, make_campaign, make_rows_only_dataset, make_user, questions_of

HTML = {"accept": "text/html"}
HTMX = HTML | {"hx-request": "true"}


class TestList:
    def test_an_empty_one_teaches(self, client: TestClient) -> None:
        page = client.get("/campaigns", headers=HTML)

        assert page.status_code == 200
        assert "complementary" in page.text
        assert 'href="/campaigns/new"' in page.text

    def test_says_how_far_each_campaign_is(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, examples=4)
        make_campaign(session, state="draft", name="<b>Draft</b>")
        answer(session, campaign, questions_of(session, campaign)[0].id, "no")
        session.commit()

        page = client.get("/campaigns", headers=HTML)

        assert "1 of 4 questions done" in page.text
        assert "25 %" in page.text
        assert "&lt;b&gt;Draft&lt;/b&gt;" in page.text

    def test_is_for_admins(self, annotator_client: TestClient) -> None:
        assert annotator_client.get("/campaigns", headers=HTML).status_code == 403


class TestForm:
    def fields(self, session: Session, **change: str) -> dict[str, str]:
        """A form that works, with changes."""
        dataset = make_rows_only_dataset(session, examples=4, class_names=("cat", "dog"))
        session.commit()
        return {"name": "Pets", "dataset_id": str(dataset.id), "classes": "", "confirm_yes": "true"} | change

    def test_without_datasets_leads_to_one(self, client: TestClient) -> None:
        assert "/datasets/new" in client.get("/campaigns/new", headers=HTML).text

    def test_makes_a_draft_from_lines(self, client: TestClient, session: Session) -> None:
        fields = self.fields(session, classes="cat: small ones too\n\n  dog \r\nowl: nocturnal: mostly\n")

        assert client.get("/campaigns/new", headers=HTML).status_code == 200
        response = client.post("/campaigns/new", data=fields, headers=HTML)

        campaign = service.any_campaign(session, session.scalars(select(Campaign.id)).one())
        assert (response.status_code, response.headers["location"]) == (303, f"/campaigns/{campaign.id}")
        assert [(c.name, c.description) for c in campaign.classes] == [
            ("cat", "small ones too"),
            ("dog", ""),
            ("owl", "nocturnal: mostly"),
        ]
        assert (campaign.confirm_yes, campaign.rounds) == (True, 1)

    def test_an_unticked_box_means_no_confirmation(self, client: TestClient, session: Session) -> None:
        fields = self.fields(session)
        del fields["confirm_yes"]

        client.post("/campaigns/new", data=fields, headers=HTML)

        assert session.scalars(select(Campaign)).one().confirm_yes is False

    @pytest.mark.parametrize(
        ("change", "field", "words"),
        [
            ({"name": ""}, "name", "fill this in"),
            ({"name": "x" * 121}, "name", "120"),
            ({"classes": "only"}, "classes", "2 to 1000 classes"),
            ({"classes": "a\nb\na"}, "classes", "there twice"),
            ({"classes": f"a\n{'b' * 81}"}, "classes", "80"),
            ({"dataset_id": "00000000-0000-0000-0000-000000000000"}, "dataset_id", "import has ended"),
            ({"rounds": "9"}, "classes", "questions per picture"),
        ],
    )
    def test_shows_what_is_wrong_beside_the_field(
        self, client: TestClient, session: Session, change: dict[str, str], field: str, words: str
    ) -> None:
        fields = self.fields(session, **change)

        page = client.post("/campaigns/new", data=fields, headers=HTML)

        assert page.status_code == 422
        error = re.search(rf'id="{field}-error">([^<]*)<', page.text)
        assert error
        assert words in error[1]
        assert session.scalars(select(Campaign)).all() == []

    def test_a_taken_name_keeps_what_was_typed(self, client: TestClient, session: Session) -> None:
        taken = make_campaign(session)
        fields = self.fields(session, name=taken.name, instructions="Look <twice>")

        page = client.post("/campaigns/new", data=fields, headers=HTML)

        assert page.status_code == 422
        assert "Look &lt;twice&gt;" in page.text

    def test_edits_a_draft_and_keeps_pictures_of_classes(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, state="draft")
        picture = openings.examples_to_label(session, campaign.dataset_id, end_position=10**6)[0][1]
        campaign.classes[0].example_ids = [picture]
        session.commit()
        form = client.get(f"/campaigns/{campaign.id}/edit", headers=HTML)
        assert campaign.name in form.text

        response = client.post(
            f"/campaigns/{campaign.id}/edit",
            data={
                "name": "New name",
                "dataset_id": str(campaign.dataset_id),
                "classes": "owl\ncat",
                "rounds": "2",
                "modes": "grid",
            },
            headers=HTML,
        )

        assert response.status_code == 303
        session.expire_all()
        again = service.any_campaign(session, campaign.id)
        assert (again.name, again.rounds, again.confirm_yes) == ("New name", 2, False)
        assert again.modes is Modes.GRID
        assert [(c.name, c.example_ids) for c in again.classes] == [("owl", []), ("cat", [picture])]

    def test_a_failed_edit_changes_nothing(self, client: TestClient, session: Session) -> None:
        taken = make_campaign(session)
        campaign = make_campaign(session, state="draft")
        session.commit()

        page = client.post(
            f"/campaigns/{campaign.id}/edit",
            data={"name": taken.name, "dataset_id": str(campaign.dataset_id), "classes": "a\nb"},
            headers=HTML,
        )

        assert page.status_code == 422
        session.expire_all()
        assert service.any_campaign(session, campaign.id).class_names == ["cat", "dog", "owl"]


class TestShow:
    @pytest.mark.parametrize("state", ["draft", "open", "paused", "closed"])
    def test_every_state_has_its_page(self, client: TestClient, session: Session, state: str) -> None:
        campaign = make_campaign(session, state=state)
        session.commit()

        page = client.get(f"/campaigns/{campaign.id}", headers=HTML)

        assert page.status_code == 200
        assert f'data-status="{state}"' in page.text
        assert ("every 2s" in page.text) == (state in ("open", "paused"))
        steps = {
            "draft": ["open", "archive", "delete"],
            "open": ["pause", "price", "close"],
            "paused": ["open", "price", "close"],
            "closed": ["price", "archive", "delete"],
        }
        assert re.findall(rf'action="[^"]*/campaigns/{campaign.id}/(\w+)"', page.text) == steps[state]

    def test_the_fragment_is_part_of_the_page(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        robot = make_user(session)
        robot.is_simulated = True
        rows = questions_of(session, campaign)
        for value, question in zip(("yes", "no", "unsure"), rows, strict=False):
            answer(session, campaign, question.id, value, by=robot)
        session.commit()

        page = client.get(f"/campaigns/{campaign.id}", headers=HTML).text
        fragment = client.get(f"/campaigns/{campaign.id}", headers=HTMX).text

        assert "<html" not in fragment
        assert fragment.strip() in page
        assert 'data-status="simulated"' in fragment
        assert "3 of them simulated" in fragment
        assert "50.0 %" in fragment
        assert "33.3 % expected" in fragment

    def test_while_it_opens_the_page_watches_itself(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, state="draft")
        session.commit()

        response = client.post(f"/campaigns/{campaign.id}/open", headers=HTML)

        assert (response.status_code, response.headers["location"]) == (303, f"/campaigns/{campaign.id}")
        page = client.get(f"/campaigns/{campaign.id}", headers=HTML).text
        assert 'hx-target="#main"' in page
        assert 'data-status="opening"' in page
        whole = client.get(f"/campaigns/{campaign.id}", headers=HTMX | {"hx-target": "main"}).text
        assert "<h1>" in whole
        assert "<html" not in whole

    def test_a_failed_opening_says_why(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, state="draft")
        campaign.opening_failure = "The worker gave up."
        session.commit()

        assert "The worker gave up." in client.get(f"/campaigns/{campaign.id}", headers=HTML).text

    def test_buttons_change_the_state(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()

        for step, state in (("pause", "paused"), ("open", "open"), ("close", "closed")):
            assert client.post(f"/campaigns/{campaign.id}/{step}", headers=HTML).status_code == 303
            session.refresh(campaign, ["state"])
            assert campaign.state == state

    def test_a_wrong_step_has_an_error_page(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, state="closed")
        session.commit()

        page = client.post(f"/campaigns/{campaign.id}/pause", headers=HTML)

        assert page.status_code == 409
        assert "Only an open campaign can be paused" in page.text


class TestDelete:
    def test_a_draft_goes_and_the_list_comes(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, state="draft")
        session.commit()
        assert "Delete the draft" in client.get(f"/campaigns/{campaign.id}", headers=HTML).text

        response = client.post(f"/campaigns/{campaign.id}/delete", headers=HTML)

        assert (response.status_code, response.headers["location"]) == (303, "/campaigns")
        assert session.scalars(select(Campaign)).all() == []

    def test_an_open_campaign_offers_none(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()

        assert "Delete" not in client.get(f"/campaigns/{campaign.id}", headers=HTML).text
        assert client.post(f"/campaigns/{campaign.id}/delete", headers=HTML).status_code == 409
