"""`clarinet bench` and its commands that need the application."""

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
    """How many answers are yes, by tenths of a campaign that confirms each yes; of two classes, 4 of 9."""
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


def workers(
    case: Annotated[
        list[str], typer.Option(help="Workers, x, seeds at once in a process; several times.")
    ] = ["1x1", "2x1", "1x4"],  # noqa: B006
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Of the run.")] = 4,
    epochs: Annotated[int, typer.Option(min=2, max=10_000, help="Of each seed.")] = 10,
    steps: Annotated[int, typer.Option(min=1, max=10_000, help="Of each epoch.")] = 50,
    repeats: Annotated[int, typer.Option(min=1, max=50, help="Of each case, in turns.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """What further workers, and seeds that share a process, save of a run's time."""
    from worker.bench.workers import Case, as_row, as_text, measure_workers

    try:
        cases = [Case(int(left), int(right)) for left, right in (each.split("x") for each in case)]
    except ValueError as error:
        raise typer.BadParameter("Write a case as 2x1: two workers, one seed at once.") from error
    figures = measure_workers(
        cases,
        seeds=seeds,
        epochs=epochs,
        steps=steps,
        repeats=repeats,
        say=lambda words: typer.echo(words, err=True),
    )
    typer.echo(json.dumps(as_row(figures)) if as_json else as_text(figures))


def comparison(
    pairs: Annotated[
        list[str] | None, typer.Argument(help="U-M, M-U, M-MM, P-A, A-P, P-S; none: all of them.")
    ] = None,
    data: Annotated[
        Path, typer.Option(envvar="CLARINET_DATA", exists=True, file_okay=False, help="Where the files are.")
    ] = Path("data"),
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="Several times; none: ours and the paper's five.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Of each run.")] = 3,
    answers: Annotated[
        int | None, typer.Option(min=1, help="Of simulated annotators; else until nothing is left to ask.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any field of TrainConfig.")
    ] = None,
    download_weights: Annotated[
        bool, typer.Option("--download-weights", help="Let a worker fetch trained weights that none has.")
    ] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Launch the paper's five methods and ours on real images, on a running server; goes on where it was."""
    from clarinet.commands.options import named_value
    from worker.bench.comparison import METHODS, PAIRS, Wanted, launch_comparison

    unknown = [name for name in pairs or () if name not in PAIRS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(PAIRS)}.")
    wanted = Wanted(
        data=data,
        seeds=range(seeds),
        answers=answers,
        changes=dict(named_value(text) for text in values or []),
        methods=methods or METHODS,
        download_weights=download_weights,
    )
    found = {}
    with connect(base_url, token) as client:
        for name in pairs or PAIRS:
            launched = launch_comparison(
                client, PAIRS[name], wanted, say=lambda words: typer.echo(words, err=True)
            )
            found[name] = asdict(launched)
            if not as_json:
                typer.echo(f"{name}: {launched.url}")
    if as_json:
        typer.echo(json.dumps(found))


def faults(
    questions: Annotated[int, typer.Option(min=10, max=1_000_000, help="Of the campaign.")] = 400,
    people: Annotated[int, typer.Option(min=1, max=256, help="Who answer, all the time.")] = 8,
    runs: Annotated[
        int, typer.Option(min=1, max=1_000, help="At least so many; more until all is done.")
    ] = 1,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Trials of each run.")] = 2,
    answer_faults: Annotated[int, typer.Option(min=0, help="Of web hosts, database and broker.")] = 4,
    trial_faults: Annotated[int, typer.Option(min=0, help="Of hosts that train, and what they need.")] = 4,
    seed: Annotated[int, typer.Option(help="Same seed, same faults in the same order.")] = 0,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Over which answers are spread; later no fault begins.")
    ] = 2,
    speed: Annotated[
        float, typer.Option(min=0, max=600, help="Seconds to measure pairs/s with one and two web processes.")
    ] = 0,
    folder: Annotated[
        Path | None, typer.Option(help="An empty one for the hosts' folders, which keeps their logs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Many machines, and faults of all of them, while people answer and runs train.

    Hosts are network namespaces, which needs root and iproute2; else they are processes that nothing cuts
    off. PostgreSQL, Redis, nginx and moto's S3 server must be installed. Status 1: something was lost,
    doubled, orphaned or computed otherwise.
    """
    from worker.bench.faults.measure import Plan, as_row, as_text, measure_faults

    plan = Plan(
        questions=questions,
        people=people,
        runs=runs,
        seeds=seeds,
        answer_faults=answer_faults,
        trial_faults=trial_faults,
        seed=seed,
        minutes=minutes,
        speed_s=speed,
    )
    found = measure_faults(plan, folder, say=lambda words: typer.echo(words, err=True))
    typer.echo(json.dumps(as_row(found)) if as_json else as_text(found))
    if not found.is_well:
        raise typer.Exit(1)
