"""What answers add up to, and what comes from elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from clarinet_client import operations as op
from clarinet_client.errors import Failed
from clarinet_client.files import File
from clarinet_client.groups import Group
from clarinet_client.shapes.annotation import Disagreements, LabelImport
from clarinet_client.waiting import look_until

Contradictions = Literal["refuse", "leave-out"]
Format = Literal["csv", "tsv", "jsonl", "parquet", "npz", "label-studio"]


class Labels(Group):
    """Labels of a campaign."""

    def save(
        self, campaign_id: str, to: str | Path, *, format: Format = "csv", imported: bool | None = None
    ) -> Path:
        """Keep them as a file: at a path, or in a folder under the server's name for it."""
        query = {"format": format, "imported": imported}
        return self._connection.save(op.GET_LABELS, to, query=query, campaign_id=campaign_id)

    def read(self, campaign_id: str, *, format: Format = "csv", imported: bool | None = None) -> bytes:
        """The same file in memory."""
        query = {"format": format, "imported": imported}
        return self._connection.read(op.GET_LABELS, query=query, campaign_id=campaign_id)

    def send(
        self,
        campaign_id: str,
        file: File,
        *,
        filename: str = "",
        contradictions: Contradictions = "refuse",
        first_class: Literal["", "0", "1"] = "",
        first_position: Literal["", "0", "1"] = "",
        ignore_columns: str = "",
        no_label: str = "",
        key: str = "",
    ) -> LabelImport:
        """Send answers or labels from elsewhere, as CSV or Label Studio's JSON; `wait` waits for the end.

        Args:
            campaign_id: whose they are to be.
            file: a path, bytes or a stream.
            filename: what it is called, where the file does not tell.
            contradictions: what becomes of answers with which somebody contradicts themselves: the file is
                refused, or both sides are left out.
            first_class: from which number the file counts classes, where it does.
            first_position: from which number it counts pictures, where it does.
            ignore_columns: names of columns, or of Label Studio's controls, that are left out; with commas
                between, as a CSV writes a line.
            no_label: what the file writes in place of a class that nobody knows; such lines are left out.
            key: the same key twice sends once.
        """
        fields = {
            "contradictions": "" if contradictions == "refuse" else contradictions,
            "first_class": first_class,
            "first_position": first_position,
            "ignore_columns": ignore_columns,
            "no_label": no_label,
        }
        return self._connection.upload(
            op.IMPORT_LABELS, file, filename=filename, fields=fields, key=key, campaign_id=campaign_id
        )

    def disagreements(self, campaign_id: str) -> Disagreements:
        """Pictures about which people of imports differ, among themselves or from answers there."""
        return self._connection.call(op.LIST_DISAGREEMENTS, campaign_id=campaign_id)

    def wait(
        self,
        campaign_id: str,
        import_id: str,
        *,
        on_look: Callable[[LabelImport], None] | None = None,
        timeout_s: float | None = None,
    ) -> LabelImport:
        """Wait until they are read.

        Raises:
            Failed: they could not be; its words name the lines.
            TookTooLong: they were not in time.
        """
        row = look_until(
            lambda: self._connection.call(op.GET_IMPORT, campaign_id=campaign_id, import_id=import_id),
            lambda row: row["state"] != "importing",
            what="The end of the import",
            on_look=on_look,
            timeout_s=timeout_s,
        )
        if row["state"] == "failed":
            faults = row["faults"] if len(row["faults"]) > 1 else []  # one is told by the sentence
            lines = [f"{one['where']} {one['why']}." for one in faults]
            raise Failed("\n".join([row["failure"] or "The import failed.", *lines]), row)
        return row
