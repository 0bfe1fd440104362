"""What can go wrong with models."""

from app.errors import NotFound


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
