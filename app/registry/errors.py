"""What can go wrong with models."""

from app.errors import NotFound


class ModelNotFound(NotFound):
    """No such model."""

    title = "Model not found"

    def __init__(self) -> None:
        super().__init__("There is no such model.")
