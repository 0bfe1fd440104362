"""Functions on labels: what does not fit together is a sentence."""

from collections.abc import Callable

import pytest
import torch

from clarinet.data.drawn_labels import simulate_labels
from clarinet.data.transitions import estimate_transition
from clarinet.data.uniformity import check_uniformity
from clarinet.recipes.errors import DataError
from clarinet.recipes.learning import Losses
from clarinet.recipes.rules import check_label_count, check_named_classes
from clarinet.run.evaluation import accuracy_from_complementary, label_noise_from_predictions

NOES, TRUTH = Losses(), Losses(complementary_loss="none")
TWO, THREE = torch.tensor([0, 1]), torch.tensor([0, 1, 2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check_uniformity(THREE, TWO, 3), "3 complementary labels, 2 true labels and 3 weights"),
        (lambda: check_uniformity(THREE, THREE, 3, weights=torch.ones(2)), "2 weights"),
        (lambda: check_uniformity(THREE, THREE, 2), "allowed are -1 to 1"),
        (lambda: check_uniformity(THREE.float(), THREE, 3), "expected torch.int64"),
        (lambda: label_noise_from_predictions(THREE, TWO, 3), "3 predictions, 2 labels"),
        (lambda: accuracy_from_complementary(TWO, THREE, 3), "2 predictions, 3 labels"),
        (lambda: estimate_transition(torch.eye(3), torch.tensor([0, 1, -1])), "allowed are 0 to 2"),
        (lambda: simulate_labels([0, 1], 2, seed=0, setting="cc"), "true_labels must be a tensor"),  # type: ignore[arg-type]
        (lambda: simulate_labels(TWO, 2, seed=0, setting="xx"), "setting is 'xx'"),  # type: ignore[arg-type]
        (lambda: check_label_count(5, 7), "5 labels cannot tell 7 classes apart; collect 2 more"),
        (lambda: check_named_classes(NOES, ["cat"], []), "names class cat; at least two classes"),
        (lambda: check_named_classes(NOES, ["cat"], ["dog"]), "class cat and every true label class dog"),
        (lambda: check_named_classes(TRUTH, [], ["dog"]), "every true label names class dog"),
    ],
)
def test_what_does_not_fit_together_is_a_sentence(call: Callable[[], object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        call()


def test_labels_that_leave_no_single_answer_pass() -> None:
    check_label_count(7, 7)
    check_named_classes(NOES, ["cat", "dog"], [])
    check_named_classes(NOES, ["cat"], ["cat"])
    check_named_classes(NOES, ["cat"], ["dog", "owl"])
    check_named_classes(TRUTH, ["cat"], ["dog", "owl"])
