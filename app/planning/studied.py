"""What `clarinet bench active` measured of two tasks: docs/results/active.md has the records and says how."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Studied:
    """Accuracies that one way of asking reached, one for each seed."""

    looks: str  # of the task's images
    way: str
    answers: int  # each yes confirmed; of ordinary labels, how many classes were chosen
    accuracies: tuple[float, ...]


STUDIED = (
    Studied("digits", "uniform", 272, (0.9551,)),
    Studied("digits", "uniform", 542, (0.9600,)),
    Studied("digits", "again", 674, (0.9680,)),
    Studied("photographs", "uniform", 57, (0.6778, 0.3695, 0.8665)),
    Studied("photographs", "uniform", 114, (0.8192, 0.7527, 0.9766)),
    Studied("photographs", "uniform", 286, (0.9754, 0.9772, 0.9760)),
    Studied("photographs", "uniform", 569, (0.9737, 0.9760, 0.9743)),
    Studied("photographs", "uniform", 1144, (0.9749, 0.9766, 0.9760)),
    Studied("photographs", "uniform", 2292, (0.9749, 0.9754, 0.9754)),
    Studied("photographs", "again", 118, (0.8970, 0.6222, 0.9677)),
    Studied("photographs", "again", 642, (0.9760, 0.9772, 0.9766)),
    Studied("photographs", "again", 1275, (0.9766, 0.9743, 0.9754)),
    Studied("photographs", "again", 2564, (0.9749, 0.9737, 0.9731)),
    Studied("photographs", "others", 130, (0.6533, 0.5886, 0.9150)),
    Studied("photographs", "others", 696, (0.9760, 0.9778, 0.9766)),
    Studied("photographs", "others", 1384, (0.9760, 0.9754, 0.9737)),
    Studied("photographs", "others", 2787, (0.9754, 0.9749, 0.9754)),
    Studied("photographs", "ordinary", 25, (0.9275, 0.9743, 0.9665)),
    Studied("photographs", "ordinary", 125, (0.9754, 0.9766, 0.9754)),
    Studied("photographs", "ordinary", 250, (0.9766, 0.9772, 0.9749)),
    Studied("photographs", "ordinary", 500, (0.9749, 0.9713, 0.9754)),
)
