"""Digests of data, to tell whether a checkpoint, trial or card belongs to these very images and labels."""

from hashlib import blake2b

import torch
from torch import Tensor

from clarinet.data.streams import ImageStream
from clarinet.data.training_data import TrainData

SAMPLED = 256  # images that stand for all of them


def fingerprint(data: TrainData) -> str:
    """A digest of everything in the data that training depends on, to refuse a checkpoint of other data."""
    parts = (
        data.source_images,
        data.complementary,
        data.true,
        data.weights,
        data.example,
        data.held_out,
        data.probabilities,
        data.transition,
        data.class_shares,
        data.target_images,
    )
    further = [torch.tensor(data.pseudo_labelled)] if data.pseudo_labelled else []
    further += [] if data.excluded is None else [data.excluded]
    return digest_of(*parts, torch.tensor(data.num_classes), *further)


def digest_of(*parts: Tensor | ImageStream | None) -> str:
    """BLAKE2b of 128 bits, in hex, over shapes, types and contents.

    Of a stream its shape and at most SAMPLED of its images, evenly spread, the first and the last among
    them: another file is noticed, a few images exchanged in a large one may not be.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        if part is None:
            digest.update(b"none")
            continue
        if not isinstance(part, Tensor):
            digest.update(f"stream of {tuple(part.shape)}".encode())
            part = evenly_spread(part)  # noqa: PLW2901 - digested like a tensor from here
        digest.update(f"{tuple(part.shape)}{part.dtype}".encode())
        digest.update(part.contiguous().cpu().numpy().data)
    return digest.hexdigest()


def evenly_spread(images: Tensor | ImageStream) -> Tensor:
    """At most SAMPLED of the images, the first and the last among them."""
    rows = torch.linspace(0, len(images) - 1, min(len(images), SAMPLED), dtype=torch.float64).round().long()
    return images.index_select(0, rows.to(images.device)) if isinstance(images, Tensor) else images.read(rows)
