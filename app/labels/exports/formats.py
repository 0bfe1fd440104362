"""Tables as CSV, TSV, JSON lines, Parquet and npz: rows in, bytes out, however many rows there are."""

import csv
import enum
import io
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

Row = tuple[Any, ...]
Item = TypeVar("Item")

CHUNK = 2_000  # rows per piece that is sent
ROW_GROUP = 10_000  # rows that Parquet compresses together
COPIED_BYTES = 1 << 18


class ExportFormat(enum.StrEnum):
    """Forms in which labels and answers are handed out."""

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    NPZ = "npz"
    LABEL_STUDIO = "label-studio"

    @property
    def media_type(self) -> str:
        """For the header of a download."""
        return {
            "csv": "text/csv; charset=utf-8",
            "tsv": "text/tab-separated-values; charset=utf-8",
            "jsonl": "application/jsonl",
            "parquet": "application/vnd.apache.parquet",
            "npz": "application/octet-stream",
            "label-studio": "application/json",
        }[self]

    @property
    def ending(self) -> str:
        """Of a download's file name."""
        return "json" if self is ExportFormat.LABEL_STUDIO else str(self)

    @property
    def is_for_spreadsheets(self) -> bool:
        """Whether a spreadsheet opens it, so that text which a user wrote must be `guarded`."""
        return self in {ExportFormat.CSV, ExportFormat.TSV}


def csv_pieces(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    """A header and a line per row. Text that a user wrote must be `guarded` already; None is empty."""
    return _separated(columns, rows, csv.excel)


def tsv_pieces(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    """The same with tabs in place of commas; a cell with a tab, a quotation mark or a line end is quoted."""
    return _separated(columns, rows, csv.excel_tab)


def _separated(columns: Sequence[str], rows: Iterable[Row], dialect: type[csv.Dialect]) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, dialect)
    writer.writerow(columns)
    for piece in _batched(rows, CHUNK):
        writer.writerows(piece)
        yield _text_of(buffer)
    if text := _text_of(buffer):
        yield text


def _batched(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    # itertools.batched needs Python 3.12.
    iterator = iter(items)
    while batch := tuple(islice(iterator, size)):
        yield batch


def _text_of(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()


def json_pieces(objects: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """One JSON object per line."""
    for piece in _batched(map(to_json, objects), CHUNK):
        yield b"\n".join(piece) + b"\n"


def json_array_pieces(objects: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """One JSON array of all objects."""
    before = b"["
    for piece in _batched(map(to_json, objects), CHUNK):  # none waits as an object
        yield before + b",\n".join(piece)
        before = b",\n"
    yield b"]\n" if before != b"[" else b"[]\n"


def parquet_pieces(columns: Mapping[str, str], rows: Iterable[Row]) -> Iterator[bytes]:
    """A Parquet file. `columns` gives each column's Arrow type: int64, float64, string, bool, timestamp."""
    # Loaded on use: it costs every process that never needs it 40 MB and a fifth of a second.
    import pyarrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    types = {"timestamp": pyarrow.timestamp("us", tz="UTC"), "bool": pyarrow.bool_()}
    schema = pyarrow.schema(
        [(name, types.get(kind) or getattr(pyarrow, kind)()) for name, kind in columns.items()]
    )
    pieces = Pieces()
    with parquet.ParquetWriter(pieces, schema, compression="zstd") as writer:
        for group in _batched(rows, ROW_GROUP):
            listed = zip(*group, strict=True)
            # Times come as text, which only a cast reads.
            arrays = [
                pyarrow.array(values).cast(field.type)
                if pyarrow.types.is_timestamp(field.type)
                else pyarrow.array(values, type=field.type)
                for values, field in zip(listed, schema, strict=True)
            ]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
            yield pieces.take()
    yield pieces.take()


def npz_pieces(
    columns: Mapping[str, str],
    rows: Iterable[Row],
    *,
    names: Callable[[], Mapping[str, NDArray[Any]]],
) -> Iterator[bytes]:
    """An npz with an array per column, and the small arrays that `names` gives once all rows were read.

    Arrays lie one after another in the file, so the rows wait on disk, as columns, until all are there.

    Args:
        columns: numpy's type of each column; "(M,)<i8" of M numbers a row.
        rows: of plain values.
        names: further arrays.
    """
    with ExitStack() as files:
        spools = {name: files.enter_context(tempfile.TemporaryFile()) for name in columns}
        count = 0
        for piece in _batched(rows, CHUNK):
            count += len(piece)
            for values, (name, dtype) in zip(zip(*piece, strict=True), columns.items(), strict=True):
                spools[name].write(np.array(values, dtype=np.dtype(dtype).base).tobytes())
        pieces = Pieces()
        with zipfile.ZipFile(pieces, "w", zipfile.ZIP_STORED) as archive:
            for name, dtype in columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    _write_header(member, np.dtype(dtype), count)
                    spools[name].seek(0)
                    while data := spools[name].read(COPIED_BYTES):
                        member.write(data)
                        yield pieces.take()
            for name, array in names().items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.save(member, array, allow_pickle=False)
        yield pieces.take()


def _write_header(member: IO[bytes], dtype: np.dtype[Any], count: int) -> None:
    descr, shape = np.lib.format.dtype_to_descr(dtype.base), (count, *dtype.shape)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)


class Pieces(io.RawIOBase):
    """A file that is only written to; what was written is taken away piece by piece."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        self._written.append(bytes(data))
        self._position += len(self._written[-1])
        return len(self._written[-1])

    def take(self) -> bytes:
        written = b"".join(self._written)
        self._written.clear()
        return written
