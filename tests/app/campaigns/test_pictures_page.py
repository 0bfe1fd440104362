"""The page on which a draft's classes get example pictures."""

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.campaigns import openings, service
from app.campaigns.models import Campaign
from tests.factories import make_campaign, make_rows_only_dataset

HTML = {"accept": "text/html"}
HTMX = HTML | {"hx-request": "true"}


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
        return [
            id_ for _, id_ in openings.examples_to_label(session, campaign.dataset_id, end_position=10**6)
        ]

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
        openers = re.findall(
            r'popovertarget="([^"]+)" aria-label="Enlarge the picture: An example of cat"', card
        )
        assert len(openers) == 2
        assert all(f'<div popover id="{opener}"><img' in card for opener in openers)
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
