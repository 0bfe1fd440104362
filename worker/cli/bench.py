"""`clarinet bench scale`, `serve`, `live`, `order`, `predict` and `runs`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from worker.cli.remote import HERE, AsJson, BaseUrl, Token, connect


def scale(
    examples: Annotated[int, typer.Option(min=1_000, max=10_000_000, help="How many.")] = 10_000,
    database_url: Annotated[
        str, typer.Option(help="An empty database, which is filled; else SQLite in a temporary folder.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """A campaign of many examples: opening it, answering, its pages and downloads, their memory."""
    from worker.bench.scale import as_row, as_text, measure_scale

    figures = measure_scale(database_url, examples, say=lambda words: typer.echo(words, err=True))
    typer.echo(json.dumps(as_row(figures)) if as_json else as_text(figures))


def serve(
    clients: Annotated[list[int], typer.Option(min=1, max=512, help="People at once; several times.")] = [  # noqa: B006  # typer copies it
        32
    ],
    batch: Annotated[
        list[int], typer.Option(min=1, max=100, help="Questions per request; several times.")
    ] = [  # noqa: B006
        1,
        20,
    ],
    requests: Annotated[
        list[int],
        typer.Option(min=1, max=2, help="Per lease and answer; 1: answers bring the next. Several times."),
    ] = [1, 2],  # noqa: B006
    seconds: Annotated[float, typer.Option(min=1, max=600, help="For each row.")] = 15,
    database_url: Annotated[
        list[str], typer.Option(help="An empty database, which is filled; several times. Empty: SQLite.")
    ] = [""],  # noqa: B006
    reference: Annotated[
        bool, typer.Option("--reference", help="Beside each row one of the plain execution, in turns.")
    ] = False,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=50, help="Of each row; else 1, with --reference 5.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """Questions handed out and answered a second, by many people at once, over HTTP."""
    from worker.bench.serve import as_row, as_sentence, as_text, comparisons, measure_serving

    cases = [(people, size, each) for people in clients for size in batch for each in requests]
    rows = []
    for url in database_url:
        for row in measure_serving(
            url,
            cases,
            seconds=seconds,
            say=lambda words: typer.echo(words, err=True),
            paths=("fast", "plain") if reference else ("fast",),
            repeats=repeats or (5 if reference else 1),
        ):
            rows.append(row)
            if not as_json:
                typer.echo(as_text(row))
    compared = comparisons(rows)
    if as_json:
        figures = {"rows": [as_row(row) for row in rows], "comparisons": [asdict(each) for each in compared]}
        typer.echo(json.dumps(figures))
        return
    for each in compared:
        typer.echo(as_sentence(each))


def live(
    viewers: Annotated[int, typer.Option(min=1, max=150, help="People who look at one run.")] = 50,
    seconds: Annotated[float, typer.Option(min=2, max=300, help="For each row.")] = 20,
    repeats: Annotated[int, typer.Option(min=1, max=50, help="Of each row, in turns.")] = 3,
    database_url: Annotated[str, typer.Option(help="An empty database, which is filled; else SQLite.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """What another page takes while people look at a run that ends an epoch every second."""
    from worker.bench.live import as_row, as_text, measure_live, ratio_of

    rows = []
    for row in measure_live(
        database_url,
        viewers=viewers,
        seconds=seconds,
        repeats=repeats,
        say=lambda words: typer.echo(words, err=True),
    ):
        rows.append(row)
        if not as_json:
            typer.echo(as_text(row))
    ratios = {"stream": ratio_of(rows, "stream"), "fetch": ratio_of(rows, "fetch")}
    if as_json:
        typer.echo(json.dumps({"rows": [as_row(row) for row in rows], "ratios": ratios}))
        return
    for way, ratio in ratios.items():
        typer.echo(f"{way}: {ratio:.2f} times as long as with nobody (medians)")


def order(
    classes: Annotated[list[int], typer.Option(min=2, max=1_000, help="K; several times.")] = [2, 5, 10, 50],  # noqa: B006
    examples: Annotated[
        int, typer.Option(min=1_000, max=1_000_000, help="Images of each campaign.")
    ] = 20_000,
    speed: Annotated[
        list[float], typer.Option(min=0.01, help="Of one person, beside the others; several times.")
    ] = [1, 1, 1],  # noqa: B006
    error: Annotated[float, typer.Option(min=0, max=1, help="Share of images seen as another class.")] = 0,
    page: Annotated[
        int, typer.Option(min=0, max=100, help="Questions on a page of one class; 0: cards.")
    ] = 0,
    join: Annotated[
        list[float] | None, typer.Option(min=0, help="When each comes, in answers per question; as --speed.")
    ] = None,
    leave: Annotated[list[float] | None, typer.Option(min=0, help="When each goes for good.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same people and images.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="So many campaigns of each kind, and their means.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """How many answers are yes, by tenths of a campaign, where every yes is confirmed."""
    from worker.bench.order import HEADER, Crowd, as_row, as_text, measure_orders

    crowd = Crowd(speeds=speed, error=error, page=page, joins=join or (), leaves=leave or (), seed=seed)
    found = []
    for number in classes:
        found.append(
            measure_orders(number, examples, crowd, seeds, say=lambda words: typer.echo(words, err=True))
        )
        if not as_json:
            typer.echo(f"{HEADER}\n{as_text(found[-1])}" if len(found) == 1 else as_text(found[-1]))
    if as_json:
        typer.echo(json.dumps({"rows": [as_row(each) for each in found]}))


def predict(
    model: Annotated[str, typer.Argument(help="Id of a model of a running server.")],
    clients: Annotated[list[int], typer.Option(min=1, max=64, help="At once; several times.")] = [1, 8],  # noqa: B006
    batch: Annotated[list[int], typer.Option(min=1, max=64, help="Pictures of a request.")] = [1, 32],  # noqa: B006
    seconds: Annotated[float, typer.Option(min=1, max=600, help="For each row.")] = 8,
    images: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Pictures to send; else noise is made.")
    ] = None,
    side: Annotated[int, typer.Option(min=1, max=8192, help="Pixels a side of what is made.")] = 28,
    colour: Annotated[bool, typer.Option("--colour", help="JPEG in colour is made; else grey PNG.")] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Pictures that a running server predicts a second, for several clients at once."""
    from worker.bench.predict import as_text, measure_predicting, pictures_to_send

    rows = measure_predicting(
        lambda: connect(base_url, token, patience_s=0),  # a refusal is counted
        model,
        [(people, size) for people in clients for size in batch],
        pictures=pictures_to_send(images, side, colour=colour),
        seconds=seconds,
    )
    if as_json:
        typer.echo(json.dumps({"rows": [asdict(row) for row in rows]}))
        return
    for row in rows:
        typer.echo(as_text(row))


def runs(
    runs: Annotated[int, typer.Option(min=20, max=100_000, help="How many, of five seeds each.")] = 1_000,
    epochs: Annotated[int, typer.Option(min=1, max=10_000, help="Of each seed.")] = 100,
    database_url: Annotated[
        str, typer.Option(help="An empty database, which is filled; else SQLite in a temporary folder.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """Many runs with many epochs: how long their list and their comparison take."""
    from worker.bench.runs import as_row, as_text, measure_runs

    figures = measure_runs(database_url, runs, epochs, say=lambda words: typer.echo(words, err=True))
    typer.echo(json.dumps(as_row(figures)) if as_json else as_text(figures))
