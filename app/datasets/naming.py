"""Names for classes that are mere numbers, as an npz has them that says nothing of names."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.datasets import versions
from app.datasets.errors import BadClassNames, ClassesNotNumbers
from app.datasets.models import Dataset
from app.journal import service as journal
from app.journal.models import Action
from clarinet.files.names import are_numbers, is_printable, sameness, tidy


def has_numbered_classes(dataset: Dataset) -> bool:
    """Whether its classes are called by their numbers, which tell nobody what they are."""
    return are_numbers(dataset.class_names or ())


def name_classes(session: Session, dataset: Dataset, names: Sequence[str], *, by: User) -> None:
    """Give names to the classes of a dataset, in the order of their numbers, in all its versions.

    Nothing else changes: the images keep their classes, and what was scored before stays as it is.

    Raises:
        NotAllowed: `by` is no admin.
        ClassesNotNumbers: they have names.
        BadClassNames: not as many as there are classes, or names that nobody can tell apart.
    """
    accounts.require_admin(by)
    session.refresh(dataset, with_for_update={"key_share": True})  # images may be about to join
    if not has_numbered_classes(dataset):
        raise ClassesNotNumbers(dataset.name)
    own = dataset.class_names or []
    tidied = [tidy(name) for name in names]
    if len(tidied) != len(own):
        raise BadClassNames(
            f"There are {len(own)} classes, {own[0]} to {own[-1]}, and {len(tidied)} names. Give a name for "
            "each, in the order of the numbers."
        )
    for name in tidied:
        if not sameness(name) or not is_printable(name):
            raise BadClassNames(f"Nobody can read the class name {name!r}.")
    if len({sameness(name) for name in tidied}) < len(tidied):
        raise BadClassNames("Two of these names are the same to people; each class needs its own.")
    dataset.class_names = tidied
    for version in versions.versions_of(session, dataset.id):
        if version.class_names is not None:
            version.class_names = tidied[: len(version.class_names)]
    facts = {"dataset": dataset.name, "of": "names of classes", "classes": ", ".join(tidied[:30])}
    journal.write(session, Action.CLASSES_NAMED, by=by, details=facts)
    session.flush()
