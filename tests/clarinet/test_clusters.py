"""Labels from whole clusters, where few answers leave the nearest images without agreement."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.plus import clusters as clustering
from clarinet.plus.clusters import cluster_labels
from clarinet.plus.neighbours import MOST_VOTERS, neighbour_labels
from clarinet.plus.votes import NeighbourLabels, Votes
from tests.clarinet.answered import K, accuracy, clusters, complementary, votes_of

pytestmark = pytest.mark.long

EACH = 84  # images of a class, as in 840 answers; the nearest 42 hold four answers about each class


def found_in(features: Tensor, votes: Votes) -> NeighbourLabels:
    return cluster_labels(features, votes, generator(0, "clusters"))


class TestClasses:
    @pytest.mark.long(but=["0"])
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_few_answers_tell_the_clusters_classes_and_the_share_of_wrong_ones(self, seed: int) -> None:
        features, classes = clusters(spread=0.5, each=EACH)
        votes = votes_of(complementary(classes, wrong=0.02, seed=seed))

        found = found_in(features, votes)

        assert accuracy(found.probabilities, classes) > 0.98
        wrong = float((votes.complementary * F.one_hot(classes, K)).sum() / len(classes))
        assert found.label_noise == pytest.approx(wrong, abs=0.006)
        torch.testing.assert_close(found.probabilities.sum(1), torch.ones(len(classes)))

    def test_they_are_too_few_for_the_nearest_images(self) -> None:
        """What the module is for: it says classes where `neighbour_labels` says nothing."""
        features, classes = clusters(spread=1.0, each=EACH)
        votes = votes_of(complementary(classes, wrong=0.02))

        assert neighbour_labels(features, votes, generator(0, "bank")).label_noise is None
        found = found_in(features, votes)
        assert found.label_noise is not None
        assert accuracy(found.probabilities, classes) > 0.95

    @pytest.mark.long
    def test_images_without_a_label_take_the_class_of_their_cluster(self) -> None:
        features, classes = clusters(each=2 * EACH)
        votes = votes_of(complementary(classes, wrong=0.0))
        labelled = torch.arange(len(classes)) % 2 == 0

        found = found_in(features, Votes(votes.complementary * labelled[:, None], votes.true))

        assert accuracy(found.probabilities[~labelled], classes[~labelled]) > 0.98

    @pytest.mark.long
    def test_classes_may_be_of_unequal_size(self) -> None:
        features, classes = clusters(each=2 * EACH)
        kept = (classes % 2 == 0) | (torch.arange(len(classes)) % 3 == 0)

        found = found_in(features[kept], votes_of(complementary(classes[kept], wrong=0.01)))

        assert accuracy(found.probabilities, classes[kept]) > 0.98

    @pytest.mark.long
    def test_true_labels_find_classes_that_few_complementary_ones_leave_open(self) -> None:
        features, classes = clusters(spread=0.5, each=EACH)
        labels, asked = complementary(classes, wrong=0.0), torch.arange(len(classes)) % 6 == 0
        alone = votes_of(labels)
        few = Votes(alone.complementary * asked[:, None], alone.true)
        both = votes_of(labels, known=~asked, true=classes)

        assert found_in(features, few).label_noise is None
        found = found_in(features, both)
        assert found.label_noise is not None
        assert accuracy(found.probabilities[asked], classes[asked]) > 0.98

    @pytest.mark.long
    def test_what_all_features_have_in_common_says_nothing(self) -> None:
        features, classes = clusters(spread=0.5, each=EACH)
        votes = votes_of(complementary(classes, wrong=0.02))

        assert accuracy(found_in(features + 5.0, votes).probabilities, classes) > 0.98

    @pytest.mark.long
    def test_an_image_keeps_its_true_label_among_others(self) -> None:
        features, classes = clusters(each=EACH)
        odd = torch.arange(len(classes)) == 0
        votes = votes_of(complementary(classes, wrong=0.0), known=odd, true=torch.full_like(classes, 7))

        assert int(found_in(features, votes).probabilities[0].argmax()) == 7

    def test_of_several_starts_the_one_is_taken_that_left_out_labels_fit(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        features, classes = clusters(spread=0.5, each=EACH)
        votes = votes_of(complementary(classes, wrong=0.02))
        merged = torch.where(classes == 1, 0, torch.where(classes == 3, 2, classes))
        starts = [merged, merged, classes, merged, merged]
        given = iter(F.one_hot(start, 2 * K).float() for start in starts)
        monkeypatch.setattr(clustering, "clusters_of", lambda *_: next(given))
        monkeypatch.setattr(clustering, "MATCHES", 0)  # which would mend what is merged

        assert accuracy(found_in(features, votes).probabilities, classes) > 0.98

    @pytest.mark.long
    def test_where_labels_leave_open_which_class_is_which_the_nearest_images_tell(self) -> None:
        """Three classes none of whose images is said not to be another of the three."""
        features, classes = clusters(spread=0.5, each=EACH)
        labels = complementary(classes, wrong=0.0)
        labels = torch.where((classes < 3) & (labels < 3), 3, labels)
        turned = torch.where(classes < 3, (classes + 1) % 3, classes)

        for told in (classes, turned):
            near = F.one_hot(told, K).float()
            found = cluster_labels(features, votes_of(labels), generator(0, "clusters"), near=near)
            assert accuracy(found.probabilities, told) > 0.98

    @pytest.mark.long
    def test_the_nearest_images_overrule_no_labels_that_tell(self) -> None:
        features, classes = clusters(spread=0.5, each=EACH)
        near = F.one_hot(torch.where(classes < 3, (classes + 1) % 3, classes), K).float()

        votes = votes_of(complementary(classes, wrong=0.02))
        found = cluster_labels(features, votes, generator(0, "clusters"), near=near)

        assert accuracy(found.probabilities, classes) > 0.98

    @pytest.mark.long
    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
    def test_features_of_any_precision_are_taken(self, dtype: torch.dtype) -> None:
        features, classes = clusters(each=EACH)

        found = found_in(features.to(dtype), votes_of(complementary(classes, wrong=0.0)))

        assert accuracy(found.probabilities, classes) > 0.98
        assert found.probabilities.dtype == torch.float32

    @pytest.mark.long
    def test_equal_draws_give_equal_classes(self) -> None:
        features, classes = clusters(spread=1.0, each=EACH)
        votes = votes_of(complementary(classes, wrong=0.02))

        first, second = found_in(features, votes), found_in(features, votes)

        assert torch.equal(first.probabilities, second.probabilities)
        assert first.label_noise == second.label_noise


class TestNothingIsSaid:
    """Too many of the labels that had no part name the class found: then there is no noise."""

    @pytest.mark.long(but=["0"])
    @pytest.mark.parametrize("seed", range(3))
    def test_of_features_that_do_not_show_the_classes(self, seed: int) -> None:
        _, classes = clusters(each=EACH)
        features = torch.randn(len(classes), 16, generator=generator(seed, "nothing"))
        labels = complementary(classes, wrong=0.0, seed=seed)

        found = found_in(features, votes_of(labels))

        assert found.label_noise is None
        own = found.probabilities.gather(1, labels[:, None]).squeeze(1)
        assert float(own.max()) < 0.05  # but each image's own label

    @pytest.mark.long
    def test_of_too_many_wrong_labels(self) -> None:
        features, classes = clusters(each=EACH)
        votes = votes_of(complementary(classes, wrong=0.1))  # 1/K: they say nothing

        assert found_in(features, votes).label_noise is None

    @pytest.mark.long
    @pytest.mark.parametrize("heavy", [False, True])
    def test_of_so_few_labels_that_chance_may_agree(self, heavy: bool) -> None:
        """200 labels about nothing, or 840 of which eight outweigh all others."""
        for seed in range(2):
            draws = generator(seed, "nothing")
            classes = torch.randint(K, (840 if heavy else 200,), generator=draws)
            features = torch.randn(len(classes), 16, generator=draws)
            votes = votes_of(complementary(classes, wrong=0.0, seed=seed))
            weights = torch.ones(len(classes), 1)
            weights[:8] = 300.0 if heavy else 1.0

            assert found_in(features, Votes(votes.complementary * weights, votes.true)).label_noise is None

    @pytest.mark.long
    def test_of_more_wrong_labels_than_half_of_what_chance_makes(self) -> None:
        """Of 4,500 labels chance makes 0.1 +- 0.0045 wrong, so that 0.07 is no chance, and yet too many."""
        features, classes = clusters(each=450)

        few, many = (votes_of(complementary(classes, wrong=wrong)) for wrong in (0.04, 0.07))

        assert found_in(features, few).label_noise is not None
        assert found_in(features, many).label_noise is None

    def test_of_features_that_are_no_numbers(self) -> None:
        features, classes = clusters(each=EACH)
        features[5, 3] = torch.nan

        assert found_in(features, votes_of(complementary(classes, wrong=0.0))).label_noise is None

    @pytest.mark.long
    @pytest.mark.parametrize(("most", "says"), [(2 * K * K * EACH, True), (2 * K * K * EACH - 1, False)])
    def test_where_images_and_classes_are_too_many(
        self, most: int, says: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        features, classes = clusters(each=EACH)
        monkeypatch.setattr(clustering, "MOST_DISTANCES", most)

        found = found_in(features, votes_of(complementary(classes, wrong=0.0)))

        assert (found.label_noise is not None) == says

    def test_where_the_nearest_images_hold_enough(self) -> None:
        features, classes = clusters(each=2 * MOST_VOTERS)

        assert found_in(features, votes_of(complementary(classes, wrong=0.0))).label_noise is None


def test_each_group_is_matched_with_a_class_of_its_own() -> None:
    """Two groups of which no label contradicts class 0: the one that fits nothing else has it."""
    others = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    complementary = torch.tensor([[0.0, 5.0, 5.0], [0.0, 1.0, 5.0], [5.0, 5.0, 0.0]])

    found = clustering._matched(others, Votes(complementary, torch.zeros(3, 3)))

    assert found.argmax(1).tolist() == [0, 1, 2]
    torch.testing.assert_close(found.sum(1), torch.ones(3))


def test_an_image_between_two_classes_is_taken_for_the_larger_one() -> None:
    """Of eighty images and twenty, though the smaller class's centre moves further towards it."""
    unit = F.normalize(torch.tensor([[1.0, 0.0]] * 80 + [[0.0, 1.0]] * 20 + [[1.0, 1.0]]), dim=1)
    classes = F.one_hot(torch.tensor([0] * 80 + [1] * 20 + [0]), 2).float()
    classes[-1] = 0.5
    nothing = torch.zeros(101, 2)

    found = clustering._refined(unit, classes, Votes(nothing, nothing))

    assert found[-1, 0] > 0.6
    assert found[:80, 0].min() > 0.9
    assert found[80:100, 1].min() > 0.9


def test_chance_names_a_large_class_less_often() -> None:
    """1,000 labels of which 4 % name the one class that is found: 0.04 - 3.5 sqrt(0.04 * 0.96 / 1000)."""
    others = F.one_hot(torch.zeros(1_000, dtype=torch.int64), K).float()
    labels = torch.where(torch.arange(1_000) < 40, 0, torch.arange(1_000) % (K - 1) + 1)

    votes = votes_of(labels)
    assert clustering._believed_share(others, votes) == pytest.approx(0.01831, abs=1e-5)

    further = F.one_hot(torch.arange(4_000) % K, K).float()  # found for images without a label
    unasked = Votes(torch.cat([votes.complementary, torch.zeros(4_000, K)]), torch.zeros(5_000, K))
    found = clustering._believed_share(torch.cat([others, further]), unasked)
    assert found == pytest.approx(0.01831, abs=1e-5)


@pytest.mark.parametrize("kind", ["complementary", "true"])
def test_no_label_has_a_part_in_what_it_tests(kind: str) -> None:
    features, classes = clusters(spread=1.0, each=EACH)
    unit = F.normalize(features - features.mean(0), dim=1)
    groups = F.one_hot(classes, K).float()
    folds = torch.arange(len(unit)) % clustering.FOLDS
    labels = votes_of(complementary(classes, wrong=0.02)).complementary
    votes = Votes(labels, torch.zeros_like(labels))
    changed = labels.clone() if kind == "complementary" else torch.zeros_like(labels)
    changed[folds == 3] = F.one_hot(torch.tensor(7), K).float()
    other = Votes(changed, votes.true) if kind == "complementary" else Votes(labels, changed)

    found, otherwise = (clustering._left_out(unit, groups, each, folds) for each in (votes, other))

    assert torch.equal(found[folds == 3], otherwise[folds == 3])
    assert not torch.equal(found[folds != 3], otherwise[folds != 3])
