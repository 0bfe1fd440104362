"""What can go wrong with labels from elsewhere."""

from app.errors import Conflict, NotFound, Unprocessable


class BadImport(Unprocessable):
    """A file that is no list of labels for this campaign; nothing of it was stored."""

    title = "Labels refused"


class AlreadyImported(Conflict):
    """The same file, to the last byte, was imported into this campaign before."""

    title = "Imported already"

    def __init__(self, filename: str) -> None:
        super().__init__(
            f"This very file was imported before, as {filename!r}. Nothing was stored again. To have it read "
            "otherwise, take that import back first."
        )


class ImportNotFound(NotFound):
    """No such import in this campaign."""

    title = "Import not found"

    def __init__(self) -> None:
        super().__init__("This campaign has no such import.")


class EvaluationGivesNoLabels(Conflict):
    """Answers about a model's predictions judge it; what trains must come from elsewhere."""

    title = "An evaluation gives no labels"

    def __init__(self) -> None:
        super().__init__(
            "This is an evaluation: its answers say how often a model is right, and none of them becomes a "
            "label or trains anything. Use a campaign that collects labels."
        )
