"""What a trained model says of each picture, and where it places some of both domains."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from app.registry.kept_pictures import COMPONENTS, MOST_ON_MAP, Among, KeptPictures, likeliest
from app.registry.target_predictions import TargetPredictions
from clarinet.files.names import NO_LABEL
from clarinet.networks.classifier import SOURCE, TARGET
from clarinet.recipes.doing import OnPart, silently
from clarinet.run.evaluation import predict, predict_resized
from clarinet.run.feature_map import features_of, pixels_at, principal_components, sample_rows
from clarinet.run.training import TrainResult
from worker.trainer.trial_data import TrialData


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Pictures of one kind."""

    among: Among
    example_ids: NDArray[np.int64]  # (N,)
    true_classes: NDArray[np.int32]  # (N,)
    classes: NDArray[np.int32]  # (N, L)
    probabilities: NDArray[np.float32]  # (N, L)


def pictures_of(result: TrainResult, loaded: TrialData, *, beat: OnPart = silently) -> KeptPictures:
    """Predict the target's pictures, and place a sample of both domains by the model's features.

    Equal models of equal data give equal arrays. `beat` is called as it gets on.
    """
    data, model = loaded.data, result.model
    sources = sample_rows(len(data.source_images), most=MOST_ON_MAP)
    targets = sample_rows(len(data.target_images), most=MOST_ON_MAP)
    seen = pixels_at(model, data.source_images, sources, on_part=beat)
    count = len(loaded.test_ids) + len(loaded.target_ids) + len(sources)

    def part(among: Among, ids: NDArray[np.int64], known: NDArray[np.int64], said: Tensor) -> _Part:
        return _Part(among, ids, known.astype(np.int32), *likeliest(said.numpy(), pictures=count))

    parts = [
        part(
            Among.TRAIN,
            loaded.target_ids,
            _known(data.target_labels, len(loaded.target_ids)),
            predict(model, data.target_images, on_part=beat),
        ),
        part(
            Among.SOURCE,
            loaded.source_ids[sources.numpy()],
            loaded.source_classes[sources.numpy()],
            predict_resized(model, seen, domain=SOURCE, on_part=beat),
        ),
    ]
    if data.target_test_images is not None:
        known = _known(data.target_test_labels, len(loaded.test_ids))
        said = predict(model, data.target_test_images, on_part=beat)
        parts.insert(0, part(Among.TEST, loaded.test_ids, known, said))
    shown = pixels_at(model, data.target_images, targets, on_part=beat)
    features = torch.cat(
        [
            features_of(model, shown, domain=TARGET, on_part=beat),
            features_of(model, seen, domain=SOURCE, on_part=beat),
        ]
    )
    found = principal_components(features, most=COMPONENTS)
    rows = np.concatenate(
        [targets.numpy() + len(loaded.test_ids), np.arange(count - len(sources), count, dtype=np.int64)]
    )
    return KeptPictures(
        example_ids=np.concatenate([each.example_ids for each in parts]),
        among=np.repeat(
            np.array([each.among.code for each in parts], np.uint8), [len(each.example_ids) for each in parts]
        ),
        true_classes=np.concatenate([each.true_classes for each in parts]),
        classes=np.concatenate([each.classes for each in parts]),
        probabilities=np.concatenate([each.probabilities for each in parts]),
        map_rows=rows,
        map_places=found.places.numpy(),
        map_shares=found.shares.numpy(),
    )


def target_predictions_of(pictures: KeptPictures) -> TargetPredictions:
    """What the model takes the target's training images for, as evaluations know it."""
    chosen = pictures.among == Among.TRAIN.code
    return TargetPredictions(
        example_ids=pictures.example_ids[chosen],
        classes=pictures.classes[chosen, 0].astype(np.int64),
        probabilities=pictures.probabilities[chosen, 0],
    )


def _known(labels: Tensor | None, count: int) -> NDArray[np.int64]:
    return np.full(count, NO_LABEL, np.int64) if labels is None else labels.numpy()
