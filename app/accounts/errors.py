"""What can go wrong with accounts."""

from app.errors import Conflict, Forbidden, NotFound, TooMany, Unauthenticated, Unprocessable


class NotSignedIn(Unauthenticated):
    """No session and no token."""

    title = "Not signed in"

    def __init__(self) -> None:
        super().__init__("Sign in, or send a bearer token, to do this.")


class WrongCredentials(Unauthenticated):
    """E-mail and password do not belong together; says no more, so that accounts cannot be listed."""

    title = "Wrong e-mail or password"

    def __init__(self) -> None:
        super().__init__("This e-mail and password do not belong together.")


class NotAllowed(Forbidden):
    """Signed in, but not as somebody who may do this."""

    title = "Not allowed"

    def __init__(self, who: str = "an admin") -> None:
        super().__init__(f"Only {who} can do this.")


class BadCsrfToken(Forbidden):
    """A write came with a session cookie but not from one of our pages."""

    title = "Form expired"

    def __init__(self) -> None:
        super().__init__("This form is out of date. Reload the page and send it again; nothing was changed.")


class InvitationNotFound(NotFound):
    """The link is unknown, used or too old."""

    title = "Invitation not valid"

    def __init__(self) -> None:
        super().__init__("This invitation link was used already or has expired. Ask for a new one.")


class EmailTaken(Conflict):
    """There is an account with this address."""

    title = "E-mail in use"

    def __init__(self, email: str) -> None:
        super().__init__(f"There is already an account for {email}.")


class WeakPassword(Unprocessable):
    """Too short to be safe."""

    title = "Password too short"

    def __init__(self, *, need: int) -> None:
        super().__init__(f"A password needs at least {need} characters.", need=need)


class TokenNotFound(NotFound):
    """No such token of this person."""

    title = "Token not found"

    def __init__(self) -> None:
        super().__init__("There is no such token of yours.")


class UserNotFound(NotFound):
    """No such person."""

    title = "Person not found"

    def __init__(self) -> None:
        super().__init__("There is no such person.")


class TooManySignIns(TooMany):
    """Too many failed sign-ins in a short time."""

    title = "Too many sign-ins"

    def __init__(self, *, wait_s: int) -> None:
        super().__init__(
            f"Too many attempts to sign in. Try again in {wait_s} seconds.", retry_after_s=wait_s
        )
