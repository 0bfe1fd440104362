"""Losses for labels that are not uniform inside a step, and in training."""

import dataclasses
from itertools import combinations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.batches import SourceBatch
from clarinet.data.domains import prepare
from clarinet.data.seeding import Shuffle, generator
from clarinet.data.training_data import TrainData
from clarinet.data.transitions import estimate_transition, transition_of_questions
from clarinet.losses.nonuniform import per_class_question_risk
from clarinet.recipes.choices import Setting
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import DataError, NonUniformLabels
from clarinet.recipes.methods import config_for
from clarinet.run.building import build_networks
from clarinet.run.label_losses import LabelFacts, complementary_loss, presence_in_batches, with_proportions
from clarinet.run.objective import Objective
from clarinet.run.training import train
from tests.clarinet.factories import NUM_CLASSES, make_config, make_data, make_images

CPU = torch.device("cpu")
PREFERENCE = torch.tensor([0.7, 0.2, 0.1])  # of questions; uniform labels name no class more than 1/2


def make_questions(count: int = 240, **changes: Any) -> TrainData:
    """One question per image about classes with a preference, every answer kept with its probability."""
    draws = generator(0, "questions")
    classes = torch.randint(NUM_CLASSES, (count,), generator=draws)
    asked = torch.multinomial(PREFERENCE, count, replacement=True, generator=draws)
    yes = asked == classes
    values: dict[str, Any] = {
        "source_images": make_images(classes),
        "complementary": asked.masked_fill(yes, -1),
        "true": asked.masked_fill(~yes, -1),
        "weights": torch.arange(count) % 3 / 2 + 0.5,
        "probabilities": PREFERENCE[asked],
    }
    return make_data(count, **values | changes)


def quick(loss: str, setting: Setting = "cc") -> TrainConfig:
    """A run of one label loss alone, of 45 steps."""
    return config_for(
        "gac",
        setting=setting,
        complementary_loss=loss,
        optimizer="adamw",
        learning_rate=2e-3,
        epochs=3,
        steps_per_epoch=15,
        batch_size=64,
    )


class TestTraining:
    @pytest.mark.long
    @pytest.mark.parametrize(("loss", "setting"), [("forward", "cc"), ("scarce", "pc"), ("inverse", "pc")])
    def test_each_tells_bars_apart_by_questions_that_prefer_classes(
        self, loss: str, setting: Setting
    ) -> None:
        result = train(quick(loss, setting), make_questions())

        assert result.target_accuracy is not None
        assert result.target_accuracy > 0.9

    def test_labels_that_cannot_be_uniform_are_warned_of_where_the_loss_needs_it(self) -> None:
        config = make_config(epochs=1)
        with pytest.warns(
            NonUniformLabels, match=r"class 0 is named most\); choose complementary_loss forward"
        ):
            result = train(config, make_questions())

        assert result.label_uniformity is not None
        assert result.label_uniformity < 1e-3

    @pytest.mark.parametrize("loss", ["unbiased", "bounded"])
    def test_every_loss_that_takes_labels_for_uniform_warns_of_others(self, loss: str) -> None:
        with pytest.warns(NonUniformLabels, match="not uniform"):
            prepare(make_questions(), make_config("clarinet", complementary_loss=loss), CPU)

    @pytest.mark.parametrize("loss", ["forward", "scarce", "inverse"])
    def test_losses_that_allow_for_preferences_do_not_warn(self, loss: str) -> None:
        config = make_config("clarinet", complementary_loss=loss, setting="pc")

        found = prepare(make_questions(), config, CPU).uniformity  # warnings are errors here

        assert found is not None
        assert found.is_rejected

    def test_only_what_can_help_is_recommended(self) -> None:
        config, equal = make_config("clarinet"), torch.full((240,), 1 / 3)

        with pytest.warns(NonUniformLabels, match="forward, or inverse, as their probabilities are known$"):
            prepare(make_questions(), config, CPU)
        with pytest.warns(NonUniformLabels, match="forward, or give weights$"):
            prepare(make_questions(probabilities=None), config, CPU)
        for loss in ("unbiased", "inverse"):  # by equal probabilities the same
            with pytest.warns(NonUniformLabels, match="forward$"):
                prepare(
                    make_questions(probabilities=equal),
                    make_config("clarinet", complementary_loss=loss),
                    CPU,
                )

    def test_uniform_labels_are_not_warned_of(self) -> None:
        result = train(make_config(epochs=1), make_data())  # warnings are errors here

        assert result.label_uniformity is not None
        assert result.label_uniformity > 1e-3


class TestProportions:
    def test_each_label_present_gets_its_share_of_the_data_set(self) -> None:
        labels, weights = torch.tensor([0, 0, 1, 2]), torch.tensor([1.0, 3.0, 1.0, 1.0])
        shares = torch.tensor([0.5, 0.2, 0.3])
        always, sometimes = torch.ones(3), torch.tensor([1.0, 1.0, 0.5])

        assert with_proportions(labels, weights, shares, always).tolist() == pytest.approx(
            [0.125, 0.375, 0.2, 0.3]
        )
        assert with_proportions(labels, weights, shares, sometimes).tolist() == pytest.approx(
            [0.125, 0.375, 0.2, 0.6]
        )

    @pytest.mark.parametrize(("count", "batch_size"), [(10, 8), (10, 5), (9, 4), (7, 99)])
    def test_presence_is_the_share_of_batches_that_have_the_label(self, count: int, batch_size: int) -> None:
        labels = torch.tensor([0] * (count - 3) + [1, 1, 2])
        shuffle = Shuffle(count, batch_size=batch_size, seed=0, stream="presence")
        batches = [labels[shuffle.batch(step)] for step in range(4_000)]

        found = presence_in_batches(labels, 4, batch_size).tolist()

        seen = [sum(bool((batch == k).any()) for batch in batches) / 4_000 for k in range(4)]
        assert found == pytest.approx(seen, abs=0.03)  # four standard errors

    def test_what_every_batch_has_is_present_always(self) -> None:
        labels = torch.arange(500_000) % 10

        assert presence_in_batches(labels, 10, 128).tolist() == pytest.approx([1] * 10, abs=1e-4)

    def test_an_untrained_network_is_then_not_corrected_whatever_the_preference(self) -> None:
        # A batch of questions that prefer class 0, in which chance has named class 1 five times too often.
        asked = torch.tensor([0.7, 0.1, 0.1, 0.1])
        labels = torch.tensor([0] * 20 + [1] * 15 + [2] * 3 + [3] * 3)

        def risk(weights: Tensor) -> Tensor:
            no = torch.zeros_like(labels, dtype=torch.bool)
            return per_class_question_risk(
                torch.zeros(len(labels), 4), labels, no, weights, asked[labels], yes_share=0
            )

        ones = torch.ones(len(labels))
        # Equal classes: named as asked.
        assert bool((risk(with_proportions(labels, ones, asked, torch.ones(4))) > 0).all())
        assert bool((risk(ones) < 0).any())


class TestTwoSteps:
    @pytest.mark.long
    def test_a_matrix_estimated_from_anchors_undoes_answers_that_depend_on_the_class(self) -> None:
        # Half of the labels of class 0 are wrong; nobody says of class 1 that it is not a 1.
        matrix = torch.tensor([[0.5, 0.0, 0.5], [0.2, 0.0, 0.8], [0.6, 0.4, 0.0]])
        draws = generator(0, "confused")
        classes = torch.randint(NUM_CLASSES, (600,), generator=draws)
        labels = torch.multinomial(matrix[classes], 1, generator=draws).squeeze(1)
        known = torch.arange(600) < 90  # examples of which both is known, as from gold answers

        found = estimate_transition(F.one_hot(classes[known], 3), labels[known])
        data = make_data(
            600,
            source_images=make_images(classes),
            complementary=labels,
            true=torch.full((600,), -1),
            weights=torch.ones(600),
        )
        config = quick("forward")
        with_matrix = train(config, dataclasses.replace(data, transition=found))
        without = train(config, data)

        assert float((found - matrix).abs().max()) < 0.25
        assert with_matrix.target_accuracy is not None
        assert without.target_accuracy is not None
        assert with_matrix.target_accuracy > 0.9 > without.target_accuracy


class TestDemands:
    def test_inverse_needs_probabilities(self) -> None:
        with pytest.raises(DataError, match="inverse needs the probabilities"):
            prepare(make_data(), make_config(complementary_loss="inverse"), CPU)

    def test_a_label_that_the_matrix_excludes_is_refused(self) -> None:
        never = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])

        with pytest.raises(DataError, match="class 2 is never"):
            prepare(make_data(transition=never), make_config(complementary_loss="forward"), CPU)


def kinds_of(parts: list[SourceBatch]) -> dict[str, SourceBatch]:
    """Both kinds of label by name."""
    return dict(zip(("complementary", "true"), parts, strict=True))


def make_objective(
    loss: str, data: TrainData, *, held_out_share: float = 0, batch_size: int = 240
) -> Objective:
    config = make_config(
        "clarinet",
        setting="pc",
        complementary_loss=loss,
        held_out_share=held_out_share,
        batch_size=batch_size,
    )
    domains = prepare(data, config, CPU)
    return Objective(config, domains, build_networks(config, domains, CPU), steps=12, epoch_steps=4)


def whole_parts(data: TrainData) -> list[SourceBatch]:
    """The data set as one batch of each kind."""
    assert data.probabilities is not None
    parts = []
    for rows in (data.complementary >= 0, data.true >= 0):
        parts.append(
            SourceBatch(
                pixels=torch.zeros(0),
                complementary=data.complementary[rows],
                true=data.true[rows],
                weights=data.weights[rows],
                images=rows,
                no_classes=data.complementary[rows, None],
                probabilities=data.probabilities[rows],
            )
        )
    return parts


class TestStep:
    """The whole data as one batch, so that what a step adds up can be summed over all labels at once."""

    def test_inverse_is_one_mean_over_all_answers(self) -> None:
        data = make_questions()
        objective, parts = make_objective("inverse", data), whole_parts(data)
        logits = [torch.randn(len(part.true), 3, generator=generator(1, "logits")) for part in parts]
        total = 0.0
        assert data.probabilities is not None
        for part, rows, b in zip(
            parts, logits, (1 - objective.domains.alpha, objective.domains.alpha), strict=True
        ):
            losses = -rows.log_softmax(1)
            assert part.probabilities is not None
            for loss, no, yes, w, q in zip(
                losses, part.complementary, part.true, part.weights, part.probabilities, strict=True
            ):
                answer = loss[yes] if yes >= 0 else loss.sum() / 2 - loss[no]
                total += b * float(w * answer / q)

        _, reported = objective._labels(kinds_of(parts), logits, label_noise=None)

        alpha = objective.domains.alpha
        shown = (1 - alpha) * reported["complementary"] + alpha * reported["true"]
        assert float(shown) == pytest.approx(total / float(data.weights.sum()), rel=1e-4)

    def test_scarce_means_over_all_images_and_those_that_are_not_k(self) -> None:
        data = make_questions(class_shares=torch.tensor([0.5, 0.3, 0.2]))
        objective, parts = make_objective("scarce", data), whole_parts(data)
        logits = [torch.randn(len(part.true), 3, generator=generator(1, "logits")) for part in parts]
        scores = torch.empty(240, 3)
        scores[data.complementary >= 0], scores[data.true >= 0] = logits
        phi, weights = F.softplus, data.weights
        total = 0.0
        for k, share in enumerate((0.5, 0.3, 0.2)):
            not_k, z = weights * (data.complementary == k), scores[:, k]
            total += float((weights * phi(-z)).sum() / weights.sum())
            total += (1 - share) * float((not_k * (phi(z) - phi(-z))).sum() / not_k.sum())

        _, reported = objective._labels(kinds_of(parts), logits, label_noise=None)

        assert float(reported["complementary"]) == pytest.approx(total, rel=1e-4)

    @pytest.mark.parametrize("loss", ["inverse", "scarce"])
    @pytest.mark.parametrize("batch_size", [2, 3, 6])
    def test_over_all_batches_the_risk_is_that_of_the_data_whatever_they_lack(
        self, batch_size: int, loss: str
    ) -> None:
        data = make_data(
            8,  # six labels of which batches of 2, 3 and 6 take whole passes
            complementary=torch.tensor([0, 0, 0, 0, 1, 2, -1, -1]),
            true=torch.tensor([-1] * 6 + [0, 1]),
            probabilities=PREFERENCE[torch.tensor([0, 0, 0, 0, 1, 2, 0, 1])],
        )
        whole, small = (make_objective(loss, data, batch_size=size) for size in (240, batch_size))
        part, true_part = whole_parts(data)
        every = torch.randn(8, 3, generator=generator(1, "logits"))
        logits, true_logits = every[:6], every[6:]

        def risk(objective: Objective, rows: list[int]) -> float:
            chosen = dataclasses.replace(
                part,
                complementary=part.complementary[rows],
                weights=part.weights[rows],
                probabilities=None if part.probabilities is None else part.probabilities[rows],
            )
            assert objective._labels._facts is not None
            parts, outputs = [chosen, true_part], [logits[rows], true_logits]
            return float(complementary_loss(objective.config, objective._labels._facts, parts, outputs)[1])

        batches = [list(rows) for rows in combinations(range(6), batch_size)]
        mean = sum(risk(small, rows) for rows in batches) / len(batches)
        assert mean == pytest.approx(risk(whole, list(range(6))), rel=1e-4)

    def test_scarce_counts_held_out_answers_where_it_counts_those_with_a_yes(self) -> None:
        data = make_questions(weights=torch.ones(240))

        facts, halved = (
            make_objective("scarce", data, held_out_share=share)._labels._facts for share in (0.0, 0.5)
        )

        assert facts is not None
        assert halved is not None
        assert (
            halved.counted_no == facts.counted_no == pytest.approx(int((data.complementary >= 0).sum()) / 240)
        )

    def test_forward_takes_the_given_matrix_or_estimates_the_preference(self) -> None:
        given = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.4, 0.6, 0.0]])

        def matrix(data: TrainData) -> Tensor:
            config = make_config(complementary_loss="forward", held_out_share=0)
            return LabelFacts.of(config, prepare(data, config, CPU), 16).transition

        named = make_questions().complementary
        weights = make_questions().weights[named >= 0]
        estimate = transition_of_questions(named[named >= 0], torch.full((3,), 1 / 3), weights=weights)

        assert torch.equal(matrix(make_questions(transition=given)), given)
        torch.testing.assert_close(
            matrix(make_questions()), estimate.float(), atol=0.01, rtol=0
        )  # weights have mean 1 there
        assert float((estimate[2] - torch.tensor([7 / 9, 2 / 9, 0])).abs().max()) < 0.1
