"""What a model believes of a campaign's images, so that a further round is drawn by it.

The images are decoded and predicted by a process of its own, as in `worker/predicting.py`. One that cannot be
read is asked about uniformly.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np
from sqlalchemy import select

from app.campaigns import service as campaigns
from app.campaigns.believed import KeptBeliefs
from app.campaigns.drawn import Belief, Further
from app.campaigns.errors import NotByBelief
from app.datasets import service as datasets
from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset, Example
from app.labels.believed import Denied, to_ask_again
from app.registry.inference.limits import MOST_PICTURES
from app.registry.models import Model
from app.registry.predicting import served
from app.registry.predictor import Predictor, Sent, awaited
from app.registry.service import ONNX
from app.storage import Storage
from clarinet.files.beliefs import beliefs_of
from worker.beating import beating
from worker.context import Context

MOST_BELIEFS = 50_000_000  # images times classes: they are kept in the database, two bytes each


def believed(
    context: Context, further: Further, belief: Belief, *, beat: Callable[[], None]
) -> tuple[KeptBeliefs, dict[int, int]]:
    """What the model believes of each image that is to be asked about again, and their ids by position.

    `beat`: keeps the claim, and raises where it is lost.

    Raises:
        NotByBelief: no such image is there, the model is gone, or too much would have to be kept.
        StorageAway: the storage does not answer now.
        ModelWithoutOnnx, ModelCannotPredict, StoredFileMissing, StoredFileDamaged: it cannot predict.
    """
    num_classes = len(further.class_names)
    with context.reading() as session:
        model = session.get(Model, belief.model_id)
        if model is None:
            raise NotByBelief("The model was deleted before the questions were drawn.")
        onnx = f"{model.key}/{ONNX}"
        campaign = campaigns.any_campaign(session, further.campaign_id)
        denied = to_ask_again(session, campaign, end_position=further.end_position)
        shards = datasets.prefix_of(session.get_one(Dataset, further.dataset_id))
    denied = [image for image in denied if num_classes - len(set(image.classes)) > 1]
    if not denied:
        raise NotByBelief(
            "No image has answers of no alone: people must answer the questions there are first."
        )
    if len(denied) * num_classes > MOST_BELIEFS:
        raise NotByBelief(f"{len(denied):,} images of {num_classes:,} classes are more than is kept.")
    # Whole numbers from the start: as floats the most that is kept would take four times as much memory.
    beliefs = np.tile(beliefs_of(np.full(num_classes, 1 / num_classes)), (len(denied), 1))
    with ExitStack() as stack, Predictor(longest_s=math.inf) as predictor:
        folder = beating(lambda: stack.enter_context(context.patient.local(onnx)), beat)
        predicts = served(folder, model)
        for start in range(0, len(denied), MOST_PICTURES):
            part = denied[start : start + MOST_PICTURES]
            pictures = beating(partial(_read, context, shards, part), beat)
            said = awaited(predictor.ask(predicts, pictures), beat)
            for place, one in enumerate(said, start):
                if one.probabilities is not None:
                    beliefs[place] = beliefs_of(np.clip(one.probabilities, 0, 1))
    possible = np.ones(beliefs.shape, np.bool_)
    for place, image in enumerate(denied):
        possible[place, list(image.classes)] = False
    kept = KeptBeliefs(np.array([image.position for image in denied], np.int64), beliefs, possible)
    return kept, {image.position: image.example_id for image in denied}


def _read(context: Context, shards: str, denied: Sequence[Denied]) -> list[Sent]:
    ids = [image.example_id for image in denied]
    with context.reading() as session:
        rows = session.scalars(select(Example).where(Example.id.in_(ids))).all()
    by_id = {example.id: example for example in rows}
    storage = context.patient
    return [Sent(f"image {by_id[id_].position}", file_of(storage, shards, by_id[id_])) for id_ in ids]


def file_of(storage: Storage, shards: str, example: Example) -> bytes:
    """The bytes of an image as they were taken in."""
    return storage.read_as_written(
        shard_key(shards, example.shard),
        example.digest,
        offset=example.byte_offset,
        length=example.byte_length,
    )
