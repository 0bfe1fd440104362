"""Campaigns whose pictures are as hard for one person as for another: do labels claim what is true of them?

`python -m tests.app.quality.hard_pictures` prints the table of docs/results/quality.md.
"""

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.annotation.consensus import answers_needed
from app.campaigns.confirming import Confirming
from app.planning.offers import Policy, uniform_cases, yield_of
from app.quality.dawid_skene import Dependence, Estimate
from app.quality.dependence import fit

ERROR = 0.177  # share of images seen wrongly, as by crowd workers on CIFAR-10
PEOPLE = 8
# Share of a picture's errors in which everybody who errs sees the same wrong class.
KINDS = {
    "alike": "all pictures are as hard",
    "quarter": "a quarter of the pictures is hard (56 % seen wrongly, the others 5 %)",
    "any": "any difficulty: Beta(0.3, 1.4)",
}


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """All answers of a campaign that confirms each yes; of two classes, four of nine questions."""

    questions: NDArray[np.int64]
    people: NDArray[np.int64]
    is_yes: NDArray[np.bool_]
    yes: NDArray[np.int64]  # (N,) of each question
    no: NDArray[np.int64]
    is_match: NDArray[np.bool_]


def answered(kind: str, *, images: int, num_classes: int, seed: int) -> Answers:
    """Who errs sees any of the other classes, two of them more often than the rest."""
    chance = np.random.default_rng(seed)
    truth = chance.integers(0, num_classes, images)
    asked = chance.integers(0, num_classes, images)
    errors = {
        "alike": np.full(images, ERROR),
        "quarter": np.where(chance.random(images) < 0.25, 0.56, 0.05),
        "any": chance.beta(0.3, 0.3 * (1 - ERROR) / ERROR, images),
    }[kind]
    near = 1 + np.arange(num_classes - 1)  # how far behind the true class, in a circle
    shares_of = np.where(near <= 2, 4.0, 1.0)
    cumulative = np.cumsum(shares_of / shares_of.sum())
    order = np.argsort(chance.random((images, PEOPLE)), axis=1)
    yes, no = np.zeros(images, np.int64), np.zeros(images, np.int64)
    told: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]] = []
    policy = policy_of(num_classes)
    leads, shares = zip(*policy.leads, strict=True)
    lead = np.random.default_rng([seed, 1]).choice(leads, images, p=shares)
    needed = np.array(
        [
            [
                [answers_needed(y, n, confirm_yes=policy.confirm_yes, lead=by) for n in range(5)]
                for y in range(5)
            ]
            for by in range(3)
        ]
    )
    while len(waiting := np.flatnonzero(needed[lead, yes, no] > yes + no)):
        wrongly = chance.random(len(waiting)) < errors[waiting]
        other = near[np.searchsorted(cumulative, chance.random(len(waiting)))]
        seen = np.where(wrongly, (truth[waiting] + other) % num_classes, truth[waiting])
        is_yes = seen == asked[waiting]
        told.append((waiting, order[waiting, (yes + no)[waiting]], is_yes))
        yes[waiting] += is_yes
        no[waiting] += ~is_yes
    questions, people, said = (np.concatenate(part) for part in zip(*told, strict=True))
    return Answers(questions, people, said, yes, no, truth == asked)


def policy_of(num_classes: int) -> Policy:
    """What such a campaign asks of a second person."""
    return Policy.of(Confirming(is_on=True, overlap=1, num_classes=num_classes))


@dataclass(frozen=True, slots=True)
class Compared:
    """Shares of wrong labels: as the model claims, as they are, and as a plan by the same figures expects."""

    true: tuple[float, float, float]
    complementary: tuple[float, float, float]
    dependence: Dependence


def compared(answers: Answers, *, num_classes: int) -> Compared:
    """Of one campaign."""
    count = len(answers.is_match)
    found: Estimate = fit(
        answers.questions,
        answers.people,
        answers.is_yes,
        prior=1 / num_classes,
        known=np.full(count, np.nan),
        num_people=PEOPLE,
    )
    given = np.bincount(answers.people, minlength=PEOPLE)
    error = 1 - float(found.sensitivity @ given / given.sum())
    policy = policy_of(num_classes)
    plan = yield_of(uniform_cases(error, num_classes, found.dependence), policy)
    true = answers.yes - answers.no >= (2 if policy.confirm_yes else 1)
    complementary = answers.no > answers.yes
    wrong = 1 - found.probability_yes
    return Compared(
        (float(wrong[true].mean()), float((~answers.is_match)[true].mean()), plan.wrong_true),
        (
            float(1 - wrong[complementary].mean()),
            float(answers.is_match[complementary].mean()),
            plan.wrong_complementary,
        ),
        found.dependence,
    )


def average(kind: str, *, images: int, num_classes: int, campaigns: int) -> Compared:
    """Over several campaigns: one alone has a handful of wrong true labels."""
    found = [
        compared(answered(kind, images=images, num_classes=num_classes, seed=seed), num_classes=num_classes)
        for seed in range(campaigns)
    ]
    true, complementary, dependence = (
        np.mean([getattr(one, name) for one in found], axis=0)
        for name in ("true", "complementary", "dependence")
    )
    return Compared(tuple(true), tuple(complementary), Dependence(*dependence))


def print_figures() -> None:
    """The table of docs/results/quality.md."""
    write = sys.stdout.write
    write(
        "| K | pictures | images | wrong true: claimed / real / plan | wrong complementary | dependence |\n"
    )
    write("| --- | --- | --- | --- | --- | --- |\n")
    for num_classes in (2, 5, 10):
        for kind in KINDS:
            for images, campaigns in ((1_000, 20), (4_000, 10), (20_000, 5)):
                found = average(kind, images=images, num_classes=num_classes, campaigns=campaigns)
                figures = " | ".join(
                    " / ".join(f"{100 * share:.1f}" for share in shares)
                    for shares in (found.true, found.complementary)
                )
                told = f"{found.dependence.match:.2f}, {found.dependence.other:.2f}"
                write(f"| {num_classes} | {kind} | {images:,} | {figures} | {told} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    print_figures()
