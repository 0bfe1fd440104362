"""A campaign's life."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.campaigns import openings, service
from app.campaigns.classes import ClassDetails
from app.campaigns.errors import (
    CampaignNameTaken,
    CampaignNotFound,
    InvalidClasses,
    NotADraft,
    SourceNotReady,
    WrongCampaignState,
)
from app.campaigns.models import Campaign, CampaignClass, CampaignState
from app.campaigns.service import CampaignDetails
from app.claims import LEASE, MAX_ATTEMPTS
from app.datasets import service as datasets
from app.datasets.models import Dataset, DatasetState
from app.jobs import Job
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_campaign, make_rows_only_dataset

pytestmark = pytest.mark.dialects


@pytest.fixture
def dataset(session: Session) -> Dataset:
    """Six images of two classes."""
    return make_rows_only_dataset(session, examples=6, class_names=("cat", "dog"))


def details(dataset: Dataset, *names: str, **more: object) -> CampaignDetails:
    """Details with these classes."""
    values = {"name": f"Pets {uuid4()}", "classes": tuple(map(ClassDetails, names))} | more
    return CampaignDetails(dataset_id=dataset.id, **values)  # type: ignore[arg-type]  # tests vary one field


class TestCreate:
    def test_takes_the_datasets_classes_when_none_are_given(
        self, session: Session, dataset: Dataset, admin: User
    ) -> None:
        campaign = service.create_campaign(session, details(dataset), by=admin, now=NOW)

        assert campaign.class_names == ["cat", "dog"]
        assert campaign.state is CampaignState.DRAFT
        assert campaign.commitment is None

    def test_each_campaign_has_its_own_seed_which_it_keeps_to_itself(
        self, session: Session, dataset: Dataset, admin: User
    ) -> None:
        first = service.create_campaign(session, details(dataset), by=admin, now=NOW)
        second = service.create_campaign(session, details(dataset), by=admin, now=NOW)

        assert first.seed != second.seed
        assert len(first.seed) == 64
        assert first.revealed_seed is None

    def test_classes_keep_their_order_description_and_pictures(
        self, session: Session, dataset: Dataset, admin: User
    ) -> None:
        picture = openings.examples_to_label(session, dataset.id, end_position=10**6)[0][1]
        classes = (ClassDetails("zebra", "striped", (picture,)), ClassDetails("ant"))

        campaign = service.create_campaign(session, details(dataset, classes=classes), by=admin, now=NOW)

        assert [(c.position, c.name, c.description, c.example_ids) for c in campaign.classes] == [
            (0, "zebra", "striped", [picture]),
            (1, "ant", "", []),
        ]

    @pytest.mark.parametrize("names", [("cat",), ("cat", "dog", "cat"), ("cat", "Cat"), ("cat", "cat\u200b")])
    def test_needs_two_classes_with_names_of_their_own(
        self, session: Session, dataset: Dataset, admin: User, names: tuple[str, ...]
    ) -> None:
        with pytest.raises(InvalidClasses):
            service.create_campaign(session, details(dataset, *names), by=admin, now=NOW)

    @pytest.mark.parametrize("rounds", [0, 3])
    def test_rounds_are_bounded_by_the_classes(
        self, session: Session, dataset: Dataset, admin: User, rounds: int
    ) -> None:
        with pytest.raises(InvalidClasses, match="questions per picture"):
            service.create_campaign(session, details(dataset, rounds=rounds), by=admin, now=NOW)

    def test_pictures_of_another_dataset_are_refused(
        self, session: Session, dataset: Dataset, admin: User
    ) -> None:
        other = make_rows_only_dataset(session, examples=1, class_names=("cat", "dog"))
        foreign = openings.examples_to_label(session, other.id, end_position=10**6)[0][1]
        classes = (ClassDetails("cat", "", (foreign,)), ClassDetails("dog"))

        with pytest.raises(InvalidClasses, match="not in the campaign's dataset"):
            service.create_campaign(session, details(dataset, classes=classes), by=admin, now=NOW)

    @pytest.mark.parametrize("state", [DatasetState.IMPORTING, DatasetState.FAILED])
    def test_the_dataset_must_be_ready(
        self, session: Session, dataset: Dataset, admin: User, state: DatasetState
    ) -> None:
        dataset.state = state

        with pytest.raises(SourceNotReady):
            service.create_campaign(session, details(dataset), by=admin, now=NOW)

    def test_the_dataset_must_exist_and_have_images_to_label(self, session: Session, admin: User) -> None:
        empty = make_rows_only_dataset(session, examples=0, class_names=("cat", "dog"))

        for source in (Dataset(id=uuid4()), empty):
            with pytest.raises(SourceNotReady):
                service.create_campaign(session, details(source, "a", "b"), by=admin, now=NOW)

    def test_a_name_is_used_once(self, session: Session, dataset: Dataset, admin: User) -> None:
        service.create_campaign(session, details(dataset, name="Pets"), by=admin, now=NOW)

        with pytest.raises(CampaignNameTaken):
            service.create_campaign(session, details(dataset, name="Pets"), by=admin, now=NOW)

    def test_is_for_admins(self, session: Session, dataset: Dataset, annotator: User) -> None:
        with pytest.raises(NotAllowed):
            service.create_campaign(session, details(dataset), by=annotator, now=NOW)


class TestEdit:
    def test_changes_a_draft(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, state="draft")
        dataset = session.get_one(Dataset, campaign.dataset_id)

        service.edit_campaign(
            session, campaign, details(dataset, "owl", "cat", name="Birds", rounds=2), by=admin
        )

        session.expire(campaign)
        again = service.any_campaign(session, campaign.id)
        assert (again.name, again.rounds, again.class_names) == ("Birds", 2, ["owl", "cat"])

    def test_a_taken_name_changes_nothing(self, session: Session, admin: User) -> None:
        taken = make_campaign(session, state="draft")
        campaign = make_campaign(session, state="draft")
        dataset = session.get_one(Dataset, campaign.dataset_id)

        with pytest.raises(CampaignNameTaken):
            service.edit_campaign(session, campaign, details(dataset, "x", "y", name=taken.name), by=admin)

        session.expire_all()
        assert service.any_campaign(session, campaign.id).class_names == ["cat", "dog", "owl"]

    @pytest.mark.parametrize("state", ["open", "paused", "closed"])
    def test_what_was_opened_stays_as_it_is(self, session: Session, admin: User, state: str) -> None:
        campaign = make_campaign(session, state=state)
        dataset = session.get_one(Dataset, campaign.dataset_id)

        with pytest.raises(NotADraft):
            service.edit_campaign(session, campaign, details(dataset, "x", "y"), by=admin)

    def test_nor_can_one_whose_opening_was_asked_for(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, state="draft")
        dataset = session.get_one(Dataset, campaign.dataset_id)
        service.open_campaign(session, campaign, by=admin, now=NOW)

        with pytest.raises(NotADraft):
            service.edit_campaign(session, campaign, details(dataset, "x", "y"), by=admin)


def step(session: Session, campaign: Campaign, name: str, by: User) -> None:
    """Take one step of a campaign's life."""
    if name == "open":
        service.open_campaign(session, campaign, by=by, now=NOW)
    elif name == "pause":
        service.pause_campaign(session, campaign, by=by)
    else:
        service.close_campaign(session, campaign, by=by, now=NOW)


class TestDelete:
    def test_a_draft_leaves_its_dataset_free(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        campaign = make_campaign(session, state="draft")
        dataset = session.get_one(Dataset, campaign.dataset_id)

        service.delete_campaign(session, campaign, by=admin)

        assert session.scalars(select(Campaign)).all() == []
        assert session.scalars(select(CampaignClass)).all() == []
        datasets.delete_dataset(session, storage, dataset, by=admin)

    @pytest.mark.parametrize("state", ["open", "paused"])
    def test_what_was_opened_stays_until_it_is_closed(
        self, session: Session, admin: User, state: str
    ) -> None:
        campaign = make_campaign(session, state=state)

        with pytest.raises(WrongCampaignState):
            service.delete_campaign(session, campaign, by=admin)

        assert session.scalars(select(Campaign)).all() == [campaign]

    def test_so_does_one_whose_opening_was_asked_for(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, state="draft")
        service.open_campaign(session, campaign, by=admin, now=NOW)

        with pytest.raises(WrongCampaignState, match="opening"):
            service.delete_campaign(session, campaign, by=admin)

    def test_is_for_admins(self, session: Session, annotator: User) -> None:
        with pytest.raises(NotAllowed):
            service.delete_campaign(session, make_campaign(session, state="draft"), by=annotator)


class TestStates:
    @pytest.mark.parametrize(
        ("before", "name", "after"),
        [
            ("paused", "open", "open"),
            ("open", "pause", "paused"),
            ("open", "close", "closed"),
            ("paused", "close", "closed"),
            ("draft", "open", "draft"),
        ],
    )
    def test_steps_that_exist(
        self, session: Session, admin: User, before: str, name: str, after: str
    ) -> None:
        campaign = make_campaign(session, state=before)

        step(session, campaign, name, admin)

        session.flush()
        assert campaign.state == after
        assert (campaign.closed_at is not None) == (after == "closed")
        assert (campaign.revealed_seed is not None) == (after == "closed")

    @pytest.mark.parametrize(
        ("before", "name"),
        [
            ("draft", "pause"),
            ("draft", "close"),
            ("open", "open"),
            ("paused", "pause"),
            ("closed", "open"),
            ("closed", "pause"),
            ("closed", "close"),
        ],
    )
    def test_steps_that_do_not(self, session: Session, admin: User, before: str, name: str) -> None:
        campaign = make_campaign(session, state=before)

        with pytest.raises(WrongCampaignState):
            step(session, campaign, name, admin)

        assert campaign.state == before

    @pytest.mark.parametrize("name", ["open", "pause", "close"])
    def test_are_for_admins(self, session: Session, annotator: User, name: str) -> None:
        campaign = make_campaign(session)

        with pytest.raises(NotAllowed):
            step(session, campaign, name, annotator)


class TestOpening:
    def test_asking_twice_is_asking_once(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, state="draft")

        service.open_campaign(session, campaign, by=admin, now=NOW)
        service.open_campaign(session, campaign, by=admin, now=NOW + timedelta(minutes=1))

        assert campaign.opening_requested_at == NOW
        assert session.info.pop("jobs") == [Job(jobs.OPEN_CAMPAIGN, (str(campaign.id),))] * 2

    def test_a_dataset_that_is_gone_cannot_be_drawn_for(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, state="draft")
        session.get_one(Dataset, campaign.dataset_id).state = DatasetState.FAILED

        with pytest.raises(SourceNotReady):
            service.open_campaign(session, campaign, by=admin, now=NOW)

    def test_waits_until_a_worker_has_it_and_again_when_it_is_lost(
        self, session: Session, admin: User
    ) -> None:
        campaign = make_campaign(session, state="draft")
        other = make_campaign(session, state="draft")
        service.open_campaign(session, campaign, by=admin, now=NOW)
        session.flush()

        assert openings.waiting_openings(session, NOW) == [campaign.id]
        assert openings.claim_opening(session, other.id, by="w", now=NOW) is None
        assert openings.claim_opening(session, campaign.id, by="w", now=NOW) is not None
        assert openings.waiting_openings(session, NOW) == []
        assert openings.claim_opening(session, campaign.id, by="v", now=NOW) is None
        assert openings.waiting_openings(session, NOW + 2 * LEASE) == [campaign.id]

    def test_is_given_up_after_some_attempts_and_can_be_asked_for_again(
        self, session: Session, admin: User
    ) -> None:
        campaign = make_campaign(session, state="draft")
        service.open_campaign(session, campaign, by=admin, now=NOW)
        session.flush()
        now = NOW
        for _ in range(MAX_ATTEMPTS):
            openings.give_up_openings(session, now)
            assert openings.claim_opening(session, campaign.id, by="w", now=now) is not None
            now += 2 * LEASE

        assert openings.waiting_openings(session, now) == []
        openings.give_up_openings(session, now)
        session.refresh(campaign)
        assert not campaign.is_opening
        assert "worker" in (campaign.opening_failure or "")

        service.open_campaign(session, campaign, by=admin, now=now)
        session.flush()
        assert campaign.opening_failure is None
        assert openings.waiting_openings(session, now) == [campaign.id]

    def test_an_attempt_that_still_works_is_not_given_up(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, state="draft")
        service.open_campaign(session, campaign, by=admin, now=NOW)
        session.flush()
        campaign.attempts = MAX_ATTEMPTS - 1
        session.flush()
        claimed = openings.claim_opening(session, campaign.id, by="w", now=NOW)
        assert claimed is not None

        openings.give_up_openings(session, NOW + LEASE / 2)

        claims.renew(session, claimed[0], now=NOW + LEASE / 2)


class TestWhoSeesWhat:
    @pytest.mark.parametrize("state", ["draft", "open", "paused", "closed"])
    def test_annotators_find_open_campaigns_only(
        self, session: Session, admin: User, annotator: User, state: str
    ) -> None:
        campaign = make_campaign(session, state=state)

        assert service.find_campaign(session, campaign.id, by=admin) is campaign
        if state == "open":
            assert service.find_campaign(session, campaign.id, by=annotator) is campaign
        else:
            with pytest.raises(CampaignNotFound):
                service.find_campaign(session, campaign.id, by=annotator)

    def test_lists_page_by_key(self, session: Session, admin: User, annotator: User) -> None:
        made = [make_campaign(session, state=state) for state in ("open", "draft", "open", "paused")]
        made[2].created_at = NOW + timedelta(hours=1)
        session.flush()

        first = service.list_campaigns(session, by=admin, limit=3)
        rest = service.list_campaigns(session, by=admin, after=first[-1].id, limit=3)

        assert first[0] is made[2]
        assert {campaign.id for campaign in [*first, *rest]} == {campaign.id for campaign in made}
        assert set(service.list_campaigns(session, by=annotator)) == {made[0], made[2]}

    def test_an_unknown_campaign_is_not_found(self, session: Session, admin: User) -> None:
        with pytest.raises(CampaignNotFound):
            service.find_campaign(session, uuid4(), by=admin)
