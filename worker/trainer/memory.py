"""Which batch fits where a config's own does not."""

import gc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch

from clarinet.data.training_data import TrainData
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ClarinetError
from clarinet.run.training import train_in_steps
from worker.trainer.faults import is_memory

LEAST_BATCH = 2
STEPS = 2  # the first makes the optimiser's values, the second works beside them


def too_large(
    config: TrainConfig, data: TrainData, device: torch.device, *, weights_folder: Path | None
) -> str:
    """A sentence for a run whose memory did not suffice: which batch does.

    No smaller batch is taken by itself. Batch statistics and the risk of complementary labels are functions
    of a whole batch, so halves of it would train something else than what was asked for and is compared.
    """
    has = f"The memory of {_named(device)} does not suffice for a batch of {config.length.batch_size}"
    fits = batch_that_fits(config, data, device, weights_folder=weights_folder)
    if fits is None:
        return f"{has}, nor for a smaller one: its images or its network are too large for it."
    share = " and step_share 0" if config.length.step_share else ""
    return (
        f"{has}. One of {fits} fits: repeat the run with batch_size {fits}{share}, or train where there is "
        "more memory."
    )


def batch_that_fits(
    config: TrainConfig, data: TrainData, device: torch.device, *, weights_folder: Path | None
) -> int | None:
    """The largest half, quarter and so on of the config's batch with which first steps can be taken.

    The steps are taken as in the part of the run that needs most: with adaptation from the first on.
    """
    for size in _halves(config.length.batch_size):
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
        smaller = TrainConfig.from_dict(
            config.flat() | {"batch_size": size, "step_share": 0.0, "adaptation_start_epoch": 0}
        )
        steps = train_in_steps(smaller, data, device=device, weights_folder=weights_folder)
        try:
            for _ in islice(steps, STEPS):
                pass
        except (RuntimeError, MemoryError, ClarinetError) as error:
            if not is_memory(error):
                return None
        else:
            return size
        finally:
            steps.close()
    return None


def _halves(size: int) -> Iterator[int]:
    while (size := size // 2) >= LEAST_BATCH:
        yield size


def _named(device: torch.device) -> str:
    if device.type != "cuda":
        return "this worker's host"
    about = torch.cuda.get_device_properties(device)
    return f"this worker's {about.name} ({about.total_memory / 1024**3:.0f} GB)"
