"""What routes, tasks and other features call: derived labels and imports."""

from app.labels.deriving import (
    ExampleLabel,
    answered_per_class,
    class_factors,
    drawn_per_class,
    label_arrays,
    labels,
)
from app.labels.importing.storing import (
    delete_import,
    imports_of,
    prepare_import,
    store_import,
)

__all__ = [
    "ExampleLabel",
    "answered_per_class",
    "class_factors",
    "delete_import",
    "drawn_per_class",
    "imports_of",
    "label_arrays",
    "labels",
    "prepare_import",
    "store_import",
]
