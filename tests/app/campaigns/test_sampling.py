"""Which images an evaluation judges, and in which order."""

import numpy as np

from app.campaigns.sampling import (
    DRAWN,
    EVALUATED,
    LEAST_OF_CLASS,
    draw_evaluation,
    images_to_mix_in,
    in_random_order,
    strata_of,
)
from app.quality import chi_square

SEED = "5a" * 32
PLACES = list(range(0, 2000, 2))


def test_every_image_has_the_same_chance_and_a_larger_sample_holds_the_smaller() -> None:
    hits = np.zeros(20)
    for number in range(400):
        ordered = in_random_order(f"{number:064x}", list(range(20)))
        assert sorted(ordered.tolist()) == list(range(20))
        hits[ordered[:5]] += 1

    assert chi_square.uniform(hits.astype(int).tolist()).p_value > 0.001
    grown = in_random_order(SEED, [*PLACES, *range(2000, 2100)])
    assert [place for place in grown.tolist() if place < 2000] == in_random_order(SEED, PLACES).tolist()


def test_what_is_mixed_in_lies_outside_the_sample_while_there_is_enough() -> None:
    ordered = in_random_order(SEED, list(range(10)))

    few, all_of_them = (images_to_mix_in(ordered, sample=6, count=count) for count in (4, 8))

    assert set(few.tolist()).isdisjoint(ordered[:6].tolist())
    assert len(set(all_of_them.tolist())) == 8


def test_whoever_stops_has_judged_a_random_part_in_blocks_of_a_class() -> None:
    ordered = in_random_order(SEED, PLACES)
    asked, others = ordered[:400], images_to_mix_in(ordered, sample=400, count=400)
    predicted = asked // 2 % 4

    drawn = draw_evaluation(SEED, asked, predicted, others, num_classes=4)

    again = draw_evaluation(SEED, asked, predicted, others, num_classes=4)
    assert np.array_equal(drawn.positions, again.positions)
    is_evaluated = drawn.rounds == EVALUATED
    assert sorted(drawn.positions[is_evaluated].tolist()) == sorted(asked.tolist())
    assert sorted(drawn.positions[drawn.rounds == DRAWN].tolist()) == sorted(others.tolist())
    assert np.array_equal(drawn.classes[is_evaluated], drawn.positions[is_evaluated] // 2 % 4)
    counts = np.bincount(drawn.classes[~is_evaluated], minlength=4).tolist()
    assert chi_square.uniform(counts).p_value > 0.001
    half = is_evaluated[:400]
    assert 150 < half.sum() < 250  # neither kind comes first
    changes = np.count_nonzero(np.diff(drawn.classes))
    assert changes < 800 / 6  # blocks of about twelve


def test_each_class_gets_its_share_and_rare_ones_more() -> None:
    classes = [0] * 900 + [1] * 90 + [2] * 10
    predicted = [classes[place] for place in in_random_order(SEED, list(range(1000))).tolist()]

    strata = strata_of(predicted, sample=300, num_classes=4)

    assert [(item.population, item.sampled) for item in strata] == [(900, 270), (90, 27), (10, 10), (0, 0)]
    for class_, (_, sampled, end) in enumerate(strata):
        assert predicted[:end].count(class_) == sampled
        assert not sampled or predicted[end - 1] == class_
    fewer = strata_of(predicted, sample=100, num_classes=4)
    assert [item.sampled for item in fewer] == [90, LEAST_OF_CLASS, 10, 0]
    assert all(some.end <= more.end for some, more in zip(fewer, strata, strict=True))  # it only adds
