"""`python -m app.labels.importing`: read one file of labels in a process of its own, with bounds.

It is asked {"root": storage folder, "data": the file's key, "name": what it was called, "class_names": those
of the campaign, "rows": where to put what it says}.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app import apart
from app.labels.errors import BadImport
from app.labels.importing.reading import MAX_BYTES, FileOfLabels, Reading, read_answers
from app.labels.importing.rows import Row, write_rows
from app.storage import Storage
from clarinet.files.names import NO_LABEL, class_numbers
from clarinet.files.refusal import MOST_NAMED, shown
from clarinet.recipes.errors import DataError

# The interpreter and its libraries take about 200 MB of it, and 200,000 answers of a file of 16 MB 150 MB.
MAX_ADDRESS_SPACE = 512 * 1024**2
MAX_CPU_S = 120


def main() -> None:
    """Do what standard input asks for."""
    request = apart.asked()
    apart.bound(address_space=MAX_ADDRESS_SPACE, cpu_s=MAX_CPU_S)
    storage = Storage(Path(request["root"]))
    try:
        apart.tell(result=take_in(storage, request))
    except BadImport as refusal:
        apart.tell(refused=refusal.detail)
    except MemoryError:
        apart.tell(refused=f'"{shown(request["name"])}" needs more memory than an import may use.')


def take_in(storage: Storage, request: Mapping[str, Any]) -> dict[str, Any]:
    """Write what a file says as rows; gives what it consists of, and its bad lines as (number, why).

    Raises:
        BadImport: nothing of it can be understood.
    """
    file = read_answers(storage.read(request["data"], length=MAX_BYTES + 1))
    numbers = _class_numbers(file, request["class_names"])
    faults = [(bad.number, bad.why) for bad in file.bad]
    rows = []
    for item in file.answers:
        number = numbers[item.class_name]
        if number == NO_LABEL:
            why = f"is about the class {item.class_name[:80]!r}, which this campaign does not have"
            faults.append((item.number, why))
            continue
        rows.append(
            Row(
                item.number,
                item.filename,
                item.position,
                item.example_id,
                number,
                item.value,
                item.annotator,
                item.answered_at,
            )
        )
    write_rows(storage, request["rows"], rows)
    return {"noun": file.noun, "faults": sorted(faults)[: MOST_NAMED + 1]}


def _class_numbers(file: FileOfLabels, class_names: list[str]) -> dict[str, int]:
    """The number of each class as the file writes it; raises BadImport where that can be read in two ways."""
    given = list(dict.fromkeys(item.class_name for item in file.answers))
    try:
        numbers = class_numbers(
            given,
            class_names,
            are_names=file.reading is Reading.NAMES,
            are_places=file.reading is Reading.PLACES,
        )
    except DataError as error:
        raise BadImport(f"{error}. Nothing was stored.") from error
    return dict(zip(given, numbers, strict=True))


if __name__ == "__main__":
    main()
