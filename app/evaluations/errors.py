"""What can go wrong with evaluations."""

from app.errors import NotFound, Unprocessable


class EvaluationNotFound(NotFound):
    """No such evaluation."""

    title = "Evaluation not found"

    def __init__(self) -> None:
        super().__init__("There is no such evaluation.")


class PredictionsDoNotFit(Unprocessable):
    """The file of predictions names other images than the version of the target that its run used."""

    title = "Predictions of other images"

    def __init__(self) -> None:
        super().__init__(
            "The model's file of predictions does not fit the images of its target. Repeat the run, and "
            "evaluate the model that it makes."
        )
