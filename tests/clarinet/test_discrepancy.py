"""The multi-kernel MMD: a slow version in double precision, and what holds for any discrepancy."""

import math
import statistics

import pytest
import torch
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.losses.adaptation.discrepancy import multi_kernel_discrepancy


def make_rows(count: int, stream: str, *, shift: float = 0.0) -> Tensor:
    return torch.randn(count, 4, generator=generator(3, stream), dtype=torch.float64) + shift


def make_weights(count: int) -> Tensor:
    return torch.arange(1, count + 1, dtype=torch.float64)


def squared_distance(a: list[float], b: list[float]) -> float:
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def slow(source: Tensor, target: Tensor, source_weights: Tensor, target_weights: Tensor) -> float:
    """Pair by pair: E k(x, x') + E k(y, y') - 2 E k(x, y)."""
    xs, ys = source.tolist(), target.tolist()
    rows = xs + ys
    pairs = [squared_distance(rows[i], rows[j]) for i in range(len(rows)) for j in range(i)]
    median = statistics.median_low(pairs)

    def kernel(a: list[float], b: list[float]) -> float:
        return sum(math.exp(-squared_distance(a, b) / (median * 2**u)) for u in (-2, -1, 0, 1, 2))

    def mean(a: list[list[float]], v: list[float], b: list[list[float]], w: list[float]) -> float:
        total = sum(
            p * q * kernel(x, y) for x, p in zip(a, v, strict=True) for y, q in zip(b, w, strict=True)
        )
        return total / (sum(v) * sum(w))

    v, w = source_weights.tolist(), target_weights.tolist()
    return mean(xs, v, xs, v) + mean(ys, w, ys, w) - 2 * mean(xs, v, ys, w)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 5), (6, 9)])
@pytest.mark.parametrize("shift", [0.0, 1.0, 30.0])
def test_agrees_with_loops(n: int, m: int, shift: float) -> None:
    source, target = make_rows(n, "source"), make_rows(m, "target", shift=shift)
    v, w = make_weights(n), make_weights(m)

    assert multi_kernel_discrepancy(source, target, v, w).item() == pytest.approx(slow(source, target, v, w))
    plain = slow(source, target, torch.ones(n), torch.ones(m))
    assert multi_kernel_discrepancy(source, target).item() == pytest.approx(plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_sets_have_none_in_any_order(dtype: torch.dtype) -> None:
    rows = make_rows(8, "rows").to(dtype)
    order = torch.randperm(8, generator=generator(0, "order"))

    assert multi_kernel_discrepancy(rows, rows[order]).item() == pytest.approx(0, abs=1e-6)


def test_it_is_symmetric_positive_and_does_not_see_the_order_or_the_place() -> None:
    source, target = make_rows(7, "source"), make_rows(5, "target", shift=0.5)
    value = multi_kernel_discrepancy(source, target)

    assert value > 0.01
    torch.testing.assert_close(multi_kernel_discrepancy(target, source), value)
    torch.testing.assert_close(multi_kernel_discrepancy(source.flip(0), target.flip(0)), value)
    torch.testing.assert_close(multi_kernel_discrepancy(source + 100, target + 100), value)
    torch.testing.assert_close(multi_kernel_discrepancy(source * 7, target * 7), value)  # m scales along


def test_a_weight_of_two_is_a_row_that_comes_twice() -> None:
    source, target = make_rows(3, "source"), make_rows(4, "target", shift=1.0)
    weights = torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64)
    # The same rows both times, because a row more would move the median.
    repeated = torch.cat([source, source[2:]])

    one = multi_kernel_discrepancy(repeated, target, torch.tensor([1.0, 0, 1, 1], dtype=torch.float64))
    other = multi_kernel_discrepancy(repeated, target, torch.cat([weights, torch.zeros(1)]))

    torch.testing.assert_close(one, other)


def test_far_sets_reach_the_bound() -> None:
    source, target = torch.zeros(4, 2), torch.full((4, 2), 1e6)

    # Two points: the kernel of a point with itself is 5; the median is the distance between the points.
    between = sum(math.exp(-(2.0**-u)) for u in (-2, -1, 0, 1, 2))
    assert multi_kernel_discrepancy(source, target).item() == pytest.approx(2 * (5 - between), rel=1e-5)


def test_its_gradient_is_that_of_the_kernels_at_a_constant_median() -> None:
    source, target = make_rows(3, "source").requires_grad_(), make_rows(4, "target", shift=1.0)
    median_pairs = torch.pdist(torch.cat([source, target]).detach()).square()
    median = median_pairs.sort().values[(len(median_pairs) - 1) // 2]

    def at_constant_median(x: Tensor) -> Tensor:
        def kernel(a: Tensor, b: Tensor) -> Tensor:
            distances = (a[:, None] - b).square().sum(2)
            return torch.stack([torch.exp(-distances / (median * 2.0**u)) for u in range(-2, 3)]).sum(0)

        return kernel(x, x).mean() + kernel(target, target).mean() - 2 * kernel(x, target).mean()

    (found,) = torch.autograd.grad(multi_kernel_discrepancy(source, target), source)
    (expected,) = torch.autograd.grad(at_constant_median(source), source)

    torch.testing.assert_close(found, expected)


def test_rows_that_are_all_alike_give_no_nan() -> None:
    source = torch.ones(4, 3, requires_grad=True)
    target = torch.cat([torch.ones(3, 3), torch.full((1, 3), 50.0)])  # the median distance is 0

    loss = multi_kernel_discrepancy(source, target)
    torch.autograd.backward(loss)

    assert bool(torch.isfinite(loss))
    assert source.grad is not None
    assert bool(torch.isfinite(source.grad).all())
