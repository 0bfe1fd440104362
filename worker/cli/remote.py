"""`clarinet dataset` and `clarinet campaign`, and what all commands share that talk to a server."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from clarinet_client import Client
    from clarinet_client.shapes.campaigns import Campaign as CampaignRow
    from clarinet_client.shapes.datasets import Taken

datasets = typer.Typer(no_args_is_help=True, help="Sets of images.")
campaigns = typer.Typer(no_args_is_help=True, help="Labelling efforts.")

BaseUrl = Annotated[str, typer.Option(envvar="CLARINET_URL", help="Where the server answers.")]
Token = Annotated[
    str,
    typer.Option(
        envvar="CLARINET_TOKEN", help="Bearer token, from the account page or `clarinet token add`."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Archived = Annotated[
    bool, typer.Option("--archived", help="Those that were put away, in place of the others.")
]
Campaign = Annotated[str, typer.Argument(help="Name or id of the campaign.")]
ClassNames = Annotated[
    str, typer.Option(help="Of an npz that numbers its classes: their names, with commas, that of 0 first.")
]
HERE = "http://127.0.0.1:8000"


def connect(base_url: str, token: str, *, patience_s: float | None = None) -> "Client":
    """A connection to the server; `patience_s` as the client has it.

    Raises:
        AppError: no token is given.
    """
    from app.errors import AppError
    from clarinet_client import Client

    if not token:
        raise AppError("Give a token: --token or CLARINET_TOKEN. `clarinet token add EMAIL NAME` makes one.")
    return Client(base_url, token) if patience_s is None else Client(base_url, token, patience_s=patience_s)


def show(found: Mapping[str, Any], words: str, *, as_json: bool) -> None:
    """One line for a program, or a sentence for a person."""
    typer.echo(json.dumps(found) if as_json else words)


@contextmanager
def watching(
    words: str, done: Callable[[Any], tuple[float, float | None]]
) -> Iterator[Callable[[Any], None]]:
    """A bar on standard error; gives what is to be told each row that is looked at.

    `done` gives how much is done and how much there is to do, None where that is not known yet.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)

        def tell(row: Any) -> None:
            completed, total = done(row)
            bar.update(task, completed=completed, total=total)

        yield tell


def unknown(_row: object) -> tuple[float, None]:
    """Of what does not say how far it is."""
    return 0, None


File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="zip, zip with a CSV, or npz.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Go on without files that cannot be taken in.")]
FirstClass = Annotated[
    int | None,
    typer.Option(
        min=0, max=1, help="From which number the file counts classes; else from 0, if that can be."
    ),
]
FirstPosition = Annotated[
    int | None,
    typer.Option(
        min=0, max=1, help="From which number the file counts pictures; else from 0, if that is sure."
    ),
]
NoLabel = Annotated[
    str,
    typer.Option("--no-label", help="What the file writes in place of a class that nobody knows, like 255."),
]
Encoding = Annotated[str, typer.Option(help="Of the names in the zip, where it does not say it.")]


def said_of(first: int | None) -> Literal["", "0", "1"]:
    """From where classes or pictures are counted, as the server takes it."""
    return "" if first is None else "1" if first else "0"


@datasets.command("add")
def add_dataset(
    file: File,
    name: Annotated[str, typer.Option(help="What people call it; else the file's name.")] = "",
    description: Annotated[str, typer.Option(help="What is to be seen.")] = "",
    skip_bad: SkipBad = False,
    encoding: Encoding = "",
    classes: ClassNames = "",
    first_class: FirstClass = None,
    no_label: NoLabel = "",
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Send a file of images and wait until they are taken in."""
    with connect(base_url, token) as client:
        made = client.datasets.send(
            file,
            name=name or file.stem,
            description=description,
            skip_bad=skip_bad,
            encoding=encoding,
            classes=lines_of(classes),
            first_class=said_of(first_class),
            no_label=no_label,
        )
        with watching("Taking images in", taken_in) as tell:
            row = client.datasets.wait(made["id"], on_look=tell)
    tell_notes(row)
    images = row["train_count"] + row["test_count"]
    show(
        row,
        f"{row['name']}: {images} images ({row['train_count']} train, {row['test_count']} test).",
        as_json=as_json,
    )


@datasets.command("grow")
def grow_dataset(
    dataset: Annotated[str, typer.Argument(help="Name or id of the dataset.")],
    file: File,
    skip_bad: SkipBad = False,
    keep_known: Annotated[
        bool, typer.Option("--keep-known", help="Take images in that the dataset has already.")
    ] = False,
    encoding: Encoding = "",
    classes: ClassNames = "",
    first_class: FirstClass = None,
    no_label: NoLabel = "",
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Send further images for a dataset and wait until they have joined it as a new version."""
    with connect(base_url, token) as client:
        found = client.datasets.find(dataset)
        made = client.datasets.send_further(
            found["id"],
            file,
            skip_bad=skip_bad,
            skip_known=not keep_known,
            encoding=encoding,
            classes=lines_of(classes),
            first_class=said_of(first_class),
            no_label=no_label,
        )
        with watching("Taking images in", taken_in) as tell:
            row = client.datasets.wait_for_version(found["id"], made["id"], on_look=tell)
    tell_notes(row)
    words = f"{found['name']}: version {row['number']} has {row['train_count'] + row['test_count']} images, "
    show(row, words + f"{row['progress']} of them new.", as_json=as_json)


def lines_of(classes: str) -> str:
    """Names with commas, as in a CSV, one a line."""
    return "\n".join(part.strip() for part in next(csv.reader([classes], skipinitialspace=True), []))


def taken_in(row: "Taken") -> tuple[float, float | None]:
    """How far an import is."""
    return row["progress"], row["progress_total"]


def tell_notes(row: "Taken") -> None:
    """What an import noticed, and which files it has not taken or could doubt, on standard error."""
    from clarinet_client.datasets import contradicting, left_out

    for line in [*row["notes"], *left_out(row), *contradicting(row)]:
        typer.echo(line, err=True)


@datasets.command("list")
def list_datasets(
    archived: Archived = False, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Every dataset, newest first."""
    with connect(base_url, token) as client:
        for row in client.datasets.all(archived=archived):
            images = row["train_count"] + row["test_count"]
            show(row, f"{row['id']}  {row['state']:<10} {images:>8}  {row['name']}", as_json=as_json)


@campaigns.command("create")
def create_campaign(
    name: Annotated[str, typer.Argument(help="What people call it.")],
    dataset: Annotated[str, typer.Option(help="Name or id of the source dataset.")],
    classes: Annotated[
        str,
        typer.Option(help="Names with commas, as in a CSV; else the dataset's own."),
    ] = "",
    class_language: Annotated[
        str, typer.Option(help="Of the classes' names, as a tag: en, el. Else questions use no article.")
    ] = "",
    confirm_yes: Annotated[
        bool,
        typer.Option(help="Ask a second person about every yes; of two classes, 4 of 9 questions."),
    ] = True,
    modes: Annotated[
        Literal["card", "grid", "both"], typer.Option(help="How pictures are shown: card, grid or both.")
    ] = "both",
    opened: Annotated[bool, typer.Option("--open", help="Draw the questions and open it at once.")] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Make a campaign over the train images of a dataset."""
    with connect(base_url, token) as client:
        source = client.datasets.find(dataset)
        given = next(csv.reader([classes], skipinitialspace=True), [])
        names = [part.strip() for part in given if part.strip()] or source["class_names"] or []
        row = client.campaigns.create(
            name,
            source["id"],
            classes=names,
            class_language=class_language,
            confirm_yes=confirm_yes,
            modes=modes,
        )
        if opened:
            row = open_and_wait(client, row["id"])
    show(row, f"{row['name']} ({row['id']}) is {row['state']}.", as_json=as_json)


def open_and_wait(client: "Client", campaign_id: str) -> "CampaignRow":
    """Open a campaign and wait until its questions are drawn.

    Raises:
        Failed: drawing failed; the detail says why.
    """
    client.campaigns.ask_to_open(campaign_id)
    with watching("Drawing the questions", unknown) as tell:
        return client.campaigns.wait(campaign_id, on_look=tell)


@campaigns.command("open")
def open_campaign(
    campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Draw the questions and let people answer; or let a paused campaign go on."""
    with connect(base_url, token) as client:
        row = open_and_wait(client, client.campaigns.find(campaign)["id"])
    show(row, f"{row['name']} is {row['state']}.", as_json=as_json)


@campaigns.command("ask-further")
def ask_further(
    campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Ask about images that have joined the dataset since, and wait until their questions are drawn."""
    with connect(base_url, token) as client:
        found = client.campaigns.find(campaign)
        client.campaigns.ask_further(found["id"])
        with watching("Drawing the questions", unknown) as tell:
            drawn = client.campaigns.wait_for_drawing(found["id"], on_look=tell)
        last = drawn["items"][-1]
    words = f"{found['name']} asks {last['question_count']} further questions, drawing {last['number']}."
    show(drawn, words, as_json=as_json)


@campaigns.command("pause")
def pause_campaign(
    campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Hand out no more questions until it is opened again; answers to those that people hold still count."""
    with connect(base_url, token) as client:
        row = client.campaigns.pause(client.campaigns.find(campaign)["id"])
    show(row, f"{row['name']} is {row['state']}.", as_json=as_json)


@campaigns.command("close")
def close_campaign(
    campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Take no more answers, for good, and reveal the seed of the draws."""
    with connect(base_url, token) as client:
        row = client.campaigns.close(client.campaigns.find(campaign)["id"])
    show(row, f"{row['name']} is {row['state']}.", as_json=as_json)


@campaigns.command("import")
def import_labels(
    campaign: Campaign,
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="CSV, or the JSON of Label Studio.")
    ],
    contradictions: Annotated[
        Literal["refuse", "leave-out"],
        typer.Option(help="Where somebody contradicts themselves: refuse the file, or leave out both sides."),
    ] = "refuse",
    first_class: FirstClass = None,
    first_position: FirstPosition = None,
    ignore_columns: Annotated[
        str,
        typer.Option(help="Columns that are left out, or controls of Label Studio, with commas between."),
    ] = "",
    no_label: NoLabel = "",
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Bring in yes/no answers or class labels from elsewhere; they stay apart from the campaign's own."""
    with connect(base_url, token) as client:
        found = client.campaigns.find(campaign)
        made = client.labels.send(
            found["id"],
            file,
            contradictions=contradictions,
            first_class=said_of(first_class),
            first_position=said_of(first_position),
            ignore_columns=ignore_columns,
            no_label=no_label,
        )
        with watching("Reading labels", unknown) as tell:
            row = client.labels.wait(found["id"], made["id"], on_look=tell)
    for line in [*row["notes"], *(f"{one['where'].capitalize()} {one['why']}." for one in row["faults"])]:
        typer.echo(line, err=True)
    show(
        row,
        f"{row['filename']}: {row['yes']} yes, {row['no']} no, {row['unsure']} can't tell, "
        f"{row['unusable']} cannot be used.",
        as_json=as_json,
    )


@campaigns.command("list")
def list_campaigns(
    archived: Archived = False, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Every campaign, newest first."""
    with connect(base_url, token) as client:
        for row in client.campaigns.all(archived=archived):
            show(row, f"{row['id']}  {row['state']:<8} {row['name']}", as_json=as_json)
