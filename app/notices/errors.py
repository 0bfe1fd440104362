"""What can go wrong with subscriptions."""

from app.errors import Conflict, NotFound, Unprocessable


class SubscriptionNotFound(NotFound):
    """No such subscription."""

    title = "Subscription not found"

    def __init__(self) -> None:
        super().__init__("There is no such subscription.")


class SubscriptionEnded(Conflict):
    """Whoever made it may not be told any more."""

    title = "Subscription ended"

    def __init__(self, why: str) -> None:
        super().__init__(f"This subscription has ended: {why}. Make another one.")


class AddressNotAllowed(Unprocessable):
    """An address to which this installation sends nothing."""

    title = "Address not allowed"


class NoMailServer(Conflict):
    """This installation sends no mail."""

    title = "No mail server"

    def __init__(self) -> None:
        super().__init__("This installation sends no mail: its operator has not set CLARINET_SMTP_URL.")
