"""What can go wrong with accounts."""

from app.errors import Conflict, Forbidden, NotFound, TooMany, Unauthenticated, Unprocessable
from app.languages import gettext as _
from app.languages import translatable


class NotSignedIn(Unauthenticated):
    """No session and no token."""

    title = translatable("Not signed in")

    def __init__(self) -> None:
        super().__init__(_("Sign in, or send a bearer token, to do this."))


class WrongCredentials(Unauthenticated):
    """E-mail and password do not belong together; says no more, so that accounts cannot be listed."""

    title = translatable("Wrong e-mail or password")

    def __init__(self) -> None:
        super().__init__(_("This e-mail and password do not belong together."))


class NotAllowed(Forbidden):
    """Signed in, but not as somebody who may do this."""

    title = translatable("Not allowed")

    def __init__(self, who: str = translatable("an admin")) -> None:
        super().__init__(_("Only {who} can do this.").format(who=_(who)))


class BadCsrfToken(Forbidden):
    """A write came with a session cookie but not from one of our pages."""

    title = translatable("Form expired")

    def __init__(self) -> None:
        super().__init__(
            _("This form is out of date. Reload the page and send it again; nothing was changed.")
        )


class InvitationNotFound(NotFound):
    """The link is unknown, used or too old."""

    title = translatable("Invitation not valid")

    def __init__(self) -> None:
        super().__init__(_("This invitation link was used already or has expired. Ask for a new one."))


class EmailTaken(Conflict):
    """There is an account with this address."""

    title = translatable("E-mail in use")

    def __init__(self, email: str) -> None:
        super().__init__(_("There is already an account for {email}.").format(email=email))


class WeakPassword(Unprocessable):
    """Too short to be safe."""

    title = translatable("Password too short")

    def __init__(self, *, need: int) -> None:
        super().__init__(_("A password needs at least {need} characters.").format(need=need), need=need)


class TokenNotFound(NotFound):
    """No such token of this person."""

    title = translatable("Token not found")

    def __init__(self) -> None:
        super().__init__(_("There is no such token of yours."))


class UserNotFound(NotFound):
    """No such person."""

    title = "Person not found"

    def __init__(self) -> None:
        super().__init__("There is no such person.")


class TooManySignIns(TooMany):
    """Too many failed sign-ins in a short time."""

    title = translatable("Too many sign-ins")

    def __init__(self, *, wait_s: int) -> None:
        super().__init__(
            _("Too many attempts to sign in. Try again in {wait_s} seconds.").format(wait_s=wait_s),
            retry_after_s=wait_s,
        )
