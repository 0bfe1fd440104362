"""What can go wrong with members, groups and outside workers."""

from app.errors import Conflict, Forbidden, NotFound, Unprocessable
from app.languages import gettext as _
from app.languages import translatable


def how_to_return() -> str:
    """What those do whom a crowd-working platform sent in vain: they must be able to end there, too."""
    return _(
        "If a platform sent you, return your submission there (on Prolific “Stop without completing”, on "
        "Mechanical Turk “Return”): then it is not rejected."
    )


class GroupNotFound(NotFound):
    """No such group of people."""

    title = "Group not found"

    def __init__(self) -> None:
        super().__init__("There is no such group of people.")


class GroupNameTaken(Conflict):
    """Another group has this name."""

    title = "Group name in use"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is already a group called {name!r}. Choose another name.")


class NoMember(Conflict):
    """Somebody who cannot become a member."""

    title = "Cannot be a member"

    def __init__(self) -> None:
        super().__init__(
            "An outside worker is a member of the one campaign by whose link they came, and an erased or "
            "disabled account of none."
        )


class WorkerLinkNotFound(NotFound):
    """The link for outside workers is unknown or was ended, or its campaign takes no answers."""

    title = translatable("Link not valid")

    def __init__(self) -> None:
        said = _("This link is not valid any more. Go back to where you found it.")
        super().__init__(f"{said} {how_to_return()}")


class WorkerIdNeeded(Unprocessable):
    """The link was opened without a worker's id, or with something that is none."""

    title = translatable("Worker id needed")

    def __init__(self) -> None:
        super().__init__(
            _("A worker's id has at most 100 letters, digits, dots, dashes and underscores. Check yours.")
        )


class NoPlaceLeft(Conflict):
    """As many outside workers came as the link admits."""

    title = translatable("No place is left")

    def __init__(self) -> None:
        said = _("As many people take part as were asked for. Thank you for coming.")
        super().__init__(f"{said} {how_to_return()}")


class NotWelcome(Forbidden):
    """An admin has disabled this worker's account, or taken it out of the campaign."""

    title = translatable("Not a member any more")

    def __init__(self) -> None:
        said = _("You are not a member of this campaign any more.")
        super().__init__(f"{said} {how_to_return()}")


class NothingLeft(Conflict):
    """Who came by a link could be asked nothing."""

    title = translatable("Nothing is left to ask")

    def __init__(self) -> None:
        said = _("Nothing is left to ask here now, so nothing was begun.")
        super().__init__(f"{said} {how_to_return()}")
