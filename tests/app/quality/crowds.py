"""Crowds that answer by themselves: what a campaign's policy makes of people who see images wrongly.

`python -m tests.app.quality.crowds` prints the figures of docs/results/quality.md.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.annotation.consensus import MAX_SLOTS, answers_needed, verdict, weighed
from app.quality import dependence
from app.quality.doubts import is_doubtful
from clarinet.files.label_table import LabelKind
from worker.demo.perception import read_confusion

CONFUSION = (
    Path(os.environ.get("CLARINET_DATA", Path(__file__).parents[4] / "shared" / "data"))
    / "human_confusion.csv"
)
NUM_CLASSES = 10
HONEST, RANDOM, ALWAYS_NO = "sees through the matrix", "says yes or no at random", "always says no"


def weights_of_seen(path: Path = CONFUSION) -> NDArray[np.float64]:
    """(K, K) cumulative probabilities with which each class is seen as each."""
    names = path.read_text(encoding="utf-8").splitlines()[0].split(",")[1:]
    cumulative = np.array(read_confusion(path, names))
    return np.asarray(cumulative / cumulative[:, -1:])


@dataclass
class Crowd:
    """N questions about one image each, answered in turn by some of P people in random order."""

    kinds: Sequence[str]
    count: int
    seed: int
    confirm_yes: bool = True

    def __post_init__(self) -> None:
        self.chance = np.random.default_rng(self.seed)
        self.truth = self.chance.integers(0, NUM_CLASSES, self.count)
        self.asked = self.chance.integers(0, NUM_CLASSES, self.count)
        self.order = np.argsort(self.chance.random((self.count, len(self.kinds))), axis=1)
        self.yes = np.zeros(self.count, dtype=np.int64)
        self.no = np.zeros(self.count, dtype=np.int64)
        self.least = np.ones(self.count, dtype=np.int64)
        self.questions: list[NDArray[np.int64]] = []
        self.people: list[NDArray[np.int64]] = []
        self.said_yes: list[NDArray[np.bool_]] = []
        self.seen = weights_of_seen()
        self.finish()

    @property
    def is_match(self) -> NDArray[np.bool_]:
        """(N,) whether yes is right."""
        return np.asarray(self.truth == self.asked)

    @property
    def extra(self) -> float:
        """Answers beyond one per question, as a share."""
        return float((self.yes + self.no).sum() / self.count - 1)

    def finish(self) -> None:
        """Ask until no question needs more answers."""
        needed = np.array(
            [
                [
                    [
                        answers_needed(yes, no, confirm_yes=self.confirm_yes, least=least)
                        for least in range(1, MAX_SLOTS + 1)
                    ]
                    for no in range(MAX_SLOTS + 1)
                ]
                for yes in range(MAX_SLOTS + 1)
            ]
        )
        while len(waiting := np.flatnonzero(needed[self.yes, self.no, self.least - 1] > self.yes + self.no)):
            self._answer(waiting)

    def _answer(self, questions: NDArray[np.int64]) -> None:
        people = self.order[questions, (self.yes + self.no)[questions]]
        chance = self.chance.random(len(questions))
        seen = (chance[:, None] >= self.seen[self.truth[questions]]).sum(axis=1)
        says = seen == self.asked[questions]
        kinds = np.array(self.kinds)[people]
        says = np.where(kinds == RANDOM, self.chance.random(len(questions)) < 1 / 2, says)
        says &= kinds != ALWAYS_NO
        self.questions.append(questions)
        self.people.append(people)
        self.said_yes.append(says)
        self.yes[questions] += says
        self.no[questions] += ~says

    def probabilities(self) -> NDArray[np.float64]:
        """(N,) that yes is right, by the model."""
        return dependence.fit(
            np.concatenate(self.questions),
            np.concatenate(self.people),
            np.concatenate(self.said_yes),
            prior=1 / NUM_CLASSES,
            known=np.full(self.count, np.nan),
            num_people=len(self.kinds),
        ).probability_yes

    def labels(self, *, by_people: bool = True) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(N,) 1 for true, 0 for complementary, -1 for none, and (N,) weights."""
        probabilities = self.probabilities() if by_people else None
        kinds = np.full(self.count, -1)
        weights = np.zeros(self.count)
        for i, (yes, no) in enumerate(zip(self.yes.tolist(), self.no.tolist(), strict=True)):
            found = verdict(yes, no, confirm_yes=self.confirm_yes)
            if probabilities is not None:
                found = weighed(found, float(probabilities[i]), num_classes=NUM_CLASSES)
            if found.kind is not None:
                kinds[i], weights[i] = found.kind is LabelKind.TRUE, found.weight
        return kinds, weights

    def ask_again(self) -> None:
        """One more person about each doubtful question, and more until they are done."""
        probabilities = self.probabilities()
        doubtful = []
        for i, (yes, no) in enumerate(zip(self.yes.tolist(), self.no.tolist(), strict=True)):
            given = weighed(
                verdict(yes, no, confirm_yes=self.confirm_yes),
                float(probabilities[i]),
                num_classes=NUM_CLASSES,
            )
            if yes + no < MAX_SLOTS and is_doubtful(given, num_classes=NUM_CLASSES):
                doubtful.append(i)
        chosen = np.array(doubtful, dtype=np.int64)
        self.least[chosen] = (self.yes + self.no)[chosen] + 1
        self.finish()


@dataclass(frozen=True)
class Figures:
    """How good a crowd's labels are: shares."""

    extra: float
    unlabelled: float
    wrong_yes: float
    wrong_no: float
    wrong_yes_weighed: float
    wrong_no_weighed: float

    @classmethod
    def of(cls, crowd: Crowd, *, by_people: bool = True) -> "Figures":
        """Of a crowd that has finished."""
        kinds, weights = crowd.labels(by_people=by_people)
        yes, no = kinds == 1, kinds == 0
        wrong_yes, wrong_no = ~crowd.is_match[yes], crowd.is_match[no]
        return cls(
            extra=crowd.extra,
            unlabelled=float((kinds < 0).mean()),
            wrong_yes=float(wrong_yes.mean()),
            wrong_no=float(wrong_no.mean()),
            wrong_yes_weighed=float(np.average(wrong_yes, weights=weights[yes])),
            wrong_no_weighed=float(np.average(wrong_no, weights=weights[no])),
        )

    def row(self, name: str) -> str:
        """For a table in Markdown."""
        values = (
            self.extra,
            self.unlabelled,
            self.wrong_yes,
            self.wrong_no,
            self.wrong_yes_weighed,
            self.wrong_no_weighed,
        )
        return f"| {name} | " + " | ".join(f"{100 * value:.2f}" for value in values) + " |\n"


def print_figures(count: int = 200_000) -> None:
    """The tables of docs/results/quality.md."""
    write = sys.stdout.write
    write(
        "| people, policy | extra answers | no label | wrong yes | wrong no | weighed: yes | weighed: no |\n"
    )
    write("| --- | --- | --- | --- | --- | --- | --- |\n")
    crowds = {
        "8 who see through the matrix": [HONEST] * 8,
        "7 of them, 1 at random": [HONEST] * 7 + [RANDOM],
        "7 of them, 1 who always says no": [HONEST] * 7 + [ALWAYS_NO],
    }
    for name, kinds in crowds.items():
        write(
            Figures.of(Crowd(kinds, count, 0, confirm_yes=False), by_people=False).row(
                f"{name}; a yes stands alone"
            )
        )
        crowd = Crowd(kinds, count, 0)
        write(Figures.of(crowd, by_people=False).row(f"{name}; majority"))
        write(Figures.of(crowd).row(f"{name}; **Dawid-Skene (default)**"))
        crowd.ask_again()
        write(Figures.of(crowd).row(f"{name}; doubtful ones asked again once"))


if __name__ == "__main__":
    print_figures()
