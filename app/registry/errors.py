"""What can go wrong with models."""

from app.errors import Conflict, NotFound


class ModelNotFound(NotFound):
    """No such model."""

    title = "Model not found"

    def __init__(self) -> None:
        super().__init__("There is no such model.")


class ModelWithoutOnnx(NotFound):
    """A model whose ONNX file could not be written."""

    title = "Model without ONNX"

    def __init__(self) -> None:
        super().__init__("This model has no ONNX file; its page says why. Its weights can be downloaded.")


class ModelWithoutPredictions(Conflict):
    """A model that was published before the predictions of its target were kept."""

    title = "Model without predictions"

    def __init__(self) -> None:
        super().__init__(
            "This model was published before Clarinet kept what it takes the target's images for. Repeat its "
            "run, and evaluate the model that it makes."
        )
