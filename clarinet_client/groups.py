"""What the kinds of things share."""

from clarinet_client.connection import Connection


class Group:
    """The calls about one kind of thing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
