"""What can go wrong with campaigns."""

from app.errors import Conflict, NotFound, Unprocessable, Uses
from app.languages import gettext as _
from app.languages import translatable


class CampaignNotFound(NotFound):
    """No such campaign, or none that this person may know of."""

    title = translatable("Campaign not found")

    def __init__(self) -> None:
        super().__init__(_("There is no such campaign, or it is not open to you."))


class CampaignNameTaken(Conflict):
    """Another campaign has this name."""

    title = "Name in use"

    def __init__(self, name: str, used_by: Uses) -> None:
        super().__init__(
            f"There is already a campaign called {name!r}. Choose another name.", used_by=used_by
        )


class SourceNotReady(Conflict):
    """The dataset does not exist, is still being imported, failed, or has nothing to label."""

    title = "Dataset not ready"

    def __init__(self) -> None:
        super().__init__("Choose a dataset whose import has ended well and that has images to label.")


class InvalidClasses(Unprocessable):
    """The list of classes, or the number of questions per image, cannot be asked about."""

    title = "Classes do not work"


class BadPrice(Unprocessable):
    """What was typed is no price."""

    title = "Not a price"


class NotADraft(Conflict):
    """Its questions are drawn, or are being drawn; what they rest on cannot change any more."""

    title = "Campaign has started"

    def __init__(self, name: str, questions: int, used_by: Uses) -> None:
        drawn = f"{questions} questions rest" if questions else "The questions that are being drawn rest"
        super().__init__(f'Only a draft can be changed. {drawn} on what "{name}" says now.', used_by=used_by)


class WrongCampaignState(Conflict):
    """The campaign is in a state that has no such next step."""

    title = "Not possible in this state"

    def __init__(self, *, step: str, state: str, needs: str, used_by: Uses | None = None) -> None:
        super().__init__(
            f"This campaign is {state}. Only {needs} campaign can be {step}.", used_by=used_by, state=state
        )


class CampaignInUse(Conflict):
    """Runs rest on the labels of this campaign."""

    title = "Campaign in use"

    def __init__(self, name: str, used_by: Uses) -> None:
        super().__init__(
            f'"{name}" cannot be deleted. Its answers are needed by {used_by.in_words or "something else"}. '
            "Nothing was changed. Delete these first, or archive the campaign.",
            used_by=used_by,
        )


class EvaluationIsFixed(Conflict):
    """What an evaluation asks follows from the model's predictions and the draw of their images."""

    title = "Fixed by the evaluation"

    def __init__(self) -> None:
        super().__init__(
            "An evaluation asks about a random sample of its model's predictions: its pictures, classes and "
            "number of questions stay as they are, and a yes stands alone; where people name what a picture "
            "shows instead, pictures come one at a time. Make another evaluation instead."
        )


class NothingFurther(Conflict):
    """No image has joined the dataset about which the campaign does not ask yet."""

    title = "No further images"

    def __init__(self) -> None:
        super().__init__(
            "This campaign asks about every training image of its dataset already. Add images to the dataset "
            "first."
        )


class AnotherDrawingWaits(Conflict):
    """Other questions than those were asked for, and are not drawn yet."""

    title = "Other questions are being drawn"

    def __init__(self, waits: str, *, failed: bool) -> None:
        then = "could not be drawn: ask for it once more, and" if failed else "is being drawn:"
        super().__init__(f"A drawing {waits} {then} ask for this one when it is there. Nothing was asked.")


class NotByBelief(Conflict):
    """Classes cannot be drawn by a model's belief here."""

    title = "Not by a model's belief"

    def __init__(self, why: str) -> None:
        super().__init__(f"{why} Nothing was drawn.")
