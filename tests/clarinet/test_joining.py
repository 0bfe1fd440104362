"""Parts become one tensor."""

import pytest
import torch

from clarinet.data.joining import joined


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_it_is_torch_cat_in_the_layout_of_the_first(layout: torch.memory_format) -> None:
    images = torch.arange(5 * 3 * 4 * 4).reshape(5, 3, 4, 4).contiguous(memory_format=layout)

    out = joined(iter((images[:2], images[2:3], images[3:])), 5)

    assert torch.equal(out, images)
    assert out.stride() == torch.cat([images[:2], images[2:]]).stride()


def test_slices_of_rows_are_joined_as_well() -> None:
    table = torch.arange(40).reshape(10, 4)

    assert torch.equal(joined([table[:4, :3], table[4:, :3]], 10), table[:, :3])


@pytest.mark.parametrize("lengths", [[], [2], [2, 2]])
def test_other_than_so_many_rows_are_refused(lengths: list[int]) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        joined([torch.zeros(length, 2) for length in lengths], 3)
