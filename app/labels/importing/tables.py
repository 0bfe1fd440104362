"""Tables of labels, as people and other tools write them: a column is understood, named, or refused. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from app.annotation.models import AnswerValue
from app.labels.errors import BadImport
from app.labels.exports.answers import ARROW as ANSWERS_OUT
from app.labels.exports.labels import ARROW as LABELS_OUT
from app.labels.exports.labels import CHANCE
from app.labels.importing.said import (
    NOT_LABELS,
    Also,
    AnswerInFile,
    BadLine,
    Reading,
    answer_of,
    cell,
    person,
    time_of,
    whole,
    whole_if_any,
)
from clarinet.files.columns import FILENAMES, IDS, OF_TYPE, OURS, PICTURES, of_files
from clarinet.files.label_table import LabelKind
from clarinet.files.names import in_a_row
from clarinet.files.tables import TAKE_OUT, BadTable, BrokenLine, TextTable, column_name, quoted, unguarded
from clarinet.recipes.counting import many

OF_KIND = {LabelKind.TRUE: AnswerValue.YES, LabelKind.COMPLEMENTARY: AnswerValue.NO}
PLACES = ("position", "example_id")
LABEL = "label"  # what others call the column of classes
CLASSES = {
    "class_name": Reading.NAMES,
    "label_name": Reading.NAMES,
    "class_index": Reading.PLACES,
    "class": Reading.EITHER,
    LABEL: Reading.EITHER,
}
ANSWERS = ("answer", "value", "kind")
TIMES = ("answered_at", "created_at")
FILES = (*FILENAMES, *PICTURES)
READ = {*FILES, *IDS, *PLACES, *CLASSES, *ANSWERS, *TIMES, "annotator", "purpose"}
HANDED_OUT = {**ANSWERS_OUT, **LABELS_OUT, **CHANCE}
KNOWN = frozenset(READ | HANDED_OUT.keys())
# What we hand out ourselves has columns of yes and no that answer nothing, if their cells are like ours.
TYPES = {name: OF_TYPE[kind] for name, kind in HANDED_OUT.items() if kind in OF_TYPE} | OURS
MAY_BE_MEANT = KNOWN - {*IDS}  # "idx" is no misspelt "id"
ONE_OUT = "take one of the columns out, or name it in ignore_columns"
MEANT = {"height"}  # of a picture or a box, which is no misspelt weight
LIKENESS = 0.8  # of a column's name to one that is known, from which on it is taken for a misspelling


@dataclass(slots=True)
class Lines:
    """The lines of a table, one by one.

    Args:
        reading: what its classes are.
        remarks: what the admin should know, in sentences; whole once all lines were read.
        has_ids: whether it names pictures by their files' names without the ending.
    """

    reading: Reading
    remarks: list[str]
    has_ids: bool
    _table: TextTable
    _columns: "_Columns"
    _left: int = field(default=0)

    @classmethod
    def of(cls, text: str, ignored: Sequence[str] = ()) -> "Lines":
        """Judge the columns of a table, without those to leave out, whatever its lines say.

        Raises:
            BadImport: they say no picture or no class, or can be read in two ways.
        """
        try:
            table = TextTable.of(text, known=KNOWN, ignored=ignored)
            columns = _Columns.of(table.names)
            _refuse_misspelt(table)
            judges = None if columns.answers else KNOWN
            unread = [column.shown for column in table.unread(columns.used, TYPES, judges=judges)]
        except BrokenLine as broken:
            raise _no_csv(broken) from broken
        except BadTable as bad:
            raise BadImport(f"The file {bad.why}. Nothing was stored.") from bad
        verb = "column was" if len(unread) == 1 else "columns were"
        told = [f"The {verb} not read: {', '.join(unread)}."] if unread else []
        if table.ignored:
            names = [quoted(table.written[place]) for place in sorted(table.ignored)]
            told.append(f"Left out, as was asked for: {in_a_row(names)}.")
        if "example_id" in columns.places and (columns.files or len(columns.places) > 1):
            told.append(
                "The column example_id was read only where no position is given, and no file name or one of "
                "several pictures."
            )
        return cls(CLASSES[columns.classes[0]], told, columns.has_ids, table, columns)

    def __iter__(self) -> Iterator[AnswerInFile | BadLine]:
        try:
            for number, row in self._table.rows():
                try:
                    yield from self._of_row(row, number)
                except BadLine as bad:
                    yield bad
        except BrokenLine as broken:
            raise _no_csv(broken) from broken
        if self._left:
            lines = many(self._left, "line")
            self.remarks.append(f"Left out, because gold and evaluation make no labels: {lines}.")

    def _of_row(self, row: Sequence[str], number: int) -> Iterator[AnswerInFile]:
        if len(row) != len(self._table.names):
            count = f"{len(row)}, not {len(self._table.names)}"
            raise BadLine(number, f"has more or fewer values than the first line names ({count})")
        given = {name: cell(text, number).strip() for name, text in self._table.cells(row).items()}
        if given.get("purpose", "") in NOT_LABELS:
            self._left += 1
            return
        yield self._columns.answer(given, number)


def _no_csv(broken: BrokenLine) -> BadImport:
    return BadImport(f"What follows line {broken.line - 1} is no CSV. Nothing was stored.")


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns say what: of each kind those that are there, the one that counts first."""

    files: Sequence[str]
    places: Sequence[str]
    classes: Sequence[str]
    answers: Sequence[str]
    times: Sequence[str]

    @classmethod
    def of(cls, header: Sequence[str]) -> "_Columns":
        """Raises BadImport where something lacks, or two columns could be the one."""

        def there(names: Sequence[str]) -> list[str]:
            return [name for name in names if name in header]

        places = there(PLACES)
        files = [name for name in of_files(header) if not places or name in FILENAMES]
        found = cls(files, places, there(list(CLASSES)), there(ANSWERS), there(TIMES))
        if not (found.files or found.places) or not found.classes:
            raise BadImport(
                "The first line must name the columns, parted by commas, semicolons or tabs: filename, "
                "position or example_id; class (or label), class_name or class_index; and, if you have them, "
                "answer (yes, no, unsure, unusable), annotator, answered_at. Nothing was stored."
            )
        either = [name for name in found.classes if CLASSES[name] is Reading.EITHER]
        for names, what in (
            (found.files, "the picture's file"),
            (either, "the class"),
            (found.times, "the time"),
        ):
            if len(names) > 1:
                raise BadImport(
                    f"The columns {in_a_row(names)} could both be {what}. Keep the one that is, and name the "
                    "other in ignore_columns, or take it out of the file. Nothing was stored."
                )
        return found

    @property
    def has_ids(self) -> bool:
        """Whether pictures are named by their files' names without the ending."""
        return any(name in IDS for name in self.files)

    @property
    def used(self) -> set[str]:
        """All that is read."""
        pictures = {*self.files, *self.places}
        return {*pictures, *self.classes, *self.answers, *self.times, "annotator", "purpose"}

    def answer(self, given: Mapping[str, str], number: int) -> AnswerInFile:
        """What a line says."""
        first, *further = self.classes
        if not given[first]:
            raise BadLine(number, f"names no class in the column {first}; fill it in, or take the line out")
        filename = unguarded(given[self.files[0]]) if self.files else ""
        position = whole(given.get("position", ""), number)
        is_told = bool(filename) or position is not None
        example_id = given.get("example_id", "")
        also = [Also(name, unguarded(given[name]), CLASSES[name]) for name in further if given[name]]
        return AnswerInFile(
            number,
            position=position,
            example_id=whole_if_any(example_id) if is_told else whole(example_id, number),
            filename=filename,
            class_name=unguarded(given[first]),
            value=self._value(given, number),
            annotator=person(unguarded(given.get("annotator", ""))),
            answered_at=time_of(given[self.times[0]] if self.times else "", number),
            also=tuple(also),
        )

    def _value(self, given: Mapping[str, str], number: int) -> AnswerValue:
        """What the columns answer, all alike; a class without such a column is a yes."""
        if not self.answers:
            return AnswerValue.YES
        said = {name: _said(name, given[name], number) for name in self.answers if given[name]}
        if not said:
            raise BadLine(
                number, f"says nothing in the column {self.answers[0]}: yes, no, unsure or unusable"
            )
        if len(set(said.values())) > 1:
            told = " and ".join(f"{given[name][:40]!r} in {name}" for name in said)
            raise BadLine(number, f"says {told}, which do not go together; {ONE_OUT}")
        return next(iter(said.values()))


def _said(column: str, text: str, number: int) -> AnswerValue:
    if column != "kind":
        return answer_of(text, number)
    if text.lower() not in set(OF_KIND):
        raise BadLine(number, f"is of the kind {text[:40].lower()!r} instead of true or complementary")
    return OF_KIND[LabelKind(text.lower())]


def _refuse_misspelt(table: TextTable) -> None:
    """Raise BadImport of a column that is called nearly as one we know: what it says would be lost."""
    for name, written in zip(table.names, table.written, strict=True):
        is_known = not name or name in KNOWN | MEANT
        near = [] if is_known else get_close_matches(name, MAY_BE_MEANT, n=1, cutoff=LIKENESS)
        if near:
            raise BadImport(
                f"There is no column {quoted(column_name(written))} here. Did you mean {near[0]!r}? "
                f"Else {TAKE_OUT}, or give it another name. Nothing was stored."
            )
