"""A campaign with a round by a model's belief."""

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.db import Database
from app.registry.models import Model
from app.runs.models import Run
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.factories import make_campaign, make_dataset
from tests.onnx_models import make_model
from tests.worker.belief_rounds.asking import CLASSES, answer_all, draw
from worker.context import Context


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage) -> Context:
    return Context(settings, database, storage, publish=lambda _: None)


@pytest.fixture
def campaign(session: Session, storage: FolderStorage) -> Campaign:
    """24 images of four classes, all questions answered rightly; a brighter image has a higher class."""
    dataset = make_dataset(session, storage, class_names=CLASSES, train=24)
    campaign = make_campaign(session, dataset=dataset)
    answer_all(session, campaign)
    session.commit()
    return campaign


@pytest.fixture
def model(session: Session, storage: FolderStorage, campaign: Campaign) -> Model:
    """It was trained on the campaign's labels, so to say, and knows dark from light."""
    model = make_model(session, storage, classes=CLASSES)
    session.get_one(Run, model.run_id).campaign_id = campaign.id
    session.commit()
    return model


@pytest.fixture
def asked_again(
    context: Context, session: Session, campaign: Campaign, model: Model, admin: User
) -> Campaign:
    """The campaign with a round by the model's belief, whose questions nobody has answered."""
    draw(session, context, model, campaign, admin)
    return campaign
