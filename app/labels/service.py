"""What routes, tasks and other features call: derived labels and imports."""

from app.labels.deriving import (
    Derived,
    answered_per_class,
    class_factors,
    derive,
    drawn_per_class,
    labels,
    weighted,
)
from app.labels.importing.storing import (
    delete_import,
    get_import,
    imports_of,
    prepare_import,
    store_import,
)

__all__ = [
    "Derived",
    "answered_per_class",
    "class_factors",
    "delete_import",
    "derive",
    "drawn_per_class",
    "get_import",
    "imports_of",
    "labels",
    "prepare_import",
    "store_import",
    "weighted",
]
