"""Published models, as a trainer leaves them."""

import pytest
from sqlalchemy.orm import Session

from app.registry import service
from app.registry.models import Model
from app.runs.models import Trial
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_run

WEIGHTS = b"eight by" * 100


def publish(session: Session, storage: FolderStorage, trial: Trial, **facts: object) -> Model:
    """The model of a trial of a run that is loaded, with its weights."""
    run = trial.run
    key = service.key_of(trial.id, 1)
    digest = storage.put(f"{key}/{service.WEIGHTS}", WEIGHTS)
    card = {
        "run": run.number,
        "run_id": str(run.id),
        "seed": trial.seed,
        "method": run.method,
        "setting": run.setting,
        "preset": run.preset,
        "classes": ["cat", "<dog>"],
        "config": run.config,
        "labels": run.snapshot_facts,
        "label_snapshot": run.snapshot_digest,
        "target_accuracy": 0.875,
        "per_class_accuracy": [1.0, None],
        "confusion": [[7, 1], [0, 0]],
        "scored_on": 8,
        "epochs": 2,
        "seconds": 1.5,
        "versions": {"torch": "2.15"},
    }
    return service.publish_model(
        session,
        trial_id=trial.id,
        key=key,
        digest=digest,
        tensors_digest="7e" * 32,
        size_bytes=len(WEIGHTS),
        card=card | facts,
        now=NOW,
    )


@pytest.fixture
def model(session: Session, storage: FolderStorage) -> Model:
    """A model of a run's first seed."""
    run = make_run(session, storage, train=2, state="succeeded")
    model = publish(session, storage, run.trials[0])
    session.commit()
    return model


@pytest.fixture
def with_onnx(session: Session, storage: FolderStorage, model: Model) -> Model:
    """The model with the files of a trainer that could export it."""
    digest = storage.put(f"{model.key}/{service.ONNX}", b"graph")
    storage.put(f"{model.key}/{service.PAGE}", b"# Model card")
    model.card = model.card | {"onnx": {"sha256": digest, "size_bytes": 5}}
    session.commit()
    return model
