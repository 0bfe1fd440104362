"""People who are to have accounts."""

from collections.abc import Sequence

from clarinet_client import operations as op
from clarinet_client.groups import Group
from clarinet_client.shapes.people import Invitation, Role


class People(Group):
    """Who may sign in."""

    def invite_several(
        self, addresses: Sequence[str], *, role: Role = "annotator", key: str = ""
    ) -> list[Invitation]:
        """A one-time link for each address, in their order; all of them are made, or none.

        Args:
            addresses: each an address, or a name with an address in angle brackets; at most 200.
            role: that the accounts will have.
            key: the same key twice makes the links once; they are not shown again.

        Raises:
            Refused: some addresses cannot be used; its words name the lines.
            Conflict: the links were made before, under this key or when the first answer was lost.
        """
        body = {"role": role, "addresses": list(addresses)}
        return self._connection.call(op.INVITE_SEVERAL, body=body, key=key)["items"]
