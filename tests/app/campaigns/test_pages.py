"""Pages of campaigns: list, form, progress, buttons, audit."""

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns import service
from app.campaigns.models import Campaign, CampaignState, Modes
from tests.factories import answer, make_campaign, make_rows_only_dataset, make_user, questions_of

HTML = {"accept": "text/html"}
HTMX = HTML | {"hx-request": "true"}


class TestList:
    def test_an_empty_one_teaches(self, client: TestClient) -> None:
        page = client.get("/campaigns", headers=HTML)

        assert page.status_code == 200
        assert "complementary" in page.text
        assert 'href="http://testserver/campaigns/new"' in page.text

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
        picture = service.examples_to_label(session, campaign.dataset_id)[0][1]
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


def offered(page: str) -> list[tuple[str, bool]]:
    """(value, ticked) of the pictures on a page."""
    return [
        (value, bool(ticked))
        for value, ticked in re.findall(r'name="pictures" value="([^"]*)"( checked)?', page)
    ]


class TestPictures:
    def draft(self, session: Session, *, examples: int = 60, names: tuple[str, ...] = ()) -> Campaign:
        """A draft over images of cats and dogs in turn; asks about `names` if there are any."""
        dataset = make_rows_only_dataset(session, examples=examples, class_names=("cat", "dog"))
        campaign = make_campaign(session, dataset=dataset, state="draft")
        for item, name in zip(campaign.classes, names, strict=False):
            item.name = name
        session.commit()
        return campaign

    def ids(self, session: Session, campaign: Campaign) -> list[int]:
        """Of the examples, by position."""
        return [id_ for _, id_ in service.examples_to_label(session, campaign.dataset_id)]

    def test_the_drafts_page_leads_there(self, client: TestClient, session: Session) -> None:
        campaign = self.draft(session)

        assert f"/campaigns/{campaign.id}/pictures" in client.get(f"/campaigns/{campaign.id}").text

    def test_offers_images_of_the_class_of_that_name(self, client: TestClient, session: Session) -> None:
        campaign = self.draft(session)
        ids = self.ids(session, campaign)

        page = client.get(f"/campaigns/{campaign.id}/pictures?batch=1", headers=HTML)

        cats, dogs = ids[0::2][12:24], ids[1::2][12:24]
        assert offered(page.text) == [(f"0:{id_}", False) for id_ in cats] + [
            (f"1:{id_}", False) for id_ in dogs
        ]

    def test_offers_every_image_in_turn_for_a_class_of_another_name(
        self, client: TestClient, session: Session
    ) -> None:
        campaign = self.draft(session, examples=31, names=("tabby",))
        pages = [
            client.get(f"/campaigns/{campaign.id}/pictures?batch={batch}", headers=HTML).text
            for batch in range(4)
        ]

        seen = [value for page in pages for value, _ in offered(page) if value.startswith("0:")]
        assert sorted(seen) == sorted(f"0:{id_}" for id_ in self.ids(session, campaign))
        assert "No more pictures" in pages[3]

    def test_chosen_ones_are_kept_come_first_and_show_on_the_card(
        self, client: TestClient, session: Session
    ) -> None:
        campaign = self.draft(session)
        ids = self.ids(session, campaign)
        chosen = [f"0:{ids[4]}", f"0:{ids[40]}", f"1:{ids[3]}"]

        response = client.post(f"/campaigns/{campaign.id}/pictures", data={"pictures": chosen}, headers=HTML)

        assert (response.status_code, response.headers["location"]) == (303, f"/campaigns/{campaign.id}")
        page = client.get(f"/campaigns/{campaign.id}/pictures", headers=HTML).text
        assert [value for value, ticked in offered(page) if ticked] == chosen
        assert offered(page)[:2] == [(value, True) for value in chosen[:2]]
        card = client.get(f"/annotate/{campaign.id}", headers=HTML).text
        assert card.count("An example of cat") == 2
        assert f"/examples/{ids[40]}/image" in card

    def test_one_ticked_box_replaces_what_was_chosen(self, client: TestClient, session: Session) -> None:
        campaign = self.draft(session)
        ids = self.ids(session, campaign)
        campaign.classes[1].example_ids = [ids[1], ids[3]]
        session.commit()

        client.post(f"/campaigns/{campaign.id}/pictures", data={"pictures": f"0:{ids[0]}"}, headers=HTML)

        session.expire_all()
        campaign = service.any_campaign(session, campaign.id)
        assert [item.example_ids for item in campaign.classes] == [[ids[0]], []]

    def test_showing_others_keeps_what_is_ticked(self, client: TestClient, session: Session) -> None:
        campaign = self.draft(session)
        value = f"0:{self.ids(session, campaign)[0]}"

        response = client.post(
            f"/campaigns/{campaign.id}/pictures", data={"pictures": value, "more": "true"}, headers=HTML
        )
        page = client.get(response.headers["location"], headers=HTML).text

        assert response.headers["location"].endswith("pictures?first=0&batch=1")
        assert offered(page)[0] == (value, True)
        assert len(offered(page)) == 1 + 12 + 12

    def test_many_classes_take_several_pages(self, client: TestClient, session: Session) -> None:
        names = tuple(f"class {n}" for n in range(60))
        dataset = make_rows_only_dataset(session, examples=60, class_names=names)
        campaign = make_campaign(session, dataset=dataset, state="draft")
        ids = self.ids(session, campaign)
        campaign.classes[0].example_ids = [ids[0]]
        session.commit()
        url = f"/campaigns/{campaign.id}/pictures"

        first = client.post(url, data={"pictures": f"0:{ids[0]}"}, headers=HTML)
        page = client.get(first.headers["location"], headers=HTML).text
        client.post(first.headers["location"], data={"pictures": f"55:{ids[55]}"}, headers=HTML)

        assert offered(page)[0] == (f"50:{ids[50]}", False)
        session.expire_all()
        campaign = service.any_campaign(session, campaign.id)
        assert {item.position: item.example_ids for item in campaign.classes if item.example_ids} == {
            0: [ids[0]],
            55: [ids[55]],
        }

    def test_more_than_four_of_a_class_are_refused_with_its_name(
        self, client: TestClient, session: Session
    ) -> None:
        campaign = self.draft(session)
        chosen = [f"1:{id_}" for id_ in self.ids(session, campaign)[1:10:2]]

        page = client.post(f"/campaigns/{campaign.id}/pictures", data={"pictures": chosen}, headers=HTML)

        assert page.status_code == 422
        assert "At most 4 pictures can show a class; &#39;dog&#39; has 5." in page.text
        assert [value for value, ticked in offered(page.text) if ticked] == chosen

    @pytest.mark.parametrize("value", ["0", "0:x", "0:1:2", "-1:1"])
    def test_a_mangled_choice_is_refused(self, client: TestClient, session: Session, value: str) -> None:
        campaign = self.draft(session)

        response = client.post(f"/campaigns/{campaign.id}/pictures", data={"pictures": value}, headers=HTML)

        assert response.status_code == 422

    def test_another_dataset_takes_its_own_pictures(self, client: TestClient, session: Session) -> None:
        campaign = self.draft(session)
        campaign.classes[0].example_ids = self.ids(session, campaign)[:1]
        other = make_rows_only_dataset(session, examples=4, class_names=("cat", "dog"))
        session.commit()

        response = client.post(
            f"/campaigns/{campaign.id}/edit",
            data={"name": "Moved", "dataset_id": str(other.id), "classes": "cat\ndog"},
            headers=HTML,
        )

        assert response.status_code == 303
        session.expire_all()
        campaign = service.any_campaign(session, campaign.id)
        assert [item.example_ids for item in campaign.classes] == [[], []]

    def test_what_was_opened_has_no_such_page(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()

        assert client.get(f"/campaigns/{campaign.id}/pictures", headers=HTML).status_code == 409
        assert client.post(f"/campaigns/{campaign.id}/pictures", headers=HTML).status_code == 409


class TestShow:
    @pytest.mark.parametrize("state", ["draft", "open", "paused", "closed"])
    def test_every_state_has_its_page(self, client: TestClient, session: Session, state: str) -> None:
        campaign = make_campaign(session, state=state)
        session.commit()

        page = client.get(f"/campaigns/{campaign.id}", headers=HTML)

        assert page.status_code == 200
        assert f'data-status="{state}"' in page.text
        assert ("every 2s" in page.text) == (state == "open")
        steps = {
            "draft": ["open", "delete"],
            "open": ["pause", "price", "close"],
            "paused": ["open", "price", "close"],
            "closed": ["price"],
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


class TestAudit:
    def test_shows_commitment_and_after_closing_the_seed(
        self, annotator_client: TestClient, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session, examples=60)
        answer(session, campaign, questions_of(session, campaign)[0].id, "no")
        session.commit()

        before = annotator_client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text
        campaign.state = CampaignState.CLOSED
        session.commit()
        after = annotator_client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text

        assert (campaign.commitment or "-") in before
        assert "00" * 32 not in before
        assert "00" * 32 in after
        assert "People" not in after
        assert annotator.email not in after

    def test_names_people_to_admins(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        person = answer(session, campaign, questions_of(session, campaign)[0].id, "no")
        session.commit()

        assert person.name in client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text

    def test_shows_alarms(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session, examples=60, state="closed")
        question = questions_of(session, campaign)[0]
        question.candidate_class = (question.candidate_class + 1) % 3
        session.commit()

        page = client.get(f"/campaigns/{campaign.id}/audit?recompute=true", headers=HTML).text

        assert "do not follow from the seed" in page
        assert 'role="alert"' in page

    def test_a_draft_has_none(self, client: TestClient, session: Session) -> None:
        draft = make_campaign(session, state="draft")
        session.commit()

        assert client.get(f"/campaigns/{draft.id}/audit", headers=HTML).status_code == 404
