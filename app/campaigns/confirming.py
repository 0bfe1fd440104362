"""What a second person is asked: every yes or, between two classes, a half of the questions. Pure.

With many classes a yes is rare, tells much and is wrong far more often than a no: so each is confirmed. Of
two classes a no names one as well as a yes does. Were only yeses confirmed there, two thirds of all answers
would be yes, and more of those of whoever is slow and confirms what others said. So what is confirmed does
not depend on what was said: it is a half of the questions that chance chooses, which costs as much. A yes and
a no are then treated alike.

Where two people differ, a third decides. How far people err together, three answers cannot tell: how often
all three agree follows from how often two do. A fourth tells: so a quarter of that half goes on until yes or
no leads by two. Else no number of answers would make the labels' weights right.
"""

from typing import NamedTuple

TWO = 2  # classes
# Leads that questions between two classes need, and for which shares of them; see `Confirming.leads`.
_OF_HALF = ((2, 1 / 8), (1, 3 / 8), (0, 1 / 2))


class Confirming(NamedTuple):
    """A campaign's policy."""

    is_on: bool  # `confirm_yes`
    overlap: int  # people who are asked each question, whatever they say
    num_classes: int

    @property
    def of_yes(self) -> bool:
        """Whether a yes stands only once a second person confirmed it."""
        return self.is_on and self.num_classes > TWO

    @property
    def of_half(self) -> bool:
        """Whether a half of the questions is put to a second person, whatever the first one says.

        Not where each is put to several anyway.
        """
        return self.is_on and self.num_classes == TWO and self.overlap == 1

    @property
    def leads(self) -> tuple[tuple[int, float], ...]:
        """By how many answers yes or no must lead where a second person is asked, and for which share.

        0: nobody is asked whatever the first one says; who disagrees is followed by one more all the same.
        """
        return _OF_HALF if self.of_half else ((0, 1.0),)

    def lead(self, chance: float) -> int:
        """That of a question with this chance in [0, 1)."""
        for lead, share in self.leads:
            if chance < share:
                return lead
            chance -= share
        return self.leads[-1][0]

    @property
    def share(self) -> float:
        """How many questions are confirmed, expected: 1 / K by either policy."""
        return 1 / self.num_classes if self.of_yes or self.of_half else 0.0
