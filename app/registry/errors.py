"""What can go wrong with models."""

from collections.abc import Sequence

from app.errors import Conflict, NotFound, Uses


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


class ModelFileMissing(NotFound):
    """A model that is older than one of the files that models have."""

    title = "Model without this file"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"This model has no {name}: it is older than that file. Its weights can be downloaded."
        )


class AliasNotFound(NotFound):
    """The alias stands for no such model."""

    title = "No such alias"

    def __init__(self, title: str, alias: str) -> None:
        super().__init__(f"{alias!r} does not stand for {title}.")


class ModelHasAliases(Conflict):
    """An alias stands for this model, and would be left without one."""

    title = "Model has aliases"

    def __init__(self, title: str, aliases: Sequence[str], step: str) -> None:
        super().__init__(
            f"{title} cannot be {step} while it is {' and '.join(map(repr, aliases))}. Nothing was changed; "
            "move the alias to another version, or remove it, first."
        )


class ModelInUse(Conflict):
    """Something else needs this model."""

    title = "Model in use"

    def __init__(self, title: str, used_by: Uses) -> None:
        super().__init__(
            f"{title} cannot be deleted. It is needed by {used_by.in_words or 'something else'}. Nothing was "
            "changed; it can be archived.",
            used_by=used_by,
        )


class ModelWithoutPredictions(Conflict):
    """A model that was published before the predictions of its target were kept."""

    title = "Model without predictions"

    def __init__(self) -> None:
        super().__init__(
            "This model was published before Clarinet kept what it takes the target's images for. Repeat its "
            "run, and evaluate the model that it makes."
        )
