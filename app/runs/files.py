"""Tables as files that a browser downloads."""

import csv
import io
from collections.abc import Iterable, Sequence

from fastapi.responses import Response


def csv_file(name: str, rows: Iterable[Sequence[str]]) -> Response:
    """A table of texts that no spreadsheet takes for formulas, see `guarded`."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return Response(
        written.getvalue(),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )
