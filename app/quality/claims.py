"""What the model that weighs labels says of a campaign's labels as a whole. Pure."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.annotation.consensus import verdict
from app.quality.dawid_skene import Estimate
from clarinet.files.label_table import LabelKind

# Questions that several answered, before they and not what is usual tell how far people err together: see
# `dependence`. Of fewer a page shows no figure.
TELLING = 1_000


class Claims(NamedTuple):
    """What the model that weighs labels says of a campaign: pages, plans and labels tell the same."""

    error: float  # share of images that somebody sees wrongly
    match: float  # how far people err together where yes is right, and where no is
    other: float
    several: int  # questions that more than one person answered
    true: int  # labels, and the share of them that is wrong
    wrong_true: float
    complementary: int
    wrong_complementary: float

    @property
    def missing(self) -> int:
        """Questions that several people have yet to answer until `match` and `other` are their own."""
        return max(0, TELLING - self.several)


def claims_of(
    found: Estimate,
    answered: NDArray[np.int64],
    *,
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    probability: NDArray[np.float64],
    times: NDArray[np.float64],
    confirm_yes: bool,
) -> Claims | None:
    """Of questions with so many yes and no, each `times` times; None without any."""
    if not len(yes):
        return None
    kinds = {
        pair: verdict(*pair, confirm_yes=confirm_yes).kind
        for pair in set(zip(yes.tolist(), no.tolist(), strict=True))
    }
    kind = [kinds[pair] for pair in zip(yes.tolist(), no.tolist(), strict=True)]
    labels: list[float] = []
    for wanted, wrong in ((LabelKind.TRUE, 1 - probability), (LabelKind.COMPLEMENTARY, probability)):
        weights = times * np.array([one is wanted for one in kind], dtype=np.float64)
        count = float(weights.sum())
        labels += [count, float(weights @ wrong) / count if count else 0.0]
    return Claims(
        1 - float(found.sensitivity @ answered / answered.sum()),
        *found.dependence,
        int(times[yes + no > 1].sum()),
        int(labels[0]),
        labels[1],
        int(labels[2]),
        labels[3],
    )
