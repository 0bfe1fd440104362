"""Campaigns with somebody who does not look: how soon is he found, and who is accused beside him?

`python -m tests.app.quality.idlers 100` prints the table of docs/results/quality.md, of a hundred campaigns
of each kind, in a quarter of an hour on one core.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from app.annotation.consensus import answers_needed
from app.campaigns.confirming import Confirming
from app.quality import looking
from app.quality.dependence import fit, usual

IMAGES = 4_000
ERRORS = (0.03, 0.05, 0.08, 0.15)  # share of images that each honest person sees wrongly
HARD = 0.2  # of the pictures; they are seen wrongly three times as often as all
LOOKS = (300, 600)  # of his answers, at which everybody is judged; and at the end
MARKED_AFTER, PAUSED_AFTER = 300, 600
SPREAD = 300  # a yes returns at a random place among so many questions

Says = Callable[[int, np.random.Generator, int], bool]  # which answer of his it is, chance, K
IDLERS: dict[str, Says] = {
    "always no": lambda nth, chance, k: False,  # noqa: ARG005
    "yes with 1/2": lambda nth, chance, k: bool(chance.random() < 1 / 2),  # noqa: ARG005
    "yes with 1/K": lambda nth, chance, k: bool(chance.random() < 1 / k),  # noqa: ARG005
    "alternating": lambda nth, chance, k: nth % 2 == 0,  # noqa: ARG005
}


@dataclass
class Campaign:
    """Honest people and one who does not look, person 0; each answer goes to somebody at random.

    A yes is asked again at a random place among the next SPREAD questions; of two classes, part of them are.
    """

    says: Says
    num_classes: int
    seed: int
    images: int = IMAGES
    marked: dict[int, set[int]] = field(default_factory=dict)  # people by how many answers he had given
    paused: dict[int, set[int]] = field(default_factory=dict)

    def run(self) -> "Campaign":
        """Answer everything, and judge at LOOKS and at the end."""
        chance = np.random.default_rng(self.seed)
        people = 1 + len(ERRORS)
        match = chance.random(self.images) < 1 / self.num_classes
        policy = Confirming(is_on=True, overlap=1, num_classes=self.num_classes)
        chances = np.random.default_rng([self.seed, 1]).random(self.images).tolist()
        hard = chance.random(self.images) < HARD
        factors = np.where(hard, 3.0, (1 - 3 * HARD) / (1 - HARD))
        queue = [(float(at), at) for at in range(self.images)]
        answers: list[tuple[int, int, bool]] = []
        said: dict[int, dict[int, bool]] = {}
        given = np.zeros(people, dtype=np.int64)
        while queue:
            person = int(chance.integers(people))
            place = next((n for n, (_, at) in enumerate(queue) if person not in said.get(at, {})), None)
            if place is None:
                queue = [item for item in queue if len(said.get(item[1], {})) < people]
                continue
            _, question = queue.pop(place)
            if person == 0:
                is_yes = self.says(int(given[0]), chance, self.num_classes)
            else:
                wrongly = chance.random() < ERRORS[person - 1] * factors[question]
                other = wrongly and chance.random() < 1 / (self.num_classes - 1)
                is_yes = not wrongly if match[question] else bool(other)
            said.setdefault(question, {})[person] = is_yes
            answers.append((question, person, is_yes))
            given[person] += 1
            values = list(said[question].values())
            needed = answers_needed(
                sum(values),
                len(values) - sum(values),
                confirm_yes=policy.of_yes,
                lead=policy.lead(chances[question]),
            )
            if needed > len(values):
                place = min(int(chance.integers(SPREAD)), len(queue))
                queue.insert(place, (0.0, question))
            if person == 0 and given[0] in LOOKS:
                self.judge(answers, int(given[0]))
        self.judge(answers, 0)
        return self

    def judge(self, answers: list[tuple[int, int, bool]], when: int) -> None:
        """Who is marked and who paused, by these answers."""
        questions, people, is_yes = map(np.array, zip(*answers, strict=True))
        ids, questions = np.unique(questions, return_inverse=True)
        known = np.full(len(ids), np.nan)
        prior = 1 / self.num_classes
        found = fit(
            questions,
            people,
            is_yes,
            prior=prior,
            known=known,
            num_people=1 + len(ERRORS),
            dependence=usual(prior),
        )
        told = looking.evidence(questions, people, is_yes, prior=prior, known=known, found=found)
        counts = np.bincount(people, minlength=len(told))
        enough = counts >= looking.FEWEST
        self.marked[when] = set(np.flatnonzero(enough & (told < looking.MARKED)).tolist())
        self.paused[when] = set(np.flatnonzero(enough & (told < looking.PAUSED)).tolist())


def is_found(judged: dict[int, set[int]], within: int) -> bool:
    """Whether person 0 is among them at any look until then."""
    return any(0 in people for when, people in judged.items() if 0 < when <= within)


def accused(judged: dict[int, set[int]]) -> set[int]:
    """Honest people that were ever among them."""
    return set().union(*judged.values()) - {0}


def print_figures(campaigns: int) -> None:
    """The table of docs/results/quality.md."""
    write = sys.stdout.write
    write("| K | who does not look | marked after 300 | paused after 600 | honest: marked | paused |\n")
    write("| --- | --- | --- | --- | --- | --- |\n")
    for num_classes in (2, 5, 10):
        for name, says in IDLERS.items():
            runs = [Campaign(says, num_classes, seed).run() for seed in range(campaigns)]
            honest = campaigns * len(ERRORS)
            shares = [
                sum(is_found(run.marked, MARKED_AFTER) for run in runs) / campaigns,
                sum(is_found(run.paused, PAUSED_AFTER) for run in runs) / campaigns,
                sum(len(accused(run.marked)) for run in runs) / honest,
                sum(len(accused(run.paused)) for run in runs) / honest,
            ]
            figures = " | ".join(f"{100 * share:.1f} %" for share in shares)
            write(f"| {num_classes} | {name} | {figures} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    print_figures(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
