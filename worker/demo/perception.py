"""What a simulated annotator sees in an image.

One class per image: the true one or, with the error rate, another. The answer is yes when it is the class
asked about. So a wrong yes is much commoner among the yes answers than a wrong no among the no answers, as
with people.
"""

import csv
import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from app.errors import AppError
from clarinet.files.names import NO_LABEL, numbers_among
from clarinet_client import Client
from clarinet_client.shapes.campaigns import Campaign


class Unanswerable(AppError):
    """The simulation cannot know what to answer."""


def read_confusion(path: Path, class_names: Sequence[str]) -> list[list[float]]:
    """Cumulative rows of a K x K matrix from CSV: a header of seen classes, rows named by the true class.

    Raises:
        Unanswerable: a class is missing, or a number is none or negative.
    """
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = list(csv.reader(file)) or [[]]
    rows = {line[0]: line for line in lines if line}
    missing = [name for name in class_names if name not in rows or name not in header]
    if missing:
        raise Unanswerable(f"{path.name} has no row and column for the class {missing[0]!r}.")
    matrix = []
    for truth in class_names:
        try:
            weights = [float(rows[truth][header.index(name)]) for name in class_names]
        except (ValueError, IndexError) as error:
            raise Unanswerable(f"{path.name}, row {truth!r}: a number is missing.") from error
        if min(weights) < 0 or not 0 < sum(weights) < float("inf"):
            raise Unanswerable(f"{path.name}, row {truth!r}: weights must be positive numbers.")
        matrix.append(list(accumulate(weights)))
    return matrix


def perceived(
    truth: int,
    num_classes: int,
    *,
    error: float,
    confusion: Sequence[Sequence[float]] | None = None,
    chance_of: str,
) -> int:
    """The class that somebody sees in an image of class `truth`.

    Args:
        truth: position of the true class.
        num_classes: K, at least 2.
        error: share of images that are seen as another class, which is uniform over the K - 1 others.
        confusion: instead of it, row k holds the cumulative weights with which class k is seen as each class.
        chance_of: names annotator and image; the same name always sees the same class, whatever is asked.
    """
    digest = hashlib.blake2b(chance_of.encode(), digest_size=8).digest()
    chance = (int.from_bytes(digest, "big") >> 11) * 2.0**-53  # in [0, 1), exactly as fine as a float is
    if confusion is not None:
        row = confusion[truth]
        return bisect_right(row, chance * row[-1])
    if chance >= error:
        return truth
    other = int(chance / error * (num_classes - 1))
    return other + (other >= truth)


def read_truth(client: Client, campaign: Campaign) -> dict[int, int | None]:
    """True class of every example as a position among the campaign's classes; None: it is none of them.

    Raises:
        Unanswerable: the dataset came without true classes.
    """
    dataset = client.datasets.get(campaign["dataset_id"])
    if dataset["class_names"] is None:
        raise Unanswerable("The images came without true classes, so a simulation cannot answer about them.")
    names = [one["name"] for one in campaign["classes"]]
    numbers = numbers_among(names, dataset["class_names"])
    position = [None if number == NO_LABEL else number for number in numbers]
    examples = client.datasets.examples(campaign["dataset_id"], split="train")
    return {
        example["id"]: None if example["true_class"] is None else position[example["true_class"]]
        for example in examples
    }
