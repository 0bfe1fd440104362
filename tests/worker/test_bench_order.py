"""Yes stays rare from the first question to the last, and nothing but what is said above is asked again."""

import pytest

from worker.bench.order import HEADER, Crowd, Order, as_row, as_text, measure_order, measure_orders

# A share of a hundred answers may lie this far from what is expected: three standard deviations.
BY_CHANCE = 0.15


def assert_rare(found: Order, bound: float, extra: float) -> None:
    tenth = found.answers / 10
    assert max(found.yes_by_part) < bound + 3 * (0.25 / tenth) ** 0.5
    assert found.last_yes < bound + BY_CHANCE / 3**0.5  # the mean of three people
    assert found.most_yes < bound + BY_CHANCE
    assert found.others <= extra
    assert found.waiting == 0


@pytest.mark.long
@pytest.mark.parametrize("page", [0, 24])
def test_yes_stays_rare_to_the_end(page: int) -> None:
    found = measure_order(10, 1_500, Crowd(page=page))

    assert_rare(found, bound=0.35, extra=0.05)
    assert sum(found.yes_by_part[1:9]) / 8 > 0.14, "confirmations come all along"
    assert as_text(found).count("|") == HEADER.count("|")
    assert as_row(found)["classes"] == 10


@pytest.mark.long
@pytest.mark.parametrize("crowd", [Crowd(speeds=(3, 1)), Crowd(speeds=(9, 1), page=24)], ids=["3:1", "9:1"])
def test_of_two_classes_it_is_one_in_two_at_any_speed(crowd: Crowd) -> None:
    found = measure_order(2, 1_000, crowd)

    # The slow one's stretches, and the last fifth of all, which is 300 answers: within three deviations.
    slow = found.stretches[1]
    assert sum(slow) / len(slow) < 0.5 + 0.09
    assert sum(found.yes_by_part[-2:]) / 2 < 0.5 + 0.09
    assert found.others == 0, "nobody errs"
    assert found.waiting == 0
    assert abs(found.confirmations - 4 / 9) < 3 * (0.25 / 1_000) ** 0.5


@pytest.mark.long
@pytest.mark.parametrize(("times", "page"), [(2, 0), (3, 24)])
def test_whoever_is_faster_leaves_no_block_of_confirmations(times: float, page: int) -> None:
    found = measure_orders(10, 1_000, Crowd(speeds=(times, 1), page=page), seeds=4)

    # A mean of four campaigns lies within a half of BY_CHANCE of what is expected.
    assert found.expected_yes < 0.35 + BY_CHANCE / 2
    assert_rare(found, bound=0.35, extra=0.05)


@pytest.mark.long
def test_one_person_alone_is_asked_everything_once() -> None:
    found = measure_order(10, 1_000, Crowd(speeds=(1,)))

    assert found.answers == 1_000
    assert found.others < 0
    assert 60 < found.waiting < 140, "each yes waits for a second person"
