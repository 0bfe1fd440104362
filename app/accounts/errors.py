"""What can go wrong with accounts."""

from collections.abc import Sequence

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


class BadAddresses(Unprocessable):
    """Lines of a list of addresses cannot be invited; no link was made."""

    title = "Addresses refused"

    def __init__(self, wrong: Sequence[str]) -> None:
        super().__init__(f"{'. '.join(wrong)}.")


class EmailTaken(Conflict):
    """There is an account with this address."""

    title = translatable("E-mail in use")

    def __init__(self, email: str) -> None:
        super().__init__(_("There is already an account for {email}.").format(email=email))


class EmailNotMeant(Unprocessable):
    """The link makes an account for one address, and this is another."""

    title = translatable("Link for another address")

    def __init__(self, email: str) -> None:
        super().__init__(
            _("This link is for {email} alone. Use that address, or ask for another link.").format(
                email=email
            )
        )


class WrongCode(Unauthenticated):
    """The second factor's code is wrong, was used already, or came too late."""

    title = translatable("Wrong code")

    def __init__(self) -> None:
        super().__init__(_("This code is wrong or was used already. Wait for the next one and type that."))


class ProofNeeded(Forbidden):
    """What is delicate needs the password again: a browser may have been left open."""

    title = translatable("Password needed")

    def __init__(self) -> None:
        super().__init__(_("Give your password again to do this: your last sign-in is too long ago."))


class InPersonOnly(Forbidden):
    """A token came where none may."""

    title = translatable("Not with a token")

    def __init__(self) -> None:
        super().__init__(_("No token can do this. Sign in on the pages and do it there."))


class TokenTooNarrow(Forbidden):
    """The token may do less than its owner."""

    title = translatable("Token may not do this")

    def __init__(self, scope: str) -> None:
        super().__init__(
            _(
                "The scope of this token, {scope}, does not allow this. Make another on your account page."
            ).format(scope=scope),
            scope=scope,
        )


class SecondFactorNeeded(Forbidden):
    """This installation wants a second factor of its admins."""

    title = "Second factor needed"

    def __init__(self) -> None:
        super().__init__("Admins and reviewers here need a second factor. Set yours up on your account page.")


class WeakPassword(Unprocessable):
    """Too short, or too easy to guess."""

    title = translatable("Password too weak")


class TokenNotFound(NotFound):
    """No such token of this person."""

    title = translatable("Token not found")

    def __init__(self) -> None:
        super().__init__(_("There is no such token of yours."))


class TooManyTokens(Conflict):
    """A person has as many live tokens as anybody needs."""

    title = translatable("Too many tokens")

    def __init__(self, most: int) -> None:
        super().__init__(
            _(
                "You have {most} tokens that work, which is the most. Revoke one that you no longer need."
            ).format(most=most),
            most=most,
        )


class SessionNotFound(NotFound):
    """No such session of this person."""

    title = translatable("Session not found")

    def __init__(self) -> None:
        super().__init__(_("There is no such session of yours. It may have ended by itself."))


class UserNotFound(NotFound):
    """No such person."""

    title = "Person not found"

    def __init__(self) -> None:
        super().__init__("There is no such person.")


class AccountOfProgram(Conflict):
    """A simulated annotator has no password and stays an annotator."""

    title = "Account of a program"

    def __init__(self) -> None:
        super().__init__(
            "This account belongs to a program: it has no password and can only answer questions."
        )


class AccountOfWorker(Conflict):
    """An outside worker has no address, and answers in one campaign alone."""

    title = "Account of an outside worker"

    def __init__(self) -> None:
        super().__init__(
            "This account belongs to an outside worker, who comes by a campaign's link: it has no address "
            "and no password, and can only answer that campaign's questions."
        )


class AccountErased(Conflict):
    """Nobody is behind the account any more."""

    title = "Account erased"

    def __init__(self) -> None:
        super().__init__("This person was erased; only their answers are kept, under a pseudonym.")


class NameDiffers(Unprocessable):
    """What was typed is not the name of the person to erase."""

    title = "Not the name"

    def __init__(self) -> None:
        super().__init__("This is not the name of this person. Nothing was erased; type it as it stands.")


class LastAdmin(Conflict):
    """Without this admin nobody could administer the installation."""

    title = "Last admin"

    def __init__(self) -> None:
        super().__init__("Nobody else can administer this installation. Make another admin first.")


class AccountDisabled(Conflict):
    """A disabled account gets no link."""

    title = "Account disabled"

    def __init__(self) -> None:
        super().__init__("This account is disabled. Enable it first; then make a link.")


class TooManySignIns(TooMany):
    """Too many failed sign-ins in a short time."""

    title = translatable("Too many sign-ins")

    def __init__(self, *, wait_s: int) -> None:
        super().__init__(
            _("Too many attempts to sign in. Try again in {wait_s} seconds.").format(wait_s=wait_s),
            retry_after_s=wait_s,
        )


class TooManyJoins(TooMany):
    """Too many came by links for outside workers from one place."""

    title = translatable("Too many arrivals")

    def __init__(self, *, wait_s: int) -> None:
        super().__init__(
            _("Too many people begin from here. Try again in {wait_s} seconds.").format(wait_s=wait_s),
            retry_after_s=wait_s,
        )


class TooManyMails(TooMany):
    """Too many links to another password were asked for."""

    title = translatable("Too many mails")

    def __init__(self, *, wait_s: int) -> None:
        super().__init__(
            _("Too many links were asked for. Look into your mail, or try again in {wait_s} seconds.").format(
                wait_s=wait_s
            ),
            retry_after_s=wait_s,
        )
