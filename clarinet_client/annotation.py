"""Questions and answers, for programs that answer as people do."""

from collections.abc import Sequence
from uuid import uuid4

from clarinet_client import operations as op
from clarinet_client.groups import Group
from clarinet_client.shapes.annotation import (
    Answer,
    AnswerValue,
    Leases,
    Outcome,
    Question,
    Renewal,
    SimulatedAnnotator,
    UndoneAnswer,
)


def answer_to(question: Question, value: AnswerValue, *, response_ms: int | None = None) -> Answer:
    """An answer with a key of its own: send the same one again, and it counts once."""
    return {
        "question_id": question["id"],
        "value": value,
        "response_ms": response_ms,
        "key": str(uuid4()),
    }


class Annotation(Group):
    """What the token's owner is asked in a campaign, and says."""

    def lease(self, campaign_id: str, *, count: int = 20, one_class: bool = False) -> Leases:
        """Hold up to so many questions, those held already among them; `one_class`: new ones of one class."""
        return self._connection.call(
            op.LEASE, body={"count": count, "one_class": one_class}, campaign_id=campaign_id
        )

    def answer(self, campaign_id: str, answers: Sequence[Answer]) -> list[Outcome]:
        """Send up to 100 answers; what became of each, in the same order."""
        sent = self._connection.call(op.ANSWER, body={"answers": list(answers)}, campaign_id=campaign_id)
        return sent["results"]

    def renew(self, campaign_id: str) -> Renewal:
        """Hold the questions longer."""
        return self._connection.call(op.RENEW, body={}, campaign_id=campaign_id)

    def release(self, campaign_id: str) -> None:
        """Give back the questions that are held, for others."""
        self._connection.call(op.RELEASE, body={}, campaign_id=campaign_id)

    def undo(self, campaign_id: str, *, count: int = 1) -> list[UndoneAnswer]:
        """Take the latest answers back; their questions are held again."""
        return self._connection.call(op.UNDO, body={"count": count}, campaign_id=campaign_id)["undone"]

    def make_simulated(self, name: str) -> SimulatedAnnotator:
        """An account of a program that answers in a person's place, which pages show as such, and a token."""
        return self._connection.call(op.MAKE_SIMULATED, body={"name": name})

    def revoke_token(self, token_id: str) -> None:
        """End a token, such as a simulated annotator's."""
        self._connection.call(op.REVOKE_TOKEN, token_id=token_id)
