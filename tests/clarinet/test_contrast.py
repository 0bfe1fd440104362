"""The contrastive loss against a slow reference, and what it does in a run."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet import TrainConfig, config_for, train
from clarinet.data.digits import Distortion
from clarinet.data.domains import prepare
from clarinet.data.feeding import taken
from clarinet.data.images import normalised
from clarinet.data.inputs import Inputs
from clarinet.data.seeding import Shuffle, generator
from clarinet.networks.classifier import SOURCE
from clarinet.plus import pretraining
from clarinet.plus.contrast import contrastive_loss
from clarinet.plus.neighbours import neighbour_labels
from clarinet.plus.pretraining import Pretraining, encoder_spec
from clarinet.plus.votes import NeighbourLabels, Votes
from clarinet.recipes.errors import Interrupted
from clarinet.run.building import build_networks
from clarinet.run.objective import Objective
from clarinet.run.training import EpochReport
from tests.clarinet.factories import make_data

CPU = torch.device("cpu")


def slow_loss(first: Tensor, second: Tensor, temperature: float) -> float:
    """Equation (1) of SimCLR, one pair at a time, in double precision."""
    views = [view / view.norm() for view in torch.cat([first, second]).double()]
    count, total = len(views), 0.0
    for i in range(count):
        partner = (i + count // 2) % count
        others = [math.exp(float(views[i] @ views[j]) / temperature) for j in range(count) if j != i]
        total -= math.log(math.exp(float(views[i] @ views[partner]) / temperature) / sum(others))
    return total / count


class TestLoss:
    @pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
    def test_it_equals_a_slow_reference(self, temperature: float) -> None:
        first, second = torch.randn(2, 7, 5, generator=generator(0, "views"))

        loss = contrastive_loss(first, second, temperature)

        assert float(loss) == pytest.approx(slow_loss(first, second, temperature), rel=1e-5)

    def test_views_that_are_all_alike_cost_a_guess(self) -> None:
        assert float(contrastive_loss(torch.ones(4, 3), torch.ones(4, 3), 0.5)) == pytest.approx(math.log(7))

    def test_which_view_comes_first_and_how_long_it_is_does_not_matter(self) -> None:
        first, second = torch.randn(2, 6, 4, generator=generator(1, "views"))

        loss = contrastive_loss(first, second, 0.5)

        torch.testing.assert_close(contrastive_loss(second * 3, first / 2, 0.5), loss)


def short_config(**changes: Any) -> TrainConfig:
    values: dict[str, Any] = {
        "epochs": 6,
        "steps_per_epoch": 5,
        "batch_size": 32,
        "checkpoint_every": 1,
        "precision": "float32",
        "pretraining_share": 0.5,
    }
    return config_for("clarinet-plus", **values | changes)


class TestRun:
    @pytest.mark.long
    def test_it_begins_without_labels_and_then_has_neighbours(self) -> None:
        reports: list[EpochReport] = []

        result = train(short_config(), make_data(), on_epoch=reports.append)

        assert result.label_noise is not None
        assert 0 < result.label_noise < 0.3
        assert [set(report.losses) == {"contrast"} for report in reports] == [True] * 3 + [False] * 3
        assert all("neighbours" in report.losses for report in reports[3:])

    @pytest.mark.usefixtures("few_are_enough")
    @pytest.mark.long
    def test_the_pretraining_tells_no_accuracy(self) -> None:
        reports: list[EpochReport] = []

        train(short_config(), make_data(), on_epoch=reports.append)

        known = [(r.target_accuracy is not None, r.source_estimate is not None) for r in reports]
        assert known == [(False, False)] * 3 + [(True, True)] * 3

    def test_the_classifier_starts_from_the_same_weights_as_without_it(self) -> None:
        data = make_data()
        networks = [
            build_networks(config, prepare(data, config, CPU), CPU)
            for config in (short_config(), short_config(pretraining_share=0.0))
        ]

        first, second = (each.classifier.state_dict() for each in networks)

        assert all(torch.equal(first[name], second[name]) for name in first)
        assert networks[0].encoder is not None
        assert networks[1].encoder is None

    @pytest.mark.long
    def test_a_grey_source_has_a_grey_encoder_whatever_the_target(self) -> None:
        coloured, config = make_data(colour_target=True), short_config(epochs=4)

        domains = prepare(coloured, config, CPU)

        assert domains.spec.architecture == "dann"
        assert encoder_spec(config, domains).architecture == "lenet"
        assert encoder_spec(config, domains).channels == 1
        assert train(config, coloured).label_noise is not None

    @pytest.mark.long
    def test_labels_change_no_feature_that_is_learned_without_them(self) -> None:
        data = make_data()
        other = make_data(complementary=(data.complementary + 1) % 3)
        seen: list[list[float]] = []
        for case in (data, other):
            reports: list[EpochReport] = []
            train(short_config(epochs=4), case, on_epoch=reports.append)
            seen.append([report.losses["contrast"] for report in reports[:2]])

        assert seen[0] == seen[1]

    def test_a_step_compares_views_at_their_distance_and_temperature(self) -> None:
        config = short_config(changed_stroke=0.0)
        domains = prepare(make_data(), config, CPU)
        encoder = build_networks(config, domains, CPU).encoder
        assert encoder is not None
        encoder.eval()
        rows = [Shuffle(96, batch_size=32, seed=0, stream="shuffle/views").batch(step) for step in (4, 5)]
        pixels = taken(domains.source, torch.cat(rows)).float() / 255
        further = Distortion(1.5 * 10.0, 1.5 * 0.15, 1.5 * 2.0, 0.0, config.distortion.extra_stroke)
        every = torch.ones(128, dtype=torch.bool)
        views = further(torch.cat([pixels, pixels]), every, generator(0, "views/2"))
        seen = encoder(normalised(views, "instance"), SOURCE)[1].tolist()

        loss = Pretraining(config, domains, encoder, steps=9, centre=(1.0, 1.0)).loss(Inputs(2, CPU))

        expected = slow_loss(torch.tensor(seen[:64]), torch.tensor(seen[64:]), 0.5)
        assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)

    @pytest.mark.long
    def test_where_the_nearest_images_do_not_agree_clusters_are_asked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        draws = generator(0, "blurred")
        classes = torch.arange(96) % 3
        features = F.one_hot(classes, 16).float() + 0.42 * torch.randn(96, 16, generator=draws)
        complementary = (classes + torch.randint(1, 3, (96,), generator=draws)) % 3
        votes = Votes(F.one_hot(complementary, 3).float(), torch.zeros(96, 3))
        monkeypatch.setattr(Pretraining, "_features", lambda _: features)

        result = train(short_config(), make_data(complementary=complementary))

        assert neighbour_labels(features, votes, draws).label_noise is None
        assert result.label_noise is not None
        assert result.label_noise < 0.05  # no label is wrong

    @pytest.mark.long
    @pytest.mark.parametrize("believed", [True, False])
    def test_where_the_nearest_images_leave_a_class_open_clusters_are_asked(
        self, believed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And what they do not know either stays as the nearest images have it."""
        classes = F.one_hot(torch.arange(96) % 3, 3).float()
        open_one = torch.where(classes[:, 1:2] > 0, torch.tensor([0.0, 0.55, 0.45]), classes)
        asked = []

        def clusters_tell(*_: object, near: Tensor | None) -> NeighbourLabels:
            asked.append(near)
            return NeighbourLabels(classes, 0.02 if believed else None)

        monkeypatch.setattr(pretraining, "neighbour_labels", lambda *_: NeighbourLabels(open_one, 0.01))
        monkeypatch.setattr(pretraining, "cluster_labels", clusters_tell)

        assert train(short_config(), make_data()).label_noise == (0.02 if believed else 0.01)
        assert asked == [open_one]
        monkeypatch.setattr(pretraining, "neighbour_labels", lambda *_: NeighbourLabels(open_one, None))
        train(short_config(), make_data())
        assert asked[1:] == [None]

    @pytest.mark.parametrize("changes", [{}, {"setting": "pc"}])
    def test_labels_held_out_do_not_vote(self, changes: dict[str, Any]) -> None:
        """They estimate the accuracy of what the neighbours teach."""
        config, held_out = short_config(**changes), torch.arange(96) >= 60
        data = make_data(true_rows=10 if changes else 0, held_out=held_out)
        renamed = torch.where(data.complementary < 0, -1, (data.complementary + 1) % 3)

        def neighbours(complementary: Tensor) -> Tensor:
            domains = prepare(replace(data, complementary=complementary), config, CPU)
            encoder = build_networks(config, domains, CPU).encoder
            assert encoder is not None
            found = Pretraining(config, domains, encoder, steps=0, centre=(1.0, 1.0)).neighbours()
            return found.probabilities

        own = neighbours(data.complementary)
        held_out_changed = neighbours(torch.where(held_out, renamed, data.complementary))
        others_changed = neighbours(torch.where(held_out, data.complementary, renamed))

        assert torch.equal(held_out_changed, own)
        assert not torch.equal(others_changed, own)

    @pytest.mark.long
    @pytest.mark.parametrize("steps", [12, 15, 22])
    def test_interrupted_in_or_after_it_the_run_ends_bit_equal(
        self, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data, config = make_data(), short_config()
        whole = train(config, data).model.state_dict()
        asked = iter(range(10_000))
        checkpoint = tmp_path / "run.safetensors"
        with pytest.raises(Interrupted):
            train(config, data, checkpoint=checkpoint, should_stop=lambda: next(asked) == steps)
        searches: list[int] = []
        search = Objective.find_neighbours

        def counted(self: Objective) -> object:
            searches.append(1)
            return search(self)

        monkeypatch.setattr(Objective, "find_neighbours", counted)

        resumed = train(config, data, checkpoint=checkpoint).model.state_dict()

        assert all(torch.equal(whole[name], resumed[name]) for name in whole)
        assert len(searches) == (1 if steps <= 15 else 0)

    def test_a_run_too_short_for_it_goes_without(self) -> None:
        reports: list[EpochReport] = []

        result = train(short_config(epochs=1, pretraining_share=0.15), make_data(), on_epoch=reports.append)

        assert result.label_noise is None
        assert "contrast" not in reports[0].losses
