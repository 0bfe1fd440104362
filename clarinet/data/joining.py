"""Results of many chunks in one tensor."""

from collections.abc import Iterable

import torch
from torch import Tensor

IMAGE_DIMENSIONS = 4  # (N, C, H, W)


def joined(parts: Iterable[Tensor], count: int) -> Tensor:
    """Join parts along their first axis, like torch.cat, as they come.

    The memory of the whole is taken at once. Parts kept for a later torch.cat would lie between larger
    tensors that were freed in making them. Later ones would fit into none of the holes: half a million images
    took 15 GB.

    Args:
        parts: at least one, (n, ...) each, alike but for n.
        count: N, the sum of their lengths.

    Returns:
        (N, ...); images (N, C, H, W) keep the memory layout of the first part.
    """
    whole, filled = None, 0
    for part in parts:
        if whole is None:
            last = part.ndim == IMAGE_DIMENSIONS and not part.is_contiguous()
            layout = torch.channels_last if last else torch.contiguous_format
            whole = torch.empty(
                (count, *part.shape[1:]), dtype=part.dtype, device=part.device, memory_format=layout
            )
        whole[filled : filled + len(part)] = part
        filled += len(part)
    if whole is None or filled != count:
        raise ValueError(f"{filled} rows came instead of {count}")
    return whole
