"""Transition matrices: exact on exact counts, close on drawn ones."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.data.transitions import estimate_transition, transition_of_questions, uniform_transition
from clarinet.recipes.errors import DataError

ASKED = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
SHARES = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)


def questions_matrix(asked: Tensor) -> Tensor:
    """Q of questions with these probabilities, row by row."""
    rows = []
    for y in range(len(asked)):
        row = asked.clone()
        row[y] = 0
        rows.append(row / row.sum())
    return torch.stack(rows)


def test_uniform_rows_by_hand() -> None:
    assert uniform_transition(3).tolist() == [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    assert uniform_transition(3, label_noise=0.2)[1].tolist() == pytest.approx([0.4, 0.2, 0.4])


class TestOfQuestions:
    def test_expected_counts_give_the_matrix_back(self) -> None:
        named = ASKED * (1 - SHARES)  # probability of "not k" to a question about k

        found = transition_of_questions(torch.arange(4), SHARES, weights=1e9 * named)

        torch.testing.assert_close(found, questions_matrix(ASKED), atol=1e-7, rtol=0)

    def test_wrong_answers_are_taken_out_of_the_counts(self) -> None:
        noise = 0.1
        no = SHARES * (1 - ASKED)  # classes of the images that answer no, up to a factor
        matrix = (1 - noise) * questions_matrix(ASKED) + noise * torch.eye(4)
        named = (no / no.sum()) @ matrix

        found = transition_of_questions(torch.arange(4), SHARES, weights=1e9 * named, label_noise=noise)

        torch.testing.assert_close(found, matrix, atol=1e-7, rtol=0)

    @pytest.mark.parametrize(("shares", "noise"), [([1.0, 0.0, 0.0], 0.0), ([0.8, 0.1, 0.1], 0.2)])
    def test_a_class_that_is_nearly_all_is_refused(self, shares: list[float], noise: float) -> None:
        with pytest.raises(DataError, match=r"class_shares has .* for class 0"):
            transition_of_questions(torch.arange(3), torch.tensor(shares), label_noise=noise)

    def test_noise_lies_on_the_diagonal_and_rows_stay_distributions(self) -> None:
        found = transition_of_questions(torch.arange(4), SHARES, label_noise=0.05)

        torch.testing.assert_close(found.diagonal(), torch.full((4,), 0.05, dtype=torch.float64))
        torch.testing.assert_close(found.sum(1), torch.ones(4, dtype=torch.float64))

    def test_no_label_is_impossible_however_few_there_are(self) -> None:
        found = transition_of_questions(torch.tensor([], dtype=torch.int64), SHARES)

        assert bool((found + torch.eye(4) > 0).all())


class TestEstimate:
    def test_known_classes_and_expected_counts_give_the_matrix_back(self) -> None:
        matrix = questions_matrix(ASKED) * 0.9 + 0.1 * torch.eye(4)
        cells = torch.cartesian_prod(torch.arange(4), torch.arange(4))  # (16, 2) of class and label

        found = estimate_transition(
            F.one_hot(cells[:, 0], 4), cells[:, 1], weights=1e9 * matrix.flatten(), prior_count=1e-3
        )

        torch.testing.assert_close(found, matrix, atol=1e-7, rtol=0)

    def test_drawn_labels_give_it_within_their_spread(self) -> None:
        matrix, true = questions_matrix(ASKED), torch.arange(20_000) % 4
        labels = torch.multinomial(matrix[true], 1, generator=generator(0, "labels")).squeeze(1)

        found = estimate_transition(F.one_hot(true, 4), labels)

        assert float((found - matrix).abs().max()) < 5 * 0.5 / 5_000**0.5

    def test_only_anchors_count_and_a_class_without_any_keeps_the_prior(self) -> None:
        probabilities = torch.tensor([[0.95, 0.05, 0.0], [0.5, 0.5, 0.0]])

        found = estimate_transition(probabilities, torch.tensor([2, 1]))

        # One made-up label of class 0, half on either wrong class, and 0.95 of a label 2.
        assert found[0].tolist() == pytest.approx([0, 0.5 / 1.95, 1.45 / 1.95])
        assert found[2].tolist() == [0.5, 0.5, 0]

    def test_what_cannot_be_counted_is_refused(self) -> None:
        with pytest.raises(DataError, match="2 predictions for 1"):
            estimate_transition(torch.eye(2), torch.tensor([0]))
        with pytest.raises(DataError, match="prior_count is 0"):
            estimate_transition(torch.eye(2), torch.tensor([1, 0]), prior_count=0)
