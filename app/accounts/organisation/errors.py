"""What can go wrong with signing in by an organisation's account. Each says what to do."""

from app.errors import Conflict, Forbidden, NotFound, Unavailable
from app.languages import gettext as _
from app.languages import translatable


class NoOrganisation(NotFound):
    """This installation knows no provider, or the provider cannot do this."""

    title = translatable("Not offered here")

    def __init__(self) -> None:
        super().__init__(_("This installation does not offer that. Sign in with your password."))


class SignInNotBegun(Conflict):
    """The answer of the provider belongs to no sign-in of this browser."""

    title = translatable("Sign-in out of date")

    def __init__(self) -> None:
        super().__init__(
            _("This sign-in was used already, is too old, or was begun in another browser. Begin again.")
        )


class SignInDenied(Forbidden):
    """The provider did not let the person in."""

    title = translatable("Not let in")

    def __init__(self, name: str, code: str) -> None:
        super().__init__(
            _(
                "{name} did not let you in ({code}). Try again, or ask whoever looks after your account "
                "there."
            ).format(name=name, code=code)
        )


class SignInNotTrusted(Forbidden):
    """What the provider, or somebody in its place, sent does not hold."""

    title = translatable("Sign-in not trusted")

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            _(
                "What came back from {name} could not be trusted ({why}). Begin again; if it happens again, "
                "tell whoever runs this installation."
            ).format(name=name, why=why)
        )
        self.why = why


class OrganisationAway(Unavailable):
    """The provider does not answer."""

    title = translatable("Provider away")

    def __init__(self, name: str) -> None:
        super().__init__(_("{name} does not answer at the moment. Try again in a minute.").format(name=name))


class OrganisationSetUpWrong(Unavailable):
    """The provider and this installation do not know each other as they should; `why` is for the operator."""

    title = translatable("Provider not set up")

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            _("Signing in by {name} is not set up right. Tell whoever runs this installation: {why}").format(
                name=name, why=why
            )
        )
        self.why = why


class ClocksDiffer(Unavailable):
    """The provider's clock and ours are too far apart to say what is valid."""

    title = translatable("Clocks differ")

    def __init__(self, name: str, seconds: int) -> None:
        super().__init__(
            _(
                "The clocks of {name} and of this server are {seconds} seconds apart. Tell whoever runs this "
                "installation; then begin again."
            ).format(name=name, seconds=seconds)
        )


class AddressNotVerified(Forbidden):
    """The provider gives no address of which it says that it belongs to the person."""

    title = translatable("Address not verified")

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "{name} does not say that your e-mail address was verified. Have it verified there first."
            ).format(name=name)
        )


class NotOfOrganisation(Forbidden):
    """The provider knows the person, who is not among those that may come."""

    title = translatable("Not among those who may come")

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "Your account at {name} is not among those that may come here. Ask whoever runs this "
                "installation which group or address it takes."
            ).format(name=name)
        )


class TooManyGroups(Forbidden):
    """The provider left the groups out of what it sent, because they are too many."""

    title = translatable("Too many groups")

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "You are in so many groups that {name} does not list them. Whoever looks after it can send "
                "only the groups that this application needs."
            ).format(name=name)
        )


class NoAccountHere(Forbidden):
    """Known to the provider, not to us."""

    title = translatable("No account here")

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "{name} knows you, but you have no account here. Ask whoever runs this installation; if you "
                "have a password here, sign in with it and link the two on your account page."
            ).format(name=name)
        )


class AddressHasAccount(Conflict):
    """There is an account with this address, which is linked to nobody or to somebody else there."""

    title = translatable("Address has an account")

    def __init__(self, email: str) -> None:
        super().__init__(
            _(
                "There is an account for {email} here already. Sign in with its password and link the two on "
                "your account page, or ask an admin."
            ).format(email=email)
        )


class DisabledHere(Forbidden):
    """The account was disabled by an admin, whatever the provider says."""

    title = translatable("Account disabled here")

    def __init__(self) -> None:
        super().__init__(_("Your account here was disabled. Ask an admin of this installation."))


class OtherAccountLinked(Conflict):
    """One account there is one account here, and the other way."""

    title = translatable("Linked already")

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "One of the two accounts is linked already. Choose another account at {name}, or unlink "
                "first."
            ).format(name=name)
        )


class PasswordsOff(Forbidden):
    """People of this installation sign in by the provider alone."""

    title = translatable("No passwords here")

    def __init__(self, name: str) -> None:
        super().__init__(_("Nobody signs in with a password here. Sign in with {name}.").format(name=name))


class NotProvedThere(Forbidden):
    """The provider did not ask the person anew, or does not say so."""

    title = translatable("Not proved there")

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "{name} does not say that it asked you for your password just now. Give your password of "
                "this installation instead; whoever runs it can make you a link to choose one."
            ).format(name=name)
        )


class PasswordFirst(Conflict):
    """Without the link nobody could come in by this account."""

    title = translatable("No other way in")

    def __init__(self) -> None:
        super().__init__(
            _("This is your only way in. Choose a password first, by a link that an admin makes.")
        )


class OnlyWay(Conflict):
    """Nobody signs in with a password here, so that no link may be taken away by whom it lets in."""

    title = translatable("No other way in")

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "{name} is the only way in here. Whoever runs this installation can take a wrong link away."
            ).format(name=name)
        )
