"""What can go wrong with predictions."""

from app.errors import Conflict, NotFound, TooMany, Unprocessable
from app.registry.inference.limits import MIB, MOST_BYTES, MOST_PICTURES


class PredictorBusy(TooMany):
    """More pictures wait than may."""

    title = "Predictor busy"

    def __init__(self) -> None:
        super().__init__(
            "As many pictures wait to be predicted as may; none of yours was looked at. Send them again in a "
            "moment.",
            retry_after_s=2,
        )


class NoPicture(Unprocessable):
    """A request for predictions without a picture."""

    title = "No picture"

    def __init__(self) -> None:
        super().__init__(
            f'There is no picture. Send one as the body, or up to {MOST_PICTURES} in fields "pictures" of a '
            "form."
        )


class TooManyPictures(Unprocessable):
    """More pictures than one request may have."""

    title = "Too many pictures"

    def __init__(self) -> None:
        super().__init__(
            f"At most {MOST_PICTURES} pictures and {MOST_BYTES // MIB} MB are predicted at once. Send the "
            "others in another request, or predict a dataset."
        )


class PictureRefused(Unprocessable):
    """The only picture of a request cannot be predicted."""

    title = "Picture refused"


class ModelCannotPredict(Conflict):
    """A model whose ONNX file the server cannot use."""

    title = "Model cannot predict"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"This model cannot predict here: {why}. Its files can be downloaded and used elsewhere."
        )


class PredictionNotFound(NotFound):
    """The model has no such prediction of a dataset."""

    title = "Prediction not found"

    def __init__(self) -> None:
        super().__init__("This model has no such prediction of a dataset.")


class PredictionNotReady(Conflict):
    """The file of a prediction that is not there yet, or never will be."""

    title = "Prediction not ready"

    def __init__(self, state: str) -> None:
        super().__init__(f"There is no file yet: the prediction is {state}. Look at its state and try again.")
