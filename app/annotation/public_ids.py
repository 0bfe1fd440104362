"""What annotators see in place of a question's own number.

Known pictures become questions after the others, so their ids are larger than all others', and who sees ids
could take care with these alone. A public id tells nothing. It is the id under a permutation of the numbers
below 2**52, which JavaScript keeps exactly. The key is the campaign's seed, secret while people answer.

Source: Luby and Rackoff 1988, "How to construct pseudorandom permutations from pseudorandom functions": four
rounds of a Feistel network, here with keyed BLAKE2b.
"""

from hashlib import blake2b
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign

HALF_BITS = 26
HALF = (1 << HALF_BITS) - 1
END = 1 << 2 * HALF_BITS
ROUNDS = 4


class PublicIds:
    """The public ids of one campaign's questions."""

    def __init__(self, seed: str) -> None:
        self._keys = [
            blake2b(seed.encode(), digest_size=32, person=b"handles%d" % number).digest()
            for number in range(ROUNDS)
        ]

    def of(self, question_id: int) -> int:
        """The public id of a question."""
        left, right = question_id >> HALF_BITS, question_id & HALF
        for key in self._keys:
            left, right = right, left ^ _mixed(key, right)
        return left << HALF_BITS | right

    def question_id(self, public_id: int) -> int:
        """The question with this public id; 0, which no question has, for what is none."""
        if not 0 <= public_id < END:
            return 0
        left, right = public_id >> HALF_BITS, public_id & HALF
        for key in reversed(self._keys):
            left, right = right ^ _mixed(key, left), left
        return left << HALF_BITS | right


_known: dict[UUID, PublicIds] = {}  # a campaign keeps its seed, so it is read once in a process


def public_ids_of(session: Session, campaign_id: UUID) -> PublicIds:
    """Those of a campaign, before anything else of it needs to be known.

    Raises:
        CampaignNotFound: there is none.
    """
    if campaign_id not in _known:
        seed = session.scalar(select(Campaign.seed).where(Campaign.id == campaign_id))
        if seed is None:
            raise CampaignNotFound
        _known[campaign_id] = PublicIds(seed)
    return _known[campaign_id]


def _mixed(key: bytes, half: int) -> int:
    digest = blake2b(half.to_bytes(4, "big"), key=key, digest_size=4).digest()
    return int.from_bytes(digest, "big") & HALF
