"""Mixed precision, where the device has it."""

from contextlib import AbstractContextManager

import torch

from clarinet.recipes.choices import Precision


def in_bfloat16(precision: Precision, device: torch.device) -> bool:
    """Whether a config's precision means bfloat16 on a device.

    A processor without AVX-512 or AMX multiplies bfloat16 numbers one by one, four to fourteen times slower
    than float32 ones. A run in bfloat16 is computed in float32 there.
    """
    if precision != "bfloat16":
        return False
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    with_onednn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(with_onednn and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def mixed(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """In which networks run forwards; losses belong outside of it."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=in_bfloat16(precision, device))
