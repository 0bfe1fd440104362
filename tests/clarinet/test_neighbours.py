"""Labels from similar images: clusters whose answers are known, counted by hand."""

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.plus import neighbours
from clarinet.plus.neighbours import every_class_is_sure, nearest, neighbour_labels
from clarinet.plus.votes import LEAST_NOISE, NeighbourLabels, Votes, agreed, named_share
from tests.clarinet.answered import K, accuracy, clusters, complementary, votes_of


class TestClasses:
    @pytest.mark.parametrize("wrong", [0.0, 0.02, 0.05])
    def test_clusters_take_their_class_whatever_the_noise_and_tell_its_rate(self, wrong: float) -> None:
        features, classes = clusters(each=500)  # fewer answers say too little under such a noise

        found = neighbour_labels(
            features, votes_of(complementary(classes, wrong=wrong)), generator(0, "bank")
        )

        assert accuracy(found.probabilities, classes) > 0.99
        assert found.label_noise == pytest.approx(max(wrong, LEAST_NOISE), abs=0.012)
        torch.testing.assert_close(found.probabilities.sum(1), torch.ones(len(classes)))

    def test_a_few_labels_reach_the_images_without_one(self) -> None:
        features, classes = clusters()
        votes = votes_of(complementary(classes, wrong=0.0))
        labelled = torch.arange(len(classes)) % 2 == 0
        few = Votes(votes.complementary * labelled[:, None], votes.true)

        found = neighbour_labels(features, few, generator(0, "bank"))

        assert accuracy(found.probabilities[~labelled], classes[~labelled]) > 0.9

    def test_features_that_say_nothing_leave_an_image_its_own_label(self) -> None:
        _, classes = clusters()
        labels = complementary(classes, wrong=0.0)
        features = torch.randn(len(classes), 16, generator=generator(1, "nothing"))

        result = neighbour_labels(features, votes_of(labels), generator(0, "bank"))
        found = result.probabilities

        assert result.label_noise is None  # as neighbours of all classes see a wrong label in every tenth
        own = found.gather(1, labels[:, None]).squeeze(1)
        assert float(own.mean()) < 1 / K  # the class that it is not
        assert float((found.max(1).values > 0.9).float().mean()) < 0.05  # and no other one is believed

    def test_true_labels_count(self) -> None:
        features, classes = clusters()
        known = torch.arange(len(classes)) % 100 == 0  # 5 of each class, and nothing else
        votes = votes_of(classes, known=known, true=classes)

        found = neighbour_labels(features, Votes(votes.complementary * 0, votes.true), generator(0, "bank"))

        assert accuracy(found.probabilities, classes) > 0.99

    def test_an_image_keeps_its_true_label_among_others(self) -> None:
        features, classes = clusters()
        odd = torch.zeros(len(classes), dtype=torch.bool)
        odd[0] = True
        true = classes.clone()
        true[0] = 7
        votes = votes_of(complementary(classes, wrong=0.0), known=odd, true=true)

        assert int(neighbour_labels(features, votes, generator(0, "bank")).probabilities[0].argmax()) == 7

    def test_images_without_a_label_take_the_class_of_those_with_one(self) -> None:
        features, classes = clusters()
        votes = votes_of(complementary(classes, wrong=0.0))
        labelled = torch.arange(len(classes)) % 2 == 0

        found = neighbour_labels(
            features, Votes(votes.complementary * labelled[:, None], votes.true), generator(0, "bank")
        ).probabilities

        assert accuracy(found[~labelled], classes[~labelled]) > 0.99

    @pytest.mark.parametrize("labelled", [0, 1, 2])
    def test_next_to_no_labels_are_no_error(self, labelled: int) -> None:
        features, classes = clusters(each=2)
        votes = votes_of(complementary(classes, wrong=0.0))
        few = Votes(votes.complementary * (torch.arange(len(classes)) < labelled)[:, None], votes.true)

        found = neighbour_labels(features, few, generator(0, "bank")).probabilities

        assert bool(torch.isfinite(found).all())

    def test_a_large_source_is_searched_in_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        features, classes = clusters()
        monkeypatch.setattr(neighbours, "LARGEST_BANK", 1_500)
        monkeypatch.setattr(neighbours, "SIMILARITIES", 5_000)

        found = neighbour_labels(features, votes_of(complementary(classes, wrong=0.02)), generator(0, "bank"))

        assert accuracy(found.probabilities, classes) > 0.98

    @pytest.mark.parametrize("alike", [True, False])
    def test_a_large_source_is_searched_only_if_its_bank_agrees(
        self, alike: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        features, classes = clusters()
        if not alike:
            features = torch.randn(len(classes), 16, generator=generator(1, "nothing"))
        searched: list[int] = []

        def counted(features: Tensor, bank: Tensor, count: int) -> Iterator[Tensor]:
            searched.append(len(features))
            return nearest(features, bank, count)

        monkeypatch.setattr(neighbours, "LARGEST_BANK", 1_500)
        monkeypatch.setattr(neighbours, "nearest", counted)
        labels = complementary(classes, wrong=0.0)

        found = neighbour_labels(features, votes_of(labels), generator(0, "bank"))

        assert searched == ([1_500, 2_000] if alike else [1_500])
        assert (found.label_noise is not None) == alike
        own = found.probabilities.gather(1, labels[:, None]).squeeze(1)
        assert float(own.max()) < 0.05  # with or without a search, the class that it is not

    def test_a_part_of_a_large_source_may_have_no_label(self, monkeypatch: pytest.MonkeyPatch) -> None:
        features, classes = clusters()
        votes = votes_of(complementary(classes, wrong=0.0))
        labelled = torch.arange(len(classes)) % 3 > 0
        monkeypatch.setattr(neighbours, "LARGEST_BANK", 1_000)

        found = neighbour_labels(
            features, Votes(votes.complementary * labelled[:, None], votes.true), generator(0, "bank")
        )

        assert accuracy(found.probabilities[~labelled], classes[~labelled]) > 0.98


class TestNearest:
    def test_it_agrees_with_a_slow_search(self) -> None:
        features, _ = clusters(each=6)
        bank = torch.arange(0, len(features), 2)

        found = torch.cat(list(nearest(features, bank, 4)))

        centred = F.normalize(features.double() - features.double().mean(0), dim=1)
        for image, row in enumerate(found.tolist()):
            others = [int(other) for other in bank if int(other) != image]
            cosines = {other: float(centred[image] @ centred[other]) for other in others}
            farthest = sorted(cosines.values(), reverse=True)[3]
            assert image not in row
            assert all(cosines[other] >= farthest - 0.02 for other in row)  # searched in bfloat16

    def test_an_image_is_never_its_own_neighbour(self) -> None:
        features = torch.ones(5, 3) + torch.eye(5, 3)

        [found] = nearest(features, torch.arange(5), 4)

        assert all(image not in row for image, row in enumerate(found.tolist()))


def test_votes_are_weighed_by_how_far_they_can_be_trusted() -> None:
    """Three clusters of equal features each, worked by hand: the class that no neighbour rules out wins."""
    counts = torch.tensor([[0.0, 4.0, 4.0], [4.0, 0.0, 4.0]])

    found = agreed(Votes(counts, torch.zeros(2, 3)))

    assert found.argmax(1).tolist() == [0, 1]
    assert float(found.max(1).values.min()) > 0.999  # the common noise is 0: no class with a vote survives


@pytest.mark.parametrize("num_classes", [10, 60])
def test_a_complementary_label_speaks_against_its_class_however_many_there_are(num_classes: int) -> None:
    """With 60 classes the noise that is assumed at first is more than 1/K."""
    votes = Votes(torch.eye(num_classes)[:1], torch.zeros(1, num_classes))

    found = NeighbourLabels.alone(votes).probabilities

    assert float(found[0, 0]) < 1 / num_classes


@pytest.mark.parametrize("weight", [1e-14, 1.0, 1e6])
def test_the_share_of_labels_that_name_the_class_found_has_no_unit_of_weight(weight: float) -> None:
    """Of ten images found to be of class 0 one has a label that names it; then none has a label."""
    others = F.one_hot(torch.zeros(10, dtype=torch.int64), K).float()
    labels = F.one_hot(torch.tensor([0] + [1] * 9), K) * weight

    assert named_share(others, Votes(labels, torch.zeros(10, K))) == pytest.approx(0.08)  # the most
    labels[1:] *= 3.0
    assert named_share(others, Votes(labels, torch.zeros(10, K))) == pytest.approx(1 / 28)
    assert named_share(others, Votes(torch.zeros(10, K), torch.zeros(10, K))) == LEAST_NOISE


@pytest.mark.parametrize(
    ("images", "sure_ones", "all_sure"),
    [
        ([10, 10, 10], [10, 5, 10], True),
        ([10, 10, 10], [10, 4, 10], False),  # most images are sure, but few of class 1
        ([20, 0, 20], [20, 0, 20], True),  # the source may have no image of class 1
        ([100, 3, 100], [100, 0, 100], True),  # of 203 images, a tenth of an equal share is 6.8
        ([100, 7, 100], [100, 3, 100], False),
    ],
)
def test_neighbours_have_to_agree_on_the_images_of_each_class(
    images: list[int], sure_ones: list[int], all_sure: bool
) -> None:
    rows: list[Tensor] = []
    for k, (count, sure) in enumerate(zip(images, sure_ones, strict=True)):
        probabilities = torch.full((count, 3), 0.03)
        probabilities[:, k] = 0.94
        probabilities[sure:] = torch.tensor([0.26, 0.26, 0.26]) + 0.22 * F.one_hot(torch.tensor(k), 3)
        rows.append(probabilities)

    assert every_class_is_sure(NeighbourLabels(torch.cat(rows), 0.01)) == all_sure
