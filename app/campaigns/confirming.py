"""What a second person is asked: every yes or, between two classes, a part of the questions. Pure.

With many classes a yes is rare, tells much and is wrong far more often than a no: so each is confirmed. Of
two classes a no names one as well as a yes does. Were only yeses confirmed there, two thirds of all answers
would be yes, and more of those of whoever is slow and confirms what others said. So what is confirmed does
not depend on what was said: it is a part of the questions that chance chooses. A yes and a no are then
treated alike. The part is 4/9: with third and fourth answers, which come where people differ, all answers
stay below 1 + 1/K + 5 % while people see up to one picture in ten wrongly. It was 1/2 at first, and campaigns
of then keep that law.

Where two people differ, a third decides. How far people err together, three answers cannot tell: how often
all three agree follows from how often two do. A fourth tells: so a quarter of that part goes on until yes or
no leads by two. Else no number of answers would make the labels' weights right.
"""

from typing import NamedTuple

TWO = 2  # classes
NEWEST = 2  # law of campaigns that are made now
# By law, leads that questions between two classes need, and for which shares of them; see `Confirming.leads`.
_OF_PART = {1: ((2, 1 / 8), (1, 3 / 8), (0, 1 / 2)), 2: ((2, 1 / 9), (1, 3 / 9), (0, 5 / 9))}
_WORDS = {1: "half", 2: "four of nine"}


class Confirming(NamedTuple):
    """A campaign's policy."""

    is_on: bool  # `confirm_yes`
    overlap: int  # people who are asked each question, whatever they say
    num_classes: int
    law: int = NEWEST  # of two classes: which part is confirmed

    @property
    def of_yes(self) -> bool:
        """Whether a yes stands only once a second person confirmed it."""
        return self.is_on and self.num_classes > TWO

    @property
    def of_part(self) -> bool:
        """Whether a part of the questions is put to a second person, whatever the first one says.

        Not where each is put to several anyway.
        """
        return self.is_on and self.num_classes == TWO and self.overlap == 1

    @property
    def leads(self) -> tuple[tuple[int, float], ...]:
        """By how many answers yes or no must lead where a second person is asked, and for which share.

        0: nobody is asked whatever the first one says; who disagrees is followed by one more all the same.
        """
        return _OF_PART[self.law] if self.of_part else ((0, 1.0),)

    @property
    def part_in_words(self) -> str:
        """Which part that is: "... of the questions"."""
        return _WORDS[self.law]

    def lead(self, chance: float) -> int:
        """That of a question with this chance in [0, 1)."""
        for lead, share in self.leads:
            if chance < share:
                return lead
            chance -= share
        return self.leads[-1][0]

    @property
    def share(self) -> float:
        """How many questions are confirmed, expected: of many classes each yes, 1 / K."""
        if self.of_part:
            return sum(share for lead, share in self.leads if lead)
        return 1 / self.num_classes if self.of_yes else 0.0
