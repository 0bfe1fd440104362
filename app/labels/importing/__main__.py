"""`python -m app.labels.importing`: read one file of labels in a process of its own, with bounds.

It is asked {"root": storage folder, "data": the file's key, "name": what it was called, "dataset": id of the
campaign's, "class_names": those of the campaign, "first_class": from which number it counts them,
"first_position": the same of positions, "ignored": columns to leave out, "no_label": what stands for no
class, "rows": where to put what it says}.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app import apart
from app.labels.errors import BadImport
from app.labels.importing.reading import MAX_BYTES, read_answers
from app.labels.importing.rows import Row, write_rows
from app.labels.importing.said import Also, AnswerInFile, Reading
from app.labels.importing.tables import ONE_OUT
from app.stores.folder import FolderStorage
from clarinet.files.names import (
    NO_LABEL,
    class_numbers,
    named_by_numbers_told,
    numbers_by_name,
    plain_number,
    require_count_said,
)
from clarinet.files.no_class import VOID, is_called, means_missing
from clarinet.files.refusal import MOST_NAMED, shown
from clarinet.recipes.counting import many
from clarinet.recipes.errors import DataError

# The interpreter and its libraries take about 200 MB of it, and 200,000 answers of a file of 16 MB 150 MB.
MAX_ADDRESS_SPACE = 512 * 1024**2
MAX_CPU_S = 120


def main() -> None:
    """Do what standard input asks for."""
    request = apart.asked()
    apart.bound(address_space=MAX_ADDRESS_SPACE, cpu_s=MAX_CPU_S)
    storage = FolderStorage(Path(request["root"]))
    try:
        apart.tell(result=take_in(storage, request))
    except BadImport as refusal:
        apart.tell(refused=refusal.detail)
    except MemoryError:
        apart.tell(refused=f'"{shown(request["name"])}" needs more memory than an import may use.')


def take_in(storage: FolderStorage, request: Mapping[str, Any]) -> dict[str, Any]:
    """Write what a file says as rows; gives what it consists of, and its bad lines as (number, why).

    Raises:
        BadImport: nothing of it can be understood.
    """
    data = storage.read(request["data"], length=MAX_BYTES + 1)
    file = read_answers(data, dataset=request.get("dataset", ""), ignored=request.get("ignored", ()))
    no_label = request.get("no_label", "")
    answers = [item for item in file.answers if not is_called(item.class_name, no_label)]
    class_names: list[str] = request["class_names"]
    first = request.get("first_class")
    if not answers and not file.bad:
        raise BadImport(f'The file has no label but "{shown(no_label)}". Nothing was stored.')
    numbers = _class_numbers(answers, file.reading, class_names, first)
    first_position = _first_position(file.answers, request.get("first_position"))
    faults = [(bad.number, bad.why) for bad in file.bad]
    rows = []
    of_none = len(file.answers) - len(answers)
    for item in answers:
        number = numbers[item.class_name]
        if number == NO_LABEL and any(is_called(also.text, no_label) for also in item.also):
            of_none += 1
            continue
        why = _no_class(item, file.reading, class_names, first or 0) if number == NO_LABEL else ""
        why = why or _contradiction(item, number, class_names, first or 0)
        if not why and item.position is not None and item.position < first_position:
            why = f"is about position {item.position}, but positions are said to count from {first_position}"
        if why:
            faults.append((item.number, why))
            continue
        rows.append(
            Row(
                item.number,
                item.filename,
                None if item.position is None else item.position - first_position,
                item.example_id,
                number,
                item.value,
                item.annotator,
                item.answered_at,
            )
        )
    write_rows(storage, request["rows"], rows)
    notes = [*file.remarks]
    if no_label:
        left = f'"{shown(no_label)}" stands for no class: {many(of_none, file.noun)}'
        notes.append(f"Left out, because {left}.")
    told_of = {"noun": file.noun, "has_ids": file.has_ids, "notes": notes}
    return {**told_of, "faults": sorted(faults)[: MOST_NAMED + 1]}


def _first_position(answers: Sequence[AnswerInFile], first: int | None) -> int:
    """From which number positions count; raises BadImport where nobody said it and it could be 1.

    What has a file name or an example_id beside the position, as our own files have it, counts as we do.
    """
    alone = [
        item.position
        for item in answers
        if item.position is not None and not item.filename and item.example_id is None
    ]
    if first is None and alone and min(alone) == 1:
        raise BadImport(
            "No position is 0 and the smallest is 1, which can be read in two ways: counted from 0, position "
            "1 is the second picture; counted from 1, it is the first. Say first_position=0 or "
            "first_position=1, or name the pictures' files. Nothing was stored."
        )
    return first or 0


def _no_class(item: AnswerInFile, reading: Reading, class_names: list[str], first: int) -> str:
    """Why what a line says is no class of the campaign, as the file counts or names them."""
    said = item.class_name[:80]
    may_be_none = said == str(VOID) or means_missing(said)
    mend = f"; say no_label={shown(said)} if it means that nobody knows the class" if may_be_none else ""
    if reading is Reading.EITHER:
        mend += named_by_numbers_told(item.class_name, class_names)
    if reading is not Reading.PLACES:
        return f"is about the class {said!r}, which this campaign does not have{mend}"
    last = len(class_names) - 1 + first
    counted = f"class_index counts the {len(class_names)} classes from {first} to {last}"
    if not (said.isascii() and said.isdigit()):
        return f"has {said!r} in class_index, which is no whole number; {counted}{mend}"
    return f"is about class {said} by class_index, which this campaign does not have: {counted}{mend}"


def _contradiction(item: AnswerInFile, number: int, class_names: list[str], first: int) -> str:
    """Why the columns of a line name different classes; "" where they name one."""
    for also in item.also:
        if number not in _numbers(also, class_names, first):
            told = f"names the class {item.class_name[:80]!r} and, in {also.column}, {also.text[:80]!r}"
            return f"{told}, which is another or none; make them agree, or {ONE_OUT}"
    return ""


def _numbers(also: Also, class_names: list[str], first: int) -> set[int]:
    """What a further column can mean; it is only compared, so both readings of a number may be right."""
    found = set(numbers_by_name(class_names, [also.text])) if also.reading is not Reading.PLACES else set()
    if also.reading is not Reading.NAMES and also.text.isascii() and also.text.isdigit():
        place = plain_number(also.text)
        found |= {int(place) - first} if len(place) <= len(str(len(class_names))) else set()
    return found - {NO_LABEL}


def _class_numbers(
    answers: Sequence[AnswerInFile], reading: Reading, class_names: list[str], first: int | None
) -> dict[str, int]:
    """The number of each class as the file writes it; raises BadImport where that can be read in two ways."""
    given = list(dict.fromkeys(item.class_name for item in answers))
    try:
        numbers = class_numbers(
            given,
            class_names,
            are_names=reading is Reading.NAMES,
            are_places=reading is Reading.PLACES,
            first=first,
        )
        if first is None and reading is not Reading.NAMES:
            require_count_said(given, class_names, are_places=reading is Reading.PLACES)
    except DataError as error:
        raise BadImport(f"{error}. Nothing was stored.") from error
    return dict(zip(given, numbers, strict=True))


if __name__ == "__main__":
    main()
