"""What a budget buys, checked by hand and against every sequence of answers written out."""

from itertools import product

import numpy as np
import pytest

from app.annotation.consensus import MAX_SLOTS, answers_needed, verdict
from app.annotation.mixing import EXTRA
from app.campaigns.confirming import Confirming
from app.planning.offers import (
    Cases,
    Policy,
    offers,
    uniform_cases,
    yield_of,
)
from app.quality.service import INDEPENDENT, Dependence
from clarinet.files.label_table import LabelKind


def written_out(cases: Cases, policy: Policy) -> dict[str, float]:
    """The same figures, by walking through every sequence of answers of every case."""
    sums = dict.fromkeys(
        ("answers", "true", "complementary", "wrong_t", "wrong_c", "after_first", "yes_after_first"), 0.0
    )
    for share, chance, match in zip(cases.shares, cases.chance_yes, cases.is_match, strict=True):
        for (lead, part), sequence in product(policy.leads, product((True, False), repeat=MAX_SLOTS)):
            weight = part * share * np.prod([chance if yes else 1 - chance for yes in sequence])
            said: list[bool] = []
            for yes in sequence:
                count = (said.count(True), said.count(False))
                if needed(*count, policy, lead=lead) <= len(said):
                    break
                said.append(yes)
            kind = verdict(said.count(True), said.count(False), confirm_yes=policy.confirm_yes).kind
            sums["answers"] += weight * len(said)
            sums["after_first"] += weight * (len(said) - 1)
            sums["yes_after_first"] += weight * sum(said[1:])
            sums["true"] += weight * (kind is LabelKind.TRUE)
            sums["complementary"] += weight * (kind is LabelKind.COMPLEMENTARY)
            sums["wrong_t"] += weight * (kind is LabelKind.TRUE and not match)
            sums["wrong_c"] += weight * (kind is LabelKind.COMPLEMENTARY and match)
    return sums


def needed(yes: int, no: int, policy: Policy, *, lead: int) -> int:
    return answers_needed(yes, no, confirm_yes=policy.confirm_yes, least=policy.overlap, lead=lead)


class TestYield:
    @pytest.mark.parametrize("num_classes", [2, 3, 10, 1000])
    @pytest.mark.parametrize("error", [0.0, 0.05, 0.177, 0.4])
    def test_without_confirmation_a_yes_is_wrong_with_e_and_a_no_with_e_over_k_minus_1(
        self, num_classes: int, error: float
    ) -> None:
        found = yield_of(uniform_cases(error, num_classes), Policy(confirm_yes=False))

        assert (found.answers, found.after_first) == pytest.approx((1, 0))
        assert found.true == pytest.approx(1 / num_classes)
        assert found.wrong_true == pytest.approx(error)
        assert found.wrong_complementary == pytest.approx(error / (num_classes - 1))
        assert found.undecided == pytest.approx(0)

    def test_faultless_people_cost_one_answer_more_per_yes(self) -> None:
        found = yield_of(uniform_cases(0.0, 10), Policy(confirm_yes=True))

        assert found.answers == pytest.approx(1 + 1 / 10)
        assert (found.true, found.complementary) == pytest.approx((0.1, 0.9))
        assert (found.wrong_true, found.wrong_complementary, found.undecided) == pytest.approx((0, 0, 0))

    def test_confirmation_worked_by_hand_for_two_classes(self) -> None:
        # Two classes, one image in four seen wrongly: the asked class is right in half of the questions, and
        # a yes then comes with 3/4, else with 1/4. Let p be that chance and q = 1 - p.
        # True label: yy, or yn then yy is 3 of 4 (lead 2): p^2 + p q p p.
        # Complementary: n; ynn (lead -1): q + p q q.   Undecided: ynyn (2 : 2): p q p q.
        # p = 3/4: 144/256 + 27/256 = 171/256;  64/256 + 12/256 = 76/256;  9/256.
        # p = 1/4:  16/256 +  3/256 =  19/256; 192/256 + 36/256 = 228/256;  9/256.
        # Answers: 1 + p + p q + p q p.
        # p = 3/4: 1 + 48/64 + 12/64 + 9/64 = 133/64; p = 1/4: 1 + 16/64 + 12/64 + 3/64 = 95/64.
        found = yield_of(uniform_cases(0.25, 2), Policy(confirm_yes=True))

        assert found.true == pytest.approx((171 + 19) / 512)
        assert found.complementary == pytest.approx((76 + 228) / 512)
        assert found.undecided == pytest.approx(18 / 512)
        assert found.wrong_true == pytest.approx(19 / 190)
        assert found.wrong_complementary == pytest.approx(76 / 304)
        assert found.answers == pytest.approx((133 + 95) / 128)

    def test_four_of_nine_questions_confirmed_worked_by_hand(self) -> None:
        # Two classes, one image in four seen wrongly: an answer is right with p = 3/4, wrong with q = 1/4.
        # Five of nine: one answer, wrong with 1/4. The confirmed four: two agree with p p + q q = 10/16,
        # else a third decides. Wrong: q q + 2 p q q = 4/64 + 6/64 = 10/64. Answers: 2 + 6/16.
        # Of a quarter of these, a fourth follows the third. Wrong: q q + 2 p q q q = 16/256 + 6/256;
        # undecided: 2 p q (p q + q p) = 36/256. Answers: 2 + 6/16 + 6/16.
        found = yield_of(uniform_cases(0.25, 2), Policy.of(Confirming(True, 1, 2)))

        assert found.answers == pytest.approx((5 * 1 + 3 * (2 + 6 / 16) + 2 + 12 / 16) / 9)
        assert found.undecided == pytest.approx(36 / 256 / 9)
        assert found.true == pytest.approx(found.complementary)
        wrong = (5 / 4 + 3 * 10 / 64 + 22 / 256) / 9
        labels = 1 - found.undecided
        assert (found.wrong_true, found.wrong_complementary) == pytest.approx([wrong / labels] * 2)
        assert found.yes_after_first == pytest.approx(found.after_first / 2)

    @pytest.mark.parametrize("confirm", [True, False])
    @pytest.mark.parametrize("overlap", [1, 2, 3])
    @pytest.mark.parametrize(("error", "num_classes"), [(0.0, 2), (0.3, 2), (0.177, 10), (0.6, 4)])
    def test_equals_every_sequence_written_out(
        self, error: float, num_classes: int, overlap: int, confirm: bool
    ) -> None:
        cases = uniform_cases(error, num_classes)
        policy = Policy.of(Confirming(confirm, overlap, num_classes))

        found, slow = yield_of(cases, policy), written_out(cases, policy)

        assert found.answers == pytest.approx(slow["answers"])
        assert (found.true, found.complementary) == pytest.approx((slow["true"], slow["complementary"]))
        assert found.wrong_true * found.true == pytest.approx(slow["wrong_t"])
        assert found.wrong_complementary * found.complementary == pytest.approx(slow["wrong_c"])
        assert (found.after_first, found.yes_after_first) == pytest.approx(
            (slow["after_first"], slow["yes_after_first"])
        )

    def test_errors_that_concentrate_make_confirmation_gain_less(self) -> None:
        # Everybody who errs takes a class for its neighbour. One question in five asks about the right class,
        # one about that neighbour.
        neighbour = Cases(
            shares=np.array([0.2, 0.2, 0.6]),
            chance_yes=np.array([0.8, 0.2, 0.0]),
            is_match=np.array([True, False, False]),
        )
        policy = Policy(confirm_yes=True)

        concentrated, spread = yield_of(neighbour, policy), yield_of(uniform_cases(0.2, 5), policy)

        assert concentrated.wrong_true > 3 * spread.wrong_true

    @pytest.mark.parametrize(("error", "num_classes"), [(-0.1, 3), (1.0, 3), (0.1, 1)])
    def test_impossible_rates_are_refused(self, error: float, num_classes: int) -> None:
        with pytest.raises(ValueError, match="no error rate"):
            uniform_cases(error, num_classes)


def test_who_errs_together_confirms_less() -> None:
    """Rates of one answer stay; what two say together is wrong more often, as the model has it."""
    policy, alone = Policy(confirm_yes=True), Policy(confirm_yes=False)
    independent, together = (uniform_cases(0.177, 10, d) for d in (INDEPENDENT, Dependence(0.6, 0.4)))

    assert yield_of(together, alone).wrong_true == pytest.approx(0.177, abs=2e-3)
    assert yield_of(independent, policy).wrong_true < 0.006
    assert 0.02 < yield_of(together, policy).wrong_true < 0.05


class TestOffers:
    def test_worked_by_hand(self) -> None:
        # 100 at 0.01 are 10,000 answers of one second. Faultless people, 10 classes: a confirmed question
        # costs 1.1 answers, so 9,090 images, a tenth of them true labels; unconfirmed 10,000 images.
        # Ordinary labels take 4.2 s at the same pay: 0.042 each, 2,380 of them.
        confirmed, single, kway = offers(budget=100, price=0.01, seconds=1, error=0, num_classes=10)

        assert (confirmed.answers, confirmed.images) == (10_000, 9_090)
        assert (confirmed.true_labels, confirmed.complementary_labels) == (909, 8_181)
        assert confirmed.price_per_image == pytest.approx(0.011)
        assert (single.images, single.true_labels, single.complementary_labels) == (10_000, 1_000, 9_000)
        assert (kway.images, kway.true_labels, kway.complementary_labels) == (2_380, 2_380, 0)
        assert kway.price == pytest.approx(0.042)
        assert (single.hours, kway.hours) == pytest.approx((10_000 / 3600, 2_380 * 4.2 / 3600))

    def test_two_classes_cost_four_answers_more_for_nine_questions(self) -> None:
        confirmed, single, _ = offers(budget=13.01, price=0.01, seconds=1, error=0, num_classes=2)
        twice, alike, _ = offers(budget=13.01, price=0.01, seconds=1, error=0, num_classes=2, overlap=2)

        assert (confirmed.images, confirmed.true_labels, confirmed.complementary_labels) == (900, 450, 450)
        assert confirmed.price_per_image == pytest.approx(0.01 * 13 / 9)
        assert single.images == 1_301
        assert (twice.images, alike.images) == (650, 650)

    def test_all_answers_of_two_classes_keep_the_bound_while_people_err_on_one_picture_in_ten(self) -> None:
        of_law = {
            law: yield_of(uniform_cases(0.1, 2), Policy.of(Confirming(True, 1, 2, law))).answers
            for law in (1, 2)
        }

        assert of_law[2] < 1 + 1 / 2 + EXTRA < of_law[1]

    def test_noise_stands_beside_the_labels(self) -> None:
        confirmed, single, kway = offers(budget=10, price=0.01, seconds=2, error=0.18, num_classes=10)

        assert (single.wrong_true, single.wrong_complementary) == pytest.approx((0.18, 0.02))
        assert confirmed.wrong_true < 0.01
        assert kway.wrong_true == 0.18
        assert kway.price == pytest.approx(0.021)
