"""The draws: uniform, independent, recomputable."""

import hashlib
import time

import numpy as np
import pytest

from app.campaigns import draws
from app.quality import chi_square

SEED = bytes(range(32)).hex()
OTHER = "ab" * 32


def plain_class(seed: str, position: int, round_: int, n: int) -> int:
    """The documented recipe, word by word."""
    block = 0
    while True:
        message = bytes.fromhex(seed) + b"class\0\0\0"
        message += position.to_bytes(8, "big") + round_.to_bytes(4, "big") + block.to_bytes(4, "big")
        digest = hashlib.sha256(message).digest()
        for start in range(0, 32, 8):
            word = int.from_bytes(digest[start : start + 8], "big")
            if word < 2**64 // n * n:
                return word % n
        block += 1


class TestClasses:
    def test_follow_the_pinned_vector(self) -> None:
        classes = draws.draw_classes(SEED, np.arange(12), num_classes=10)

        assert classes.tolist() == [[9, 4, 3, 8, 8, 2, 9, 7, 8, 9, 7, 8]]

    def test_follow_the_documented_recipe(self) -> None:
        classes = draws.draw_classes(OTHER, np.arange(500), num_classes=7)[0]

        assert classes.tolist() == [plain_class(OTHER, position, 0, 7) for position in range(500)]

    def test_rounds_follow_the_recipe_without_replacement(self) -> None:
        classes = draws.draw_classes(OTHER, np.arange(200), num_classes=5, rounds=5)

        for position in range(200):
            left = list(range(5))
            expected = [left.pop(plain_class(OTHER, position, r, 5 - r)) for r in range(5)]
            assert classes[:, position].tolist() == expected

    def test_a_draw_depends_on_nothing_but_seed_position_and_round(self) -> None:
        all_of_them = draws.draw_classes(SEED, np.arange(1000), num_classes=10, rounds=2)
        some = draws.draw_classes(SEED, np.array([999, 3, 500]), num_classes=10, rounds=2)

        assert np.array_equal(some, all_of_them[:, [999, 3, 500]])

    def test_another_seed_draws_otherwise(self) -> None:
        mine = draws.draw_classes(SEED, np.arange(1000), num_classes=10)
        other = draws.draw_classes(OTHER, np.arange(1000), num_classes=10)

        assert 50 < int((mine == other).sum()) < 150

    @pytest.mark.long(but=["10"])
    @pytest.mark.parametrize("num_classes", [2, 7, 10])
    def test_a_million_draws_are_uniform_and_independent(self, num_classes: int) -> None:
        drawn = draws.draw_classes(SEED, np.arange(1_000_000), num_classes=num_classes)[0]

        pairs = drawn[:-1:2] * num_classes + drawn[1::2]
        assert chi_square.uniform(np.bincount(drawn, minlength=num_classes).tolist()).p_value > 0.001
        assert chi_square.uniform(np.bincount(pairs, minlength=num_classes**2).tolist()).p_value > 0.001

    def test_each_round_is_uniform_over_all_classes(self) -> None:
        classes = draws.draw_classes(SEED, np.arange(100_000), num_classes=5, rounds=3)

        for of_round in classes:
            assert chi_square.uniform(np.bincount(of_round, minlength=5).tolist()).p_value > 0.001
        pairs = classes[0] * 5 + classes[1]
        seen = np.bincount(pairs, minlength=25)
        assert seen[[0, 6, 12, 18, 24]].tolist() == [0] * 5
        assert chi_square.uniform(seen[seen > 0].tolist()).p_value > 0.001

    @pytest.mark.parametrize(("num_classes", "rounds"), [(3, 4), (3, 0)])
    def test_impossible_rounds_are_refused(self, num_classes: int, rounds: int) -> None:
        with pytest.raises(ValueError, match="rounds"):
            draws.draw_classes(SEED, np.arange(3), num_classes=num_classes, rounds=rounds)

    def test_a_short_seed_is_refused(self) -> None:
        with pytest.raises(ValueError, match="32 bytes"):
            draws.random_words("ab", "class", [0], 0)


class TestBelow:
    """A modulus would prefer small values; words beyond the last full multiple must be thrown away."""

    def test_words_beyond_the_largest_multiple_are_skipped(self) -> None:
        n = 10
        last = 2**64 // n * n - 1
        words = np.array(
            [[last, 3, 3, 3], [last + 1, 17, 3, 3], [2**64 - 1, last + 1, last + 2, 24]], dtype=np.uint64
        )

        values, found = draws.numbers_below(n, words)

        assert values.tolist() == [9, 7, 4]
        assert found.tolist() == [True, True, True]

    def test_a_row_without_a_usable_word_says_so(self) -> None:
        values, found = draws.numbers_below(10, np.full((2, 4), 2**64 - 1, dtype=np.uint64))

        assert found.tolist() == [False, False]
        assert values.tolist() == [0, 0]

    def test_a_power_of_two_uses_every_word(self) -> None:
        values, found = draws.numbers_below(8, np.array([[2**64 - 1]], dtype=np.uint64))

        assert values.tolist() == [7]
        assert found.tolist() == [True]


class TestOrder:
    def test_every_example_is_asked_about_once_per_round(self) -> None:
        drawn = draws.draw(SEED, np.arange(5, 505), num_classes=4, rounds=2)

        for round_ in range(2):
            assert sorted(drawn.positions[drawn.rounds == round_].tolist()) == list(range(5, 505))
        assert drawn.ranks.tolist() == list(range(1000))
        assert drawn.rounds.tolist() == [0] * 500 + [1] * 500

    def test_classes_are_those_of_the_draw(self) -> None:
        drawn = draws.draw(SEED, np.arange(500), num_classes=4)

        assert np.array_equal(
            drawn.classes, draws.draw_classes(SEED, np.arange(500), num_classes=4)[0][drawn.positions]
        )

    @pytest.mark.parametrize(("examples", "num_classes"), [(7438, 10), (1000, 3), (60, 10)])
    def test_stopped_anywhere_classes_are_balanced_to_about_one_block(
        self, examples: int, num_classes: int
    ) -> None:
        drawn = draws.draw(SEED, np.arange(examples), num_classes=num_classes)
        size = draws.block_size(examples, num_classes)

        assert size <= 30
        asked = np.cumsum(np.eye(num_classes, dtype=np.int64)[drawn.classes], axis=0)  # (Q, K)
        total = asked[-1]
        for stop in asked:
            unfinished = stop[stop < total]
            if len(unfinished):
                assert stop.max() - unfinished.min() <= size

    def test_blocks_are_at_most_thirty_of_one_class(self) -> None:
        drawn = draws.draw(SEED, np.arange(60_000), num_classes=10)

        ends = np.flatnonzero(np.diff(drawn.classes))
        runs = np.diff(ends)
        assert np.median(runs) == 30
        # Two blocks of one class meet only where one turn ends with the class that begins the next.
        assert runs.max() <= 60

    def test_images_in_a_block_come_in_random_order(self) -> None:
        drawn = draws.draw(SEED, np.arange(60_000), num_classes=10)

        steps = np.diff(drawn.positions[:3000]) > 0
        assert 0.4 < steps.mean() < 0.6

    def test_sixty_thousand_take_less_than_two_seconds(self) -> None:
        before = time.process_time()

        draws.draw(SEED, np.arange(60_000), num_classes=10)

        assert time.process_time() - before < 2

    def test_nothing_to_draw_draws_nothing(self) -> None:
        assert len(draws.draw(SEED, np.arange(0), num_classes=3)) == 0


class TestCommitment:
    def test_is_the_hash_of_canonical_json(self) -> None:
        text = (
            '{"classes":["cat","dog"],"dataset_digest":"dd","examples":3,'
            f'"probabilities":[0.5,0.5],"rounds":1,"seed":"{SEED}"}}'
        )

        assert (
            draws.commitment(SEED, dataset_digest="dd", examples=3, class_names=["cat", "dog"], rounds=1)
            == hashlib.sha256(text.encode()).hexdigest()
        )

    def test_new_seeds_have_256_bits_and_differ(self) -> None:
        seeds = {draws.new_seed() for _ in range(100)}

        assert len(seeds) == 100
        assert {len(seed) for seed in seeds} == {64}
