"""Dropout from random bits is dropout; batch normalisation is tested in test_batch_norm."""

import torch
import torch.nn.functional as F
from torch import nn

from clarinet.networks.layers import HalfDropout


def dropped(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        out: torch.Tensor = HalfDropout()(torch.full(shape, 3.0, dtype=dtype))
    return out


def test_half_of_the_values_are_zero_and_the_others_double() -> None:
    out = dropped(301, 203, seed=0)  # not a multiple of eight

    assert torch.unique(out).tolist() == [0, 6]
    for share in (out.mean(), *out.mean(0)[:9], *out.mean(1)[:9]):
        assert abs(float(share) - 3) < 0.9  # five standard errors of 301 values are 0.86


def test_neighbours_in_any_distance_are_independent() -> None:
    kept = dropped(100_000, seed=1) / 3 - 1  # -1 or 1

    for distance in (1, 2, 7, 8, 9, 16, 64):
        assert abs(float((kept[distance:] * kept[:-distance]).mean())) < 5 / 100_000**0.5


def test_draws_follow_from_the_global_seed() -> None:
    assert torch.equal(dropped(50, 50, seed=2), dropped(50, 50, seed=2))
    assert not torch.equal(dropped(50, 50, seed=2), dropped(50, 50, seed=3))


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.ones(40, 9, dtype=torch.bfloat16, requires_grad=True)

    y = HalfDropout()(x)
    torch.autograd.backward(y.float().sum())

    assert y.dtype == torch.bfloat16
    assert x.grad is not None
    assert torch.equal(x.grad, y.detach())


def test_eval_mode_changes_nothing() -> None:
    x = torch.rand(3, 4)

    assert torch.equal(HalfDropout().eval()(x), x)
    assert torch.equal(nn.Sequential(HalfDropout()).eval()(x), F.dropout(x, 0.5, training=False))
