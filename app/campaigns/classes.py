"""The classes that a campaign asks about: what can be given, and what can be asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.errors import InvalidClasses, SourceNotReady
from app.campaigns.models import CampaignClass
from app.datasets.models import Dataset, DatasetState, Example
from clarinet.files.names import is_printable, sameness, tidy

MIN_CLASSES = 2
MAX_CLASSES = 1000
MAX_CLASS_EXAMPLES = 4  # pictures beside a class's description


@dataclass(frozen=True, slots=True)
class ClassDetails:
    """A class people are asked about."""

    name: str
    description: str = ""
    example_ids: tuple[int, ...] = ()


def checked_classes(
    session: Session, dataset_id: UUID, given: Sequence[ClassDetails], *, rounds: int
) -> list[CampaignClass]:
    """Rows for the classes of a campaign over a dataset; without any given, the dataset's own.

    Raises:
        SourceNotReady, InvalidClasses: they cannot be asked about.
    """
    dataset = session.get(Dataset, dataset_id)
    if dataset is None or dataset.state is not DatasetState.READY or dataset.train_count == 0:
        raise SourceNotReady
    chosen = given or tuple(ClassDetails(name) for name in dataset.class_names or ())
    names = [tidy(item.name) for item in chosen]
    if not MIN_CLASSES <= len(names) <= MAX_CLASSES:
        raise InvalidClasses(
            f"A campaign needs {MIN_CLASSES} to {MAX_CLASSES} classes; this one has {len(names)}."
        )
    seen: dict[str, str] = {}
    for name in names:
        if not sameness(name) or not is_printable(name):
            raise InvalidClasses(f"Nobody can read the class name {name!r}; give the classes yourself.")
        if sameness(name) in seen:
            other = seen[sameness(name)]
            told = "is there twice" if name == other else f"is the same as {other!r} to people"
            raise InvalidClasses(f"Each class needs its own name; {name!r} {told}.")
        seen[sameness(name)] = name
    if not 1 <= rounds <= len(names):
        raise InvalidClasses(
            f"Each picture can be asked about each class once, so 1 to {len(names)} questions per picture "
            f"are possible, not {rounds}."
        )
    _check_examples(session, dataset, chosen)
    return [
        CampaignClass(
            position=position,
            name=name,
            description=item.description,
            example_ids=list(item.example_ids),
        )
        for position, (name, item) in enumerate(zip(names, chosen, strict=True))
    ]


def _check_examples(session: Session, dataset: Dataset, chosen: Sequence[ClassDetails]) -> None:
    for item in chosen:
        if len(item.example_ids) > MAX_CLASS_EXAMPLES:
            raise InvalidClasses(
                f"At most {MAX_CLASS_EXAMPLES} pictures can show a class; {item.name!r} has "
                f"{len(item.example_ids)}."
            )
    wanted = {example_id for item in chosen for example_id in item.example_ids}
    known = session.scalars(
        select(Example.id).where(Example.dataset_id == dataset.id, Example.id.in_(wanted))
    )
    unknown = wanted - set(known)
    if unknown:
        raise InvalidClasses(f"Picture {min(unknown)} is not in the campaign's dataset.")
