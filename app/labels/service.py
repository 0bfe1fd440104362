"""What routes, tasks and other features call: derived labels and imports."""

from app.labels.deriving import (
    Derived,
    answered_per_class,
    class_factors,
    derive,
    drawn_per_class,
    labels,
    require_labels,
    weighted,
)
from app.labels.disagreements import disagreements, words_of
from app.labels.importing.accepting import (
    Choices,
    create_import,
    delete_import,
    get_import,
    give_up_imports,
    has_imports,
    imports_of,
    upload_prefix,
    waiting_imports,
)
from app.labels.importing.rows import read_rows
from app.labels.importing.settling import MEND, Settled, settle
from app.labels.importing.statements import not_counting
from app.labels.importing.storing import (
    Before,
    Pictures,
    delete_answers,
    finish_import,
    insert_answers,
    no_picture,
)

__all__ = [
    "MEND",
    "Before",
    "Choices",
    "Derived",
    "Pictures",
    "Settled",
    "answered_per_class",
    "class_factors",
    "create_import",
    "delete_answers",
    "delete_import",
    "derive",
    "disagreements",
    "drawn_per_class",
    "finish_import",
    "get_import",
    "give_up_imports",
    "has_imports",
    "imports_of",
    "insert_answers",
    "labels",
    "no_picture",
    "not_counting",
    "read_rows",
    "require_labels",
    "settle",
    "upload_prefix",
    "waiting_imports",
    "weighted",
    "words_of",
]
