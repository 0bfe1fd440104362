"""Pictures of a trial as lists and pages show them: what the model says, the true class, people's answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets.models import Example
from app.evaluations.service import Verdict
from app.mistakes.errors import MapNotKept
from app.mistakes.finding import Seen, get_trial, look, model_of, newest_prediction
from app.mistakes.listing import Listing, Only, Order, Wanted, confusion_of, margins, predicted_counts
from app.registry.kept_pictures import Among
from clarinet.files.names import NO_LABEL

__all__ = [
    "Among",
    "Only",
    "Order",
    "Picture",
    "Seen",
    "Wanted",
    "beside_on_map",
    "confusion_of",
    "get_trial",
    "look",
    "map_page",
    "map_rows",
    "model_of",
    "newest_prediction",
    "page_of",
    "pictures",
    "predicted_counts",
]

AT_ONCE = 500  # pictures whose rows are read together


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture, and what the model says of it; classes are places among the run's.

    Args:
        likeliest: (class, probability) in falling order, the predicted one first.
        rest: probability of all other classes together.
        margin: by how much the predicted class is before the second one.
        verdict: what people say of the prediction; None where nobody was asked.
    """

    example_id: int
    dataset_id: UUID
    among: Among
    position: int
    filename: str | None
    width: int
    height: int
    true_class: int | None
    likeliest: list[tuple[int, float]]
    rest: float
    margin: float
    verdict: Verdict | None

    @property
    def predicted_class(self) -> int:
        """The likeliest."""
        return self.likeliest[0][0]

    @property
    def probability(self) -> float:
        """Of the predicted class."""
        return self.likeliest[0][1]

    @property
    def is_wrong(self) -> bool:
        """By its true class, or by what most people say."""
        if self.true_class is not None:
            return self.true_class != self.predicted_class
        return self.verdict is not None and self.verdict.is_right is False


def page_of(
    session: Session, seen: Seen, listing: Listing, *, after: int | None, limit: int
) -> tuple[list[Picture], int | None]:
    """Pictures of a list behind the example `after`, and the example to give as `after` for the next page.

    Raises:
        PictureNotFound: the model was not asked about `after`.
    """
    rows, last = listing.page(after=None if after is None else seen.row_of(after), limit=limit)
    following = None if last is None else int(seen.kept.example_ids[last])
    return list(pictures(session, seen, rows.tolist())), following


def pictures(session: Session, seen: Seen, rows: Sequence[int]) -> Iterator[Picture]:
    """Some pictures by their rows, in this order."""
    columns = Example.id, Example.position, Example.filename, Example.width, Example.height
    kept, gaps = seen.kept, margins(seen.kept)
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        ids = [int(kept.example_ids[row]) for row in some]
        found = session.execute(select(*columns).where(Example.id.in_(ids)))
        facts = {example.id: example for example in found}
        for row, example_id in zip(some, ids, strict=True):
            shares = kept.probabilities[row].tolist()
            known = int(kept.true_classes[row])
            yield Picture(
                example_id=example_id,
                dataset_id=seen.dataset_of(row),
                among=list(Among)[kept.among[row]],
                position=facts[example_id].position,
                filename=facts[example_id].filename,
                width=facts[example_id].width,
                height=facts[example_id].height,
                true_class=None if known == NO_LABEL else known,
                likeliest=list(zip(kept.classes[row].tolist(), shares, strict=True)),
                rest=max(0.0, 1 - sum(shares)) if len(shares) < len(seen.classes) else 0.0,
                margin=float(gaps[row]),
                verdict=seen.verdicts.get(example_id),
            )


def map_rows(seen: Seen, predicted_class: int | None = None) -> list[int]:
    """Rows of the pictures on the map, or of those of them that are taken for a class.

    Raises:
        MapNotKept: the trial has none.
        ClassNotFound: the run has no such class.
    """
    seen.check_class(predicted_class)
    rows = seen.kept.map_rows
    if not len(rows):
        raise MapNotKept
    if predicted_class is not None:
        rows = rows[seen.kept.classes[rows, 0] == predicted_class]
    found: list[int] = rows.tolist()
    return found


def map_page(
    seen: Seen, predicted_class: int | None, *, after: int | None, limit: int
) -> tuple[list[int], int | None]:
    """Rows on the map behind the example `after`, and the example to give as `after` for the next page.

    Raises:
        MapNotKept: the trial has none.
        PictureNotFound: the model was not asked about `after`.
    """
    rows = map_rows(seen, predicted_class)
    last = -1 if after is None else seen.row_of(after)
    found = [row for row in rows if row > last]
    shown = found[:limit]
    return shown, int(seen.kept.example_ids[shown[-1]]) if len(found) > limit else None


def beside_on_map(seen: Seen, row: int, predicted_class: int | None) -> tuple[int | None, int | None]:
    """The rows before and behind one on the map; None at its ends."""
    rows = map_rows(seen, predicted_class)
    before, behind = [one for one in rows if one < row], [one for one in rows if one > row]
    return (before[-1] if before else None), (behind[0] if behind else None)
