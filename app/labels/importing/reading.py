"""Files of labels from elsewhere, a table or Label Studio JSON, as what they say. Pure.

All that is hostile stops here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.labels.errors import BadImport
from app.labels.importing.said import AnswerInFile, BadLine, Reading
from app.labels.importing.tables import Lines
from app.labels.importing.tasks import Tasks
from clarinet.files.refusal import MOST_NAMED
from clarinet.files.tables import BadTable, text_of

MAX_BYTES = 16 * 1024 * 1024
MAX_ROWS = 200_000
ZIP_MAGIC = b"PK"  # of an npz, a Parquet's is PAR1, and of a spreadsheet
PACKED = (ZIP_MAGIC, b"PAR1", b"\xd0\xcf\x11\xe0", b"\x1f\x8b")


@dataclass(frozen=True, slots=True)
class FileOfLabels:
    """What a file says, in its order, and how it calls classes."""

    noun: str  # what it consists of: "line" or "task"
    answers: list[AnswerInFile]
    bad: list[BadLine]  # of many the first MOST_NAMED and one
    reading: Reading
    remarks: list[str] = field(default_factory=list)  # what the admin should know, in sentences
    has_ids: bool = False  # it names pictures by their files' names without the ending


def read_answers(data: bytes, *, dataset: str = "", ignored: Sequence[str] = ()) -> FileOfLabels:
    """What a file says, in its order, and every line of it that is not understood.

    Args:
        data: the file.
        dataset: id of the campaign's; addresses of pictures in Label Studio's JSON must be of it.
        ignored: columns that are left out, or controls of Label Studio.

    Raises:
        BadImport: too large, neither a table nor Label Studio's JSON, or nothing is in it; or what is to be
            left out is not there.
    """
    if len(data) > MAX_BYTES:
        raise too_large()
    if data.startswith(PACKED):
        raise BadImport(
            "The file is no text, but an npz, a spreadsheet, a Parquet or something packed. Save it as CSV; "
            "nothing was stored."
        )
    try:
        text = text_of(data)
    except BadTable as bad:
        raise BadImport(f"The file {bad.why}. Nothing was stored.") from bad
    is_json = text.lstrip()[:1] in {"[", "{"}
    source: Tasks | Lines = Tasks(text, dataset, ignored) if is_json else Lines.of(text, ignored)
    said, bad_ones = _all(source)
    if isinstance(source, Tasks):
        said = list(map(source.named, said))
    if not said and not bad_ones:
        left = "".join(f" {sentence}" for sentence in source.remarks)
        raise BadImport(f"The file has no labels.{left} Nothing was stored.")
    noun = "task" if is_json else "line"
    has_ids = isinstance(source, Lines) and source.has_ids
    return FileOfLabels(noun, said, bad_ones, source.reading, list(source.remarks), has_ids)


def _all(source: Iterable[AnswerInFile | BadLine]) -> tuple[list[AnswerInFile], list[BadLine]]:
    said: list[AnswerInFile] = []
    bad: list[BadLine] = []
    for item in source:
        if isinstance(item, BadLine):
            bad.append(item)
        else:
            said.append(item)
        if len(bad) > MOST_NAMED:
            break
        if len(said) > MAX_ROWS:
            raise BadImport(
                f"The file says more than {MAX_ROWS} things. Cut it in parts; nothing was stored."
            )
    return said, bad


def too_large() -> BadImport:
    """Why a file is not even looked into."""
    return BadImport(
        f"The file has more than {MAX_BYTES // 1024**2} MB. Cut it in parts; nothing was stored."
    )
