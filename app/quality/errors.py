"""What can go wrong in judging answers."""

from app.errors import Conflict, NotFound


class QuestionNotFound(NotFound):
    """The campaign has no such question."""

    title = "Question not found"

    def __init__(self) -> None:
        super().__init__("There is no such question in this campaign.")


class QuestionStillAsked(Conflict):
    """People are still being asked, so there is nothing to settle yet."""

    title = "Question is still asked"

    def __init__(self) -> None:
        super().__init__("People are still being asked this question. Settle it once they have answered.")


class AlreadyDecided(Conflict):
    """A decision about this question stands."""

    title = "Already settled"

    def __init__(self) -> None:
        super().__init__("This question is settled already. Take that decision back first.")


class DecisionNotFound(NotFound):
    """The campaign has no such decision."""

    title = "Decision not found"

    def __init__(self) -> None:
        super().__init__("There is no such decision in this campaign.")
