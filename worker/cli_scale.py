"""`clarinet bench scale`."""

import json
from typing import Annotated

import typer


def scale(
    examples: Annotated[int, typer.Option(min=1_000, max=10_000_000, help="How many.")] = 10_000,
    database_url: Annotated[
        str, typer.Option(help="An empty database, which is filled; else SQLite in a temporary folder.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """A campaign of many examples: opening it, answering, its pages and downloads, their memory."""
    from worker.scale import as_row, as_text, measure_scale

    figures = measure_scale(database_url, examples, say=lambda words: typer.echo(words, err=True))
    typer.echo(json.dumps(as_row(figures)) if as_json else as_text(figures))
