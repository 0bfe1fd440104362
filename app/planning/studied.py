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
    Studied("photographs", "uniform", 55, (0.6778,)),
    Studied("photographs", "uniform", 112, (0.8192,)),
    Studied("photographs", "uniform", 286, (0.9754,)),
    Studied("photographs", "uniform", 568, (0.9737,)),
    Studied("photographs", "uniform", 1128, (0.9749,)),
    Studied("photographs", "uniform", 2288, (0.9749,)),
    Studied("photographs", "again", 122, (0.8970,)),
    Studied("photographs", "again", 642, (0.9760,)),
    Studied("photographs", "again", 1278, (0.9766,)),
    Studied("photographs", "again", 2579, (0.9749,)),
    Studied("photographs", "others", 128, (0.6533,)),
    Studied("photographs", "others", 689, (0.9760,)),
    Studied("photographs", "others", 1377, (0.9760,)),
    Studied("photographs", "others", 2756, (0.9754,)),
    Studied("photographs", "ordinary", 25, (0.9275,)),
)
