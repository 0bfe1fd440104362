"""What a step takes from a domain: rows on the device, or read from a stream before they are needed."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from clarinet.data.images import resized
from clarinet.data.inputs import Inputs
from clarinet.data.seeding import Shuffle, on_device
from clarinet.data.streams import ImageStream
from clarinet.networks.classifier import ModelSpec
from clarinet.recipes.doing import OnPart, silently
from clarinet.recipes.errors import DataError

READERS = min(4, os.cpu_count() or 1)  # threads of a stream; decoding releases Python's lock
AHEAD = READERS + 1  # batches read before they are asked for


class StreamedImages:
    """Rows of a stream, as a network takes them. Stands for the uint8 tensor (N, C, S, S) in Domains.

    Indexing selects rows without reading them. Threads read; resizing is left to the device.
    """

    def __init__(self, stream: ImageStream, spec: ModelSpec, device: torch.device) -> None:
        self.device = device
        self._stream = stream
        self._spec = spec
        self._rows: Tensor | None = None
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="clarinet-images")

    def __len__(self) -> int:
        return len(self._stream) if self._rows is None else len(self._rows)

    def __getitem__(self, rows: Tensor) -> "StreamedImages":
        """Those rows, (R,) int64, of these; the threads are shared."""
        chosen = object.__new__(StreamedImages)
        chosen.__dict__.update(self.__dict__)
        chosen._rows = rows.cpu() if self._rows is None else self._rows[rows.cpu()]
        return chosen

    def start(self, rows: Tensor) -> "Future[Tensor]":
        """Begin to read rows, (B,) int64 on the CPU."""
        return self._pool.submit(self._read, rows if self._rows is None else self._rows[rows])

    def _read(self, rows: Tensor) -> Tensor:
        images = self._stream.read(rows)
        if images.dtype != torch.uint8 or images.shape != (len(rows), *self._stream.shape[1:]):
            raise DataError(
                f"{type(self._stream).__name__} read {images.dtype} of shape {tuple(images.shape)} for "
                f"{len(rows)} rows of {tuple(self._stream.shape)}"
            )
        return images.pin_memory() if self.device.type == "cuda" else images

    def finish(self, reading: "Future[Tensor]") -> Tensor:
        """Wait for what was begun: uint8 (B, C, S, S) on the device."""
        return resized(reading.result().to(self.device, non_blocking=True), self._spec)


Pixels = Tensor | StreamedImages
"""The images of a domain: a uint8 tensor (N, C, S, S) on the device, or what is read like one."""


def pixels_of(
    images: Tensor | ImageStream, spec: ModelSpec, device: torch.device, *, on_part: OnPart = silently
) -> Pixels:
    """A tensor of any image size resized as a whole onto the device, a stream as it is needed.

    Args:
        images: uint8 (N, H, W) or (N, H, W, 3).
        spec: of the network, whose S and C they get.
        device: where the network is.
        on_part: called after some of a tensor.
    """
    if isinstance(images, Tensor):
        return resized(images, spec, on_part=on_part).to(device)
    return StreamedImages(images, spec, device)


def parts(images: Pixels, size: int) -> Iterator[Tensor]:
    """All N images in their order, on their device: uint8 (R, C, S, S), R <= size; nothing where N is 0."""
    if isinstance(images, Tensor):
        yield from torch.split(images, size) if len(images) else ()
        return
    waiting: list[Future[Tensor]] = []
    for rows in torch.split(torch.arange(len(images)), size) if len(images) else ():
        waiting.append(images.start(rows))
        if len(waiting) > READERS:
            yield images.finish(waiting.pop(0))
    for reading in waiting:
        yield images.finish(reading)


def taken(images: Pixels, rows: Tensor) -> Tensor:
    """Some rows, (R,) int64 on the images' device or the CPU, at once: uint8 (R, C, S, S) on the device."""
    if isinstance(images, Tensor):
        return images.index_select(0, on_device(rows, images.device))
    return images.finish(images.start(rows.cpu())).contiguous()  # as index_select leaves them


class Feed:
    """Batches of the images behind some labels as a function of the step; a stream's are read ahead.

    Args:
        images: of a domain.
        rows: (R,) int64, labels to draw batches of, R >= 1.
        example: (L,) int64, the image of each label.
        batch_size: labels in a batch.
        seed, stream: which draws.
        whole_in: see Shuffle.
    """

    def __init__(
        self,
        images: Pixels,
        rows: Tensor,
        example: Tensor,
        *,
        batch_size: int,
        seed: int,
        stream: str,
        whole_in: int = 0,
    ) -> None:
        self._images = images
        self._name = f"batch/{stream}"
        # A stream's rows are looked up by the CPU; a tensor's stay where it is, so that no step copies them.
        where = images.device if isinstance(images, Tensor) else torch.device("cpu")
        self._rows = rows.to(where)
        self._example = example.to(where)
        self._shuffle = Shuffle(
            len(rows),
            batch_size=batch_size,
            seed=seed,
            stream=f"shuffle/{stream}",
            device=where,
            whole_in=whole_in,
        )
        self._reading: dict[int, Future[Tensor]] = {}
        self._next = -1  # the step after the one asked for last

    def batch(self, inputs: Inputs, *, of: int = 1, place: int = 0) -> tuple[Tensor, Tensor]:
        """Rows of the labels (B,) and their images, uint8 (B, C, S, S), both on the device.

        Args:
            inputs: of the step.
            of: how many batches a step takes.
            place: which of them, counted from 0.
        """
        if isinstance(self._images, Tensor):
            name = f"{self._name}/{place}"
            (positions,) = inputs.tensors(name, lambda step: [self._shuffle.batch(of * step + place)])
            rows = self._rows[positions]
            # Indexing with brackets takes twelve times as long on the CPU.
            return rows, self._images.index_select(0, self._example[rows])
        step = of * inputs.step + place
        rows = self._rows[self._shuffle.batch(step)]
        # Where batches are taken now and then, and not step by step, those between would be read in vain.
        ahead = AHEAD if step in {self._next - 1, self._next} else 0
        self._next = step + 1
        wanted = range(step, step + ahead + 1)
        kept = {at: self._reading[at] for at in wanted if at in self._reading}
        self._reading = {at: kept[at] if at in kept else self._start(self._images, at) for at in wanted}
        # Sums go in the order of memory, and rows that index_select takes of a tensor are always contiguous.
        images = self._images.finish(self._reading[step]).contiguous()
        return on_device(rows, self._images.device), images

    def _start(self, images: StreamedImages, step: int) -> "Future[Tensor]":
        return images.start(self._example[self._rows[self._shuffle.batch(step)]])
