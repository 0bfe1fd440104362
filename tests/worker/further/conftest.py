"""A campaign whose dataset has grown."""

import pytest
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.datasets.models import Dataset
from app.db import Database
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.factories import grow_rows, make_campaign
from worker.context import Context


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage) -> Context:
    """What the worker gives its tasks; nothing is published."""
    return Context(settings, database, storage, publish=lambda _: None)


@pytest.fixture
def grown(session: Session) -> Campaign:
    """An open campaign of 20 images in two rounds; 25 further ones have joined since."""
    campaign = make_campaign(session, examples=20, rounds=2)
    grow_rows(session, session.get_one(Dataset, campaign.dataset_id), 25)
    session.commit()
    return campaign
