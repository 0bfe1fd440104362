"""`python -m worker.trainer.trying`: whether a process can load what trains, and use its device."""

import torch

from app.settings import Settings
from worker.trainer.training import device_of

if __name__ == "__main__":
    assert torch.ones(2, device=device_of(Settings().device)).sum().item() == 2  # noqa: PLR2004
