"""What the end of a trial keeps of each picture, by real trainings on tiny images."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from sqlalchemy import select

from app.accounts.models import Role, User
from app.clock import utc_now
from app.disk.measuring import measure
from app.disk.models import DiskKind, DiskUse
from app.disk.retention import Policy, tidy
from app.mistakes import service
from app.mistakes.listing import confusion_of
from app.registry import removing
from app.registry.kept_pictures import FACTS, FILE, Among, kept_pictures
from app.registry.models import Model
from app.registry.target_predictions import target_predictions
from app.runs.models import Run
from clarinet.recipes.config import TrainConfig
from clarinet.run.evaluation import predict
from clarinet.run.training import train
from tests.worker.conftest import folder_of, trial_of
from tests.worker.test_training import claimed
from worker.context import Context
from worker.trainer.pictures import pictures_of
from worker.trainer.trial_data import TrialData


@pytest.mark.long
def test_a_trial_keeps_its_pictures_to_the_same_bits_until_its_model_goes(
    context: Context, loaded: tuple[Run, TrialData]
) -> None:
    run, data = loaded
    config = TrainConfig.from_dict(run.config | {"seed": 0, "epochs": 1, "steps_per_epoch": 2})
    first, second = train(config, data.data), train(config, data.data)

    claimed(context, run).publish(first, data)

    with context.reading() as session:
        [model] = session.scalars(select(Model)).all()
        admin = session.scalars(select(User).where(User.role == Role.ADMIN)).first()
        assert admin is not None
        kept = kept_pictures(context.storage, model)
        said = target_predictions(context.storage, model)
        seen = service.look(session, context.storage, run.trials[0].id, by=admin)
    assert kept is not None
    result = trial_of(context, run.trials[0].id).result
    assert result is not None
    assert confusion_of(kept, Among.TEST, 2) == result["confusion"]
    taken_for = np.bincount(said.classes, minlength=2).tolist()
    assert taken_for == result["predicted_counts"] == model.card["predicted_counts"]
    assert seen.groups == {Among.TEST: 40, Among.TRAIN: 120, Among.SOURCE: 120}
    inside = kept.among == Among.TRAIN.code
    assert kept.example_ids[inside].tolist() == said.example_ids.tolist() == data.target_ids.tolist()
    assert kept.classes[inside, 0].tolist() == said.classes.tolist()
    probabilities = predict(first, data.data.target_images)
    np.testing.assert_array_equal(kept.probabilities[inside], probabilities.sort(1, descending=True).values)
    assert kept.true_classes.tolist() == [place % 2 for place in (*range(120, 160), *range(120), *range(120))]
    assert len(kept.map_rows) == 240
    assert model.card[FACTS]["on_map"] == 240
    assert kept.map_shares.sum() <= 1 + 1e-9
    # Equal trainings leave equal bytes.
    again = pictures_of(second, data)
    for name, values in asdict(kept).items():
        assert getattr(again, name).tobytes() == values.tobytes(), name
    path = folder_of(context).path(f"{model.key}/{FILE}")
    tidy(context.database, context.storage, Policy.of(context.settings), now=utc_now())
    assert path.exists()
    measure(context.database, context.storage, now=utc_now())
    with context.reading() as session:
        use = session.get_one(DiskUse, DiskKind.MODELS)
    assert use.size_bytes >= path.stat().st_size + model.size_bytes
    with context.unit_of_work() as session:
        removing.delete_model(session, context.storage, session.get_one(Model, model.id), by=admin)
    assert not path.exists()


def test_without_known_test_images_the_training_images_are_there_alone(
    loaded: tuple[Run, TrialData],
) -> None:
    run, whole = loaded
    unlabelled = replace(whole.data, target_test_images=None, target_test_labels=None, target_labels=None)
    data = replace(whole, data=unlabelled, test_ids=whole.test_ids[:0])
    config = TrainConfig.from_dict(run.config | {"seed": 0, "epochs": 1, "steps_per_epoch": 1})

    kept = pictures_of(train(config, unlabelled), data)

    assert set(kept.among.tolist()) == {Among.TRAIN.code, Among.SOURCE.code}
    assert confusion_of(kept, Among.TRAIN, 2) is None
    assert (kept.true_classes[:120] == -1).all()
    assert kept.map_rows.tolist() == list(range(240))
