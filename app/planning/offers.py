"""What a budget buys: expected labels and noise of yes/no questions beside ordinary labelling. Pure.

The model of a person: who sees an image wrongly sees another class, and says yes when the class seen is the
one asked about. People err together on the same hard images, as far as the model says that weighs the labels
(`app/quality/dawid_skene.py`): a second yes tells less than a first.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from app.annotation.consensus import MAX_SLOTS, answers_needed, verdict
from app.campaigns.confirming import Confirming
from app.quality.service import INDEPENDENT, SHARES, Dependence, chances, spreads, thresholds_of
from clarinet.files.label_table import LabelKind

# Ten classes to choose from, median of 15,000 tasks on CIFAR-10 (computed from CIFAR-10N).
KWAY_SECONDS = 4.2


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """Kinds of questions. C cases."""

    shares: NDArray[np.float64]  # (C,) of all questions, adding up to 1
    chance_yes: NDArray[np.float64]  # (C,) that one person says yes
    is_match: NDArray[np.bool_]  # (C,) whether the class asked about is the right one


@dataclass(frozen=True, slots=True)
class Policy:
    """How many people a question is put to."""

    confirm_yes: bool
    overlap: int = 1
    leads: tuple[tuple[int, float], ...] = ((0, 1.0),)  # as in `Confirming`

    @classmethod
    def of(cls, confirming: Confirming) -> "Policy":
        """That of a campaign."""
        return cls(confirming.of_yes, confirming.overlap, confirming.leads)


@dataclass(frozen=True, slots=True)
class Yield:
    """What one question gives, on average."""

    answers: float
    true: float  # labels "it is this"
    complementary: float  # labels "it is not this"
    wrong_true: float  # share of the true labels that are wrong
    wrong_complementary: float
    after_first: float  # answers after the first
    yes_after_first: float  # of these, yes

    @property
    def undecided(self) -> float:
        """Share of questions on which people still disagree at the end; an admin settles them."""
        return max(0.0, 1 - self.true - self.complementary)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a budget buys in one way of labelling."""

    name: str  # confirmed, single, k-way
    seconds: float  # per answer
    price: float  # per answer
    answers: int
    images: int
    true_labels: int
    complementary_labels: int
    undecided: int
    wrong_true: float  # shares
    wrong_complementary: float
    hours: float
    price_per_image: float


def uniform_cases(error: float, num_classes: int, dependence: Dependence = INDEPENDENT) -> Cases:
    """Uniform questions to people who see a share `error` of images wrongly, as any other class alike.

    A case for each difficulty, where yes is right and where no is.
    """
    if not 0 <= error < 1 or num_classes < 2:  # noqa: PLR2004
        raise ValueError(f"no error rate or number of classes: {error}, {num_classes}")
    share = 1 / num_classes
    if dependence == INDEPENDENT:
        chance_yes = np.repeat([[1 - error], [error / (num_classes - 1)]], len(SHARES), axis=1)  # (2, M)
    else:
        spread = spreads(dependence)
        thresholds = thresholds_of((1 - error, 1 - error / (num_classes - 1)), spread)
        chance_yes = chances(thresholds[:, None], spread)[:, 0, 1]
    return Cases(
        np.concatenate([share * SHARES, (1 - share) * SHARES]),
        chance_yes.ravel(),
        np.repeat([True, False], len(SHARES)),
    )


def yield_of(cases: Cases, policy: Policy) -> Yield:
    """The expectation over all ways in which people may answer, by the rules that campaigns follow."""
    # How likely each case has had so many yes and no, while it is still asked, by the lead that it needs.
    open_: dict[tuple[int, int, int], NDArray[np.float64]] = {
        (0, 0, lead): np.full_like(cases.shares, share) for lead, share in policy.leads
    }
    given: dict[LabelKind | None, NDArray[np.float64]] = defaultdict(lambda: np.zeros_like(cases.shares))
    answers = after_first = yes_after_first = 0.0
    for count in range(MAX_SLOTS + 1):
        following: dict[tuple[int, int, int], NDArray[np.float64]] = defaultdict(
            lambda: np.zeros_like(cases.shares)
        )
        for (yes, no, lead), chance in open_.items():
            needed = answers_needed(
                yes,
                no,
                confirm_yes=policy.confirm_yes,
                least=policy.overlap,
                lead=lead,
            )
            if needed <= count:
                given[verdict(yes, no, confirm_yes=policy.confirm_yes).kind] += chance
                continue
            asked = float(cases.shares @ chance)
            answers += asked
            if count:
                after_first += asked
                yes_after_first += float(cases.shares @ (chance * cases.chance_yes))
            following[yes + 1, no, lead] += chance * cases.chance_yes
            following[yes, no + 1, lead] += chance * (1 - cases.chance_yes)
        open_ = following
    true, complementary = given[LabelKind.TRUE], given[LabelKind.COMPLEMENTARY]  # (C,)
    true_share, complementary_share = float(cases.shares @ true), float(cases.shares @ complementary)
    wrong_true = float(cases.shares @ (true * ~cases.is_match))
    wrong_complementary = float(cases.shares @ (complementary * cases.is_match))
    return Yield(
        answers=answers,
        true=true_share,
        complementary=complementary_share,
        wrong_true=wrong_true / true_share if true_share else 0.0,
        wrong_complementary=wrong_complementary / complementary_share if complementary_share else 0.0,
        after_first=after_first,
        yes_after_first=yes_after_first,
    )


def offers(
    *,
    budget: float,
    price: float,
    seconds: float,
    error: float,
    num_classes: int,
    dependence: Dependence = INDEPENDENT,
    overlap: int = 1,
    kway_seconds: float = KWAY_SECONDS,
) -> list[Offer]:
    """Yes/no questions with and without confirmation, then ordinary labelling at the same pay per hour.

    Args:
        budget: to spend, in the unit of `price`.
        price: of one yes/no answer.
        seconds: that one takes.
        error: share of images that one person sees wrongly.
        num_classes: K.
        dependence: how far people err together.
        overlap: people asked each question whatever they say.
        kway_seconds: that choosing one of the K classes takes.
    """
    cases = uniform_cases(error, num_classes, dependence)
    answers = floor(budget / price)
    found = []
    for name, confirm in (("confirmed", True), ("single", False)):
        per_question = yield_of(cases, Policy.of(Confirming(confirm, overlap, num_classes)))
        images = floor(answers / per_question.answers)
        found.append(
            Offer(
                name=name,
                seconds=seconds,
                price=price,
                answers=answers,
                images=images,
                true_labels=round(images * per_question.true),
                complementary_labels=round(images * per_question.complementary),
                undecided=round(images * per_question.undecided),
                wrong_true=per_question.wrong_true,
                wrong_complementary=per_question.wrong_complementary,
                hours=answers * seconds / 3600,
                price_per_image=price * per_question.answers,
            )
        )
    kway_price = price * kway_seconds / seconds
    chosen = floor(budget / kway_price)
    found.append(
        Offer(
            name="k-way",
            seconds=kway_seconds,
            price=kway_price,
            answers=chosen,
            images=chosen,
            true_labels=chosen,
            complementary_labels=0,
            undecided=0,
            wrong_true=error,
            wrong_complementary=0.0,
            hours=chosen * kway_seconds / 3600,
            price_per_image=kway_price,
        )
    )
    return found
