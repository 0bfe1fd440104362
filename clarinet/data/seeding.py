"""Randomness as a value: one root seed, one named stream per use, no state to save.

Every draw of a run is a function of (seed, stream, index). A resumed run therefore needs the number of its
next step and no generator states, and a draw added in one place changes no other.
"""

from hashlib import blake2b

import torch
from torch import Tensor


def derived_seed(seed: int, stream: str) -> int:
    """A 63-bit seed for one named use of randomness."""
    digest = blake2b(f"{seed}/{stream}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(seed: int, stream: str) -> torch.Generator:
    """A CPU generator for one named use of randomness: generator(7, "labels")."""
    return torch.Generator().manual_seed(derived_seed(seed, stream))


def seed_global(device: torch.device, seed: int, stream: str) -> None:
    """Seed torch's global generator of one device, for what takes no generator: dropout, initialisation.

    `torch.manual_seed` would seed those of all devices, also in a caller's other runs, and take 100 us.
    """
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        source: torch.Generator = torch.cuda.default_generators[index]
    else:
        source = torch.default_generator
    source.manual_seed(derived_seed(seed, stream))


def on_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy values of any shape to a device; to a GPU without waiting for what it still has to do."""
    # From a GPU to the CPU such a copy would return before the values are there.
    return handed_over(values, device).to(device, non_blocking=device.type == "cuda")


def handed_over(values: Tensor, device: torch.device) -> Tensor:
    """Values from where a copy to a device waits for nothing: a GPU wants them in memory that stays."""
    return values.pin_memory() if device.type == "cuda" and values.device.type == "cpu" else values


class Shuffle:
    """An endless sequence of batches over `count` examples, each pass in a new order.

    Batch `step` is a function of (seed, stream, step). All batches have the same length, min(batch_size,
    count); a batch may end one pass and begin the next. Orders are drawn on the CPU and kept on `device`.

    Where `whole_in` is above 0, a pass drops the rows that fill no whole batch, and each `whole_in` steps
    begin with a new pass: as loaders do that drop the last batch and are begun anew with each epoch.
    """

    def __init__(
        self,
        count: int,
        *,
        batch_size: int,
        seed: int,
        stream: str,
        device: torch.device = torch.device("cpu"),  # noqa: B008 - a value, immutable
        whole_in: int = 0,
    ) -> None:
        self.count = count
        self.device = device
        self.batch_size = min(batch_size, count)
        self._seed = seed
        self._stream = stream
        self._whole_in = whole_in
        self._orders: dict[int, Tensor] = {}

    def batch(self, step: int) -> Tensor:
        """(B,) int64 positions of the batch of a step, counted from 0."""
        if self._whole_in:
            return self._whole_batch(step)
        first = step * self.batch_size
        pass_number, offset = divmod(first, self.count)
        chosen = self._order(pass_number)[offset : offset + self.batch_size]
        missing = self.batch_size - len(chosen)
        if missing == 0:
            return chosen
        return torch.cat([chosen, self._order(pass_number + 1)[:missing]])

    def _whole_batch(self, step: int) -> Tensor:
        batches = self.count // self.batch_size  # in a pass
        epoch, since = divmod(step, self._whole_in)
        passes, place = divmod(since, batches)
        chosen = self._order(epoch * -(-self._whole_in // batches) + passes)
        return chosen[place * self.batch_size : (place + 1) * self.batch_size]

    def _order(self, pass_number: int) -> Tensor:
        if pass_number not in self._orders:
            self._orders = {k: v for k, v in self._orders.items() if k == pass_number - 1}
            source = generator(self._seed, f"{self._stream}/{pass_number}")
            self._orders[pass_number] = on_device(torch.randperm(self.count, generator=source), self.device)
        return self._orders[pass_number]
