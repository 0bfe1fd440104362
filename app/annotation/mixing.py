"""How questions that are asked again come between first ones, so that yes stays rare. Pure.

A yes *returns* to a second person, and whoever meets it will probably say yes as well. One after the other
such questions would teach people to say yes. So each first question decides by chance whether one that
returns stands behind it, about the same class and in the same block: nothing tells the two apart. Where first
questions have run out, *settled* ones, to which people said no, are asked again between those that return.

With a chance p of yes for a first question, 1 / K, the share of yes is to stay below p + 1/4. Aimed at is a
little less: a confirmation is taken for a certain yes. Where the settled ones that may be asked again do not
suffice for all that returns, all of it gets as large a share of them: none comes bare. Between two classes
what returns was chosen by chance and is a yes as often as any question, so that no settled one
has to hide it. Each chance follows from the campaign's secret seed and what it is about.
"""

from dataclasses import dataclass
from hashlib import blake2b

ABOVE = 0.24  # by this much may the share of yes lie above that among first questions
RETURNING = 3.5  # times as often as they arise may questions return, because people are not equally fast
MOST_RETURNING = (
    0.6  # per first question: were it nearly one, every second question would be one that returns
)
SETTLED_YES = 0.05  # share of yes among the answers to settled questions
EXTRA = 0.05  # answers beyond the first ones and their confirmations, per question
_CONFIRMING = 3  # a chance's number; `returning` has the others


@dataclass(frozen=True, slots=True)
class Mixture:
    """What stands beside first questions, and what beside the rest once they have run out."""

    probability: float  # of a yes to a first question
    returning: float  # per first question, at most
    settled_later: float  # settled ones per returning one where first ones have run out
    answers: float  # per question, the confirmations of first answers included, at most

    def settled_among_the_rest(self, allowed: int, coming: int) -> float:
        """Settled questions per returning one where first ones have run out.

        Args:
            allowed: how many settled ones may still be asked.
            coming: how many questions wait for another answer.
        """
        return min(self.settled_later, allowed / max(coming, 1))


def mixture(probability: float, *, least: int = 1) -> Mixture:
    """The law for questions whose class was drawn with this probability.

    Args:
        probability: 1 / K; as probable is a yes.
        least: yes and no answers that each question needs at least.
    """
    if probability >= 1 / 2:
        confirmed = probability if least == 1 else 0.0
        return Mixture(probability, MOST_RETURNING, 0.0, least + confirmed + EXTRA)
    share = probability + ABOVE
    returning = min(RETURNING * probability, ABOVE / (1 - share))
    settled_later = (1 - share) / (share - SETTLED_YES)
    return Mixture(probability, returning, settled_later, least + probability + EXTRA)


def chance_of_confirming(seed: str, question_id: int) -> float:
    """What `Confirming.lead` of a question between two classes follows from, whatever is said."""
    return chance(seed, question_id, _CONFIRMING)


def chance(seed: str, *about: int) -> float:
    """A number in [0, 1) that follows from the campaign's seed, 256 bits in hex, and what it is about."""
    text = b",".join(b"%d" % part for part in about)
    digest = blake2b(text, key=bytes.fromhex(seed), digest_size=8, person=b"returning").digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53  # exactly as fine as a float is
