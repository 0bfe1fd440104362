"""What can go wrong when somebody looks at the pictures of a trial."""

from app.errors import Conflict, NotFound


class TrialNotFound(NotFound):
    """No such trial."""

    title = "Trial not found"

    def __init__(self) -> None:
        super().__init__("There is no such trial.")


class PictureNotFound(NotFound):
    """Nothing is kept of this picture for this trial."""

    title = "Picture not found"

    def __init__(self) -> None:
        super().__init__("Nothing is known of this picture: the trial's model was not asked about it.")


class ClassNotFound(NotFound):
    """The run has fewer classes."""

    title = "Class not found"

    def __init__(self, place: int, classes: int) -> None:
        super().__init__(f"There is no class {place}: the run has {classes}, counted from 0.")


class PicturesNotKept(Conflict):
    """A trial of which nothing is known picture by picture."""

    title = "Pictures not kept"

    def __init__(self, detail: str, *, is_older: bool = False) -> None:
        super().__init__(detail)
        self.is_older = is_older  # than the file of pictures, and its model can still say it


class MapNotKept(Conflict):
    """A trial whose pictures are known from a prediction of its target alone."""

    title = "Map not kept"

    def __init__(self) -> None:
        super().__init__(
            "This trial ended before Clarinet kept where a model places pictures, so there is no map of it. "
            "Repeat its run, and the new trials have one."
        )


class UmapNotMade(Conflict):
    """The map by UMAP is computed on request, and is not there."""

    title = "UMAP not made"


class UmapNotInstalled(Conflict):
    """The server lacks the optional package."""

    title = "UMAP not installed"
