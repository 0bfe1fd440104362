"""Imports that an admin's choice mends: files left out, and an encoding that had to be said."""

from collections.abc import Callable

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns import service as campaigns
from app.campaigns.service import CampaignDetails
from app.datasets import importing, service
from app.datasets.errors import ImportNotKept
from app.datasets.models import Dataset, DatasetState
from app.quality import service as quality
from app.stores.folder import FolderStorage
from tests.app.datasets.files import picture, zip_of
from tests.cases.taking import packed_as
from tests.factories import NOW, make_user
from tests.worker.intake.conftest import examples_of, files_in
from worker.context import Context
from worker.drawing import open_campaign
from worker.intake import import_dataset

GOOD = {f"cat/{number}.png": picture(shade=number) for number in range(3)}
BAD = {"cat/7.png": b"broken", "cat/8.png": b""}


def test_an_admin_goes_on_without_the_files_that_cannot_be_read(
    context: Context,
    session: Session,
    storage: FolderStorage,
    admin: User,
    upload: Callable[..., Dataset],
) -> None:
    dataset = upload(zip_of(GOOD | BAD))
    import_dataset(context, dataset.id)
    session.refresh(dataset)
    assert (dataset.state, dataset.mend) == (DatasetState.FAILED, "skip_bad")
    assert [fault["file"] for fault in dataset.faults] == ["cat/7.png", "cat/8.png"]
    import_dataset(context, dataset.id)  # a doubled message sweeps nothing away

    importing.import_again(session, dataset, skip_bad=True, by=admin)
    session.commit()
    import_dataset(context, dataset.id)

    session.refresh(dataset)
    assert (dataset.state, dataset.failure, dataset.mend) == (DatasetState.READY, None, None)
    assert dataset.notes[-1] == "2 files were left out."
    assert [fault["file"] for fault in dataset.faults] == ["cat/7.png", "cat/8.png"]
    assert [example.filename for example in examples_of(session, dataset)] == sorted(GOOD)
    assert all("shard" in file for file in files_in(storage))
    with pytest.raises(ImportNotKept):
        importing.import_again(session, dataset, skip_bad=True, by=admin)


def test_an_encoding_that_was_asked_for(
    context: Context, session: Session, admin: User, upload: Callable[..., Dataset]
) -> None:
    dataset = upload(packed_as("gbk", {"\u732b/1.png": GOOD["cat/1.png"], "\u72d7/2.png": GOOD["cat/2.png"]}))
    import_dataset(context, dataset.id)
    session.refresh(dataset)
    assert dataset.mend == "say_encoding"

    importing.import_again(session, dataset, encoding="utf-8", by=admin)  # which it is not
    session.commit()
    import_dataset(context, dataset.id)
    session.refresh(dataset)
    assert dataset.mend == "say_encoding"
    importing.import_again(session, dataset, encoding="gb18030", by=admin)
    session.commit()
    import_dataset(context, dataset.id)

    session.refresh(dataset)
    assert dataset.class_names == ["\u72d7", "\u732b"]
    assert dataset.notes == ["The names in upload.bin were read as GBK, Chinese."]


def test_only_an_admin_may(
    context: Context, session: Session, upload: Callable[..., Dataset], storage: FolderStorage
) -> None:
    dataset = upload(zip_of(GOOD | BAD))
    import_dataset(context, dataset.id)
    session.refresh(dataset)

    with pytest.raises(Exception, match="admin"):
        importing.import_again(session, dataset, skip_bad=True, by=make_user(session))
    service.delete_dataset(session, storage, dataset, by=session.get_one(User, dataset.created_by_id))
    session.commit()
    assert files_in(storage) == []


def test_the_same_picture_twice_is_said_and_asked_once_where_a_campaign_wants_that(
    context: Context, session: Session, admin: User, upload: Callable[..., Dataset]
) -> None:
    twins = {"cat/a.png": GOOD["cat/1.png"], "cat/b.png": GOOD["cat/1.png"], "dog/c.png": GOOD["cat/2.png"]}
    dataset = upload(zip_of(twins))

    import_dataset(context, dataset.id)

    session.refresh(dataset)
    assert dataset.notes == [
        "1 image is the same as an earlier one; a campaign may ask about each only once."
    ]
    asked = {}
    for skip_twins in (False, True):
        details = CampaignDetails(f"Skip {skip_twins}", dataset.id, skip_twins=skip_twins)
        campaign = campaigns.create_campaign(session, details, by=admin, now=NOW)
        campaigns.open_campaign(session, campaign, by=admin, now=NOW)
        session.commit()
        open_campaign(context, campaign.id)
        session.refresh(campaign)
        check = quality.check_draws(session, campaigns.any_campaign(session, campaign.id), now=NOW)
        asked[skip_twins] = campaign.question_count, check.draws_match and check.commitment_matches
    assert asked == {False: (3, True), True: (2, True)}
