"""Mixed precision where the processor has it, float32 where it would only cost time."""

import pytest
import torch
from torch import nn

from clarinet.networks.precision import in_bfloat16, mixed
from clarinet.recipes.choices import Precision

CPU = torch.device("cpu")


@pytest.fixture(params=[True, False], ids=["with bfloat16", "without"])
def hardware(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the processor is said to multiply bfloat16 numbers."""
    has: bool = request.param
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: has)
    return has


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_networks_run_in_bfloat16_where_it_is_wanted_and_fast(hardware: bool, precision: Precision) -> None:
    wanted = hardware and precision == "bfloat16"

    with mixed(precision, CPU):
        out = nn.Linear(3, 2)(torch.ones(1, 3))

    assert in_bfloat16(precision, CPU) is wanted
    assert out.dtype == (torch.bfloat16 if wanted else torch.float32)
