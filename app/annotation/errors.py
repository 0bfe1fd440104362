"""What can go wrong while people answer."""

from uuid import UUID

from app.errors import Conflict, NotFound, Unprocessable
from app.languages import gettext as _
from app.languages import translatable

STATES = (
    translatable("draft"),
    translatable("paused"),
    translatable("closed"),
)  # as they stand in the sentence below


class CampaignNotOpen(Conflict):
    """The campaign hands out no questions and takes no undo now, or nothing more can be asked in it."""

    title = translatable("Campaign is not open")

    def __init__(self, *, state: str, asking: bool = False) -> None:
        """`asking`: somebody wanted to ask more, rather than to answer."""
        if asking and state == "draft":
            told = _("This campaign is a draft and asks nothing yet. Open it first.")
        elif asking:
            told = _("This campaign is {state} and asks nothing more.").format(state=_(state))
        else:
            told = _(
                "This campaign is {state}, so there is nothing to answer now. What was taken before counts."
            ).format(state=_(state))
        super().__init__(told, state=state)


class KeyReused(Conflict):
    """One idempotency key came with two different answers."""

    title = "Key used twice"

    def __init__(self, key: UUID) -> None:
        super().__init__(
            f"The key {key} already belongs to a different answer of yours. Nothing of this request was "
            "stored; give each new answer a new key.",
            key=str(key),
        )


class NothingToUndo(Conflict):
    """No answer of this person is recent enough to be undone."""

    title = translatable("Nothing to undo")

    def __init__(self, *, limit: int) -> None:
        super().__init__(
            _("Only your last {limit} answers can be undone, and none of them is left.").format(limit=limit)
        )


class AnswerNotFound(NotFound):
    """It is none of this person's last answers in this campaign."""

    title = translatable("Answer not found")

    def __init__(self, *, limit: int) -> None:
        super().__init__(
            _("Only your last {limit} answers here can be changed, and this is none of them.").format(
                limit=limit
            )
        )


class PersonPaused(Conflict):
    """This person gets no more questions of this campaign for now."""

    title = translatable("You are paused here")

    def __init__(self) -> None:
        super().__init__(
            _(
                "Thank you for your answers. Before you go on in this campaign, somebody who runs it would "
                "like to look at them with you. What was taken so far is kept, and no further answer is "
                "taken; other campaigns are open to you."
            )
        )


class ParticipantNotFound(NotFound):
    """This person has not answered in this campaign."""

    title = "Not a participant"

    def __init__(self) -> None:
        super().__init__("Nobody like that has answered in this campaign.")


class NothingToName(Unprocessable):
    """A class was named where the campaign asks for none, after another answer than no, or a wrong one."""

    title = "Nothing to name"

    def __init__(self) -> None:
        super().__init__(
            "What a picture shows instead is named after a no, in a campaign that asks for it: one of its "
            "classes, not the one asked about, or -1 for none of them."
        )


class NothingKnown(Unprocessable):
    """The dataset came without true classes that the campaign asks about."""

    title = "Nothing is known"

    def __init__(self) -> None:
        super().__init__(
            "The images came without true classes of this campaign. Name known pictures one by one."
        )


class StandsBesideClass(Conflict):
    """A picture is to be asked about that annotators see beside a class, or that has the same bytes."""

    title = "Picture stands beside a class"

    def __init__(self) -> None:
        super().__init__(
            "Annotators see this picture beside its class, or one of the same bytes. Nobody is asked about "
            "it, because the page tells the answer. It can only be left out."
        )


class UnknownPicture(Unprocessable):
    """A picture that the campaign does not ask about, or a class that it does not have."""

    title = "Unknown picture or class"

    def __init__(self) -> None:
        super().__init__("Each known picture must be one of the campaign's, with one of its classes.")
