"""What annotators see in place of the numbers of questions and of pictures.

Numbers tell. Known pictures become questions after the others, so their ids are larger than all others'.
Pictures are numbered as they were imported, so where they came in class folders a number tells the class.
A public id and a picture's name tell nothing. They are the number under a permutation of the numbers below
2**52, which JavaScript keeps exactly. The key is a secret of the campaign that closing does not reveal.

Source: Luby and Rackoff 1988, "How to construct pseudorandom permutations from pseudorandom functions": four
rounds of a Feistel network, here with keyed BLAKE2b.
"""

from hashlib import blake2b
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign

HALF_BITS = 26
HALF = (1 << HALF_BITS) - 1
END = 1 << 2 * HALF_BITS
ROUNDS = 4


class PublicIds:
    """The public ids of one campaign's questions, and the names of its pictures."""

    def __init__(self, secret: str) -> None:
        self._questions = _keys(secret, b"handles")
        self._pictures = _keys(secret, b"picture")

    def of(self, question_id: int) -> int:
        """The public id of a question."""
        return _permuted(self._questions, question_id)

    def question_id(self, public_id: int) -> int:
        """The question with this public id; 0, which no question has, for what is none."""
        return _restored(self._questions, public_id)

    def picture(self, example_id: int) -> str:
        """The name of an example's picture: 13 hexadecimal digits."""
        return f"{_permuted(self._pictures, example_id):013x}"

    def example_id(self, picture: str) -> int:
        """The example whose picture has this name, as `picture` writes it."""
        return _restored(self._pictures, int(picture, 16))


_known: dict[UUID, PublicIds] = {}  # a campaign keeps its secret, so it is read once in a process


def public_ids_of(session: Session, campaign_id: UUID) -> PublicIds:
    """Those of a campaign, before anything else of it needs to be known.

    Raises:
        CampaignNotFound: there is none.
    """
    if campaign_id not in _known:
        secret = session.scalar(
            select(func.coalesce(Campaign.names_secret, Campaign.seed)).where(Campaign.id == campaign_id)
        )
        if secret is None:
            raise CampaignNotFound
        _known[campaign_id] = PublicIds(secret)
    return _known[campaign_id]


def _keys(secret: str, purpose: bytes) -> list[bytes]:
    return [
        blake2b(secret.encode(), digest_size=32, person=purpose + b"%d" % number).digest()
        for number in range(ROUNDS)
    ]


def _permuted(keys: list[bytes], number: int) -> int:
    left, right = number >> HALF_BITS, number & HALF
    for key in keys:
        left, right = right, left ^ _mixed(key, right)
    return left << HALF_BITS | right


def _restored(keys: list[bytes], number: int) -> int:
    """0 for what `_permuted` never gives."""
    if not 0 <= number < END:
        return 0
    left, right = number >> HALF_BITS, number & HALF
    for key in reversed(keys):
        left, right = right ^ _mixed(key, left), left
    return left << HALF_BITS | right


def _mixed(key: bytes, half: int) -> int:
    digest = blake2b(half.to_bytes(4, "big"), key=key, digest_size=4).digest()
    return int.from_bytes(digest, "big") & HALF
