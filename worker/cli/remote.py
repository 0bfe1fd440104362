"""`clarinet dataset` and `clarinet campaign`, and what all commands share that talk to a server."""

import csv
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from worker.client import Client

datasets = typer.Typer(no_args_is_help=True, help="Sets of images.")
campaigns = typer.Typer(no_args_is_help=True, help="Labelling efforts.")

LOOK_S = 0.5
BaseUrl = Annotated[str, typer.Option(envvar="CLARINET_URL", help="Where the server answers.")]
Token = Annotated[
    str,
    typer.Option(
        envvar="CLARINET_TOKEN", help="Bearer token, from the account page or `clarinet token add`."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Campaign = Annotated[str, typer.Argument(help="Name or id of the campaign.")]
ClassNames = Annotated[
    str, typer.Option(help="Of an npz that numbers its classes: their names, with commas, that of 0 first.")
]
HERE = "http://127.0.0.1:8000"


def connect(base_url: str, token: str) -> "Client":
    """A connection to the server.

    Raises:
        AppError: no token is given.
    """
    from app.errors import AppError
    from worker.client import Client

    if not token:
        raise AppError("Give a token: --token or CLARINET_TOKEN. `clarinet token add EMAIL NAME` makes one.")
    return Client(base_url, token)


def show(found: Mapping[str, Any], words: str, *, as_json: bool) -> None:
    """One line for a program, or a sentence for a person."""
    typer.echo(json.dumps(found) if as_json else words)


def find(client: "Client", kind: str, wanted: str) -> dict[str, Any]:
    """A dataset, campaign or run by its id, name or number.

    Raises:
        AppError: there is none.
    """
    from app.errors import AppError

    for item in client.items(f"/{kind}"):
        if wanted in {item["id"], item.get("name"), str(item.get("number"))}:
            found: dict[str, Any] = client.get(f"/{kind}/{item['id']}")
            return found
    raise AppError(f"There is no {kind.removesuffix('s')} called {wanted!r}.")


def wait(
    client: "Client",
    path: str,
    words: str,
    *,
    until: Callable[[dict[str, Any]], bool],
    done: Callable[[dict[str, Any]], tuple[float, float | None]],
) -> dict[str, Any]:
    """Look at a row until it is as wanted, with a bar on standard error.

    `done` gives how much is done and how much there is to do, None where that is not known yet.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)
        while True:
            row: dict[str, Any] = client.get(path)
            completed, total = done(row)
            bar.update(task, completed=completed, total=total)
            if until(row):
                return row
            time.sleep(LOOK_S)


@datasets.command("add")
def add_dataset(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="zip, zip with a CSV, or npz.")],
    name: Annotated[str, typer.Option(help="What people call it; else the file's name.")] = "",
    description: Annotated[str, typer.Option(help="What is to be seen.")] = "",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Go on without files that cannot be taken in.")
    ] = False,
    encoding: Annotated[str, typer.Option(help="Of the names in the zip, where it does not say it.")] = "",
    classes: ClassNames = "",
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Send a file of images and wait until they are taken in."""
    from app.errors import AppError

    with connect(base_url, token) as client:
        with file.open("rb") as stream:
            choices = {"skip_bad": str(skip_bad).lower(), "encoding": encoding, "classes": lines_of(classes)}
            made = client.upload(
                "/datasets",
                stream,
                filename=file.name,
                name=name or file.stem,
                description=description,
                **choices,
            )
        row = wait(
            client,
            f"/datasets/{made['id']}",
            "Taking images in",
            until=lambda row: row["state"] != "importing",
            done=lambda row: (row["progress"], row["progress_total"]),
        )
    if row["state"] == "failed":
        raise AppError("\n".join([row["failure"], *told_of(row)]))
    for line in [*row["notes"], *told_of(row)]:
        typer.echo(line, err=True)
    images = row["train_count"] + row["test_count"]
    show(
        row,
        f"{row['name']}: {images} images ({row['train_count']} train, {row['test_count']} test).",
        as_json=as_json,
    )


@datasets.command("grow")
def grow_dataset(
    dataset: Annotated[str, typer.Argument(help="Name or id of the dataset.")],
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="zip or npz.")],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Go on without files that cannot be taken in.")
    ] = False,
    keep_known: Annotated[
        bool, typer.Option("--keep-known", help="Take images in that the dataset has already.")
    ] = False,
    encoding: Annotated[str, typer.Option(help="Of the names in the zip, where it does not say it.")] = "",
    classes: ClassNames = "",
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Send further images for a dataset and wait until they have joined it as a new version."""
    from app.errors import AppError

    with connect(base_url, token) as client:
        found = find(client, "datasets", dataset)
        choices = {"skip_bad": str(skip_bad).lower(), "encoding": encoding, "classes": lines_of(classes)}
        choices["skip_known"] = str(not keep_known).lower()
        with file.open("rb") as stream:
            made = client.upload(f"/datasets/{found['id']}/images", stream, filename=file.name, **choices)
        row = wait(
            client,
            f"/datasets/{found['id']}/versions/{made['id']}",
            "Taking images in",
            until=lambda row: row["state"] != "importing",
            done=lambda row: (row["progress"], row["progress_total"]),
        )
    if row["state"] == "failed":
        raise AppError("\n".join([row["failure"], *told_of(row)]))
    for line in [*row["notes"], *told_of(row)]:
        typer.echo(line, err=True)
    words = f"{found['name']}: version {row['number']} has {row['train_count'] + row['test_count']} images, "
    show(row, words + f"{row['progress']} of them new.", as_json=as_json)


def lines_of(classes: str) -> str:
    """Names with commas, as in a CSV, one a line."""
    return "\n".join(part.strip() for part in next(csv.reader([classes], skipinitialspace=True), []))


def told_of(row: Mapping[str, Any]) -> list[str]:
    """The files that an import has not taken, one a line."""
    return [f'"{fault["file"]}" {fault["why"]}.' for fault in row["faults"]]


@datasets.command("list")
def list_datasets(base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False) -> None:
    """Every dataset, newest first."""
    with connect(base_url, token) as client:
        for row in client.items("/datasets"):
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
    confirm_yes: Annotated[bool, typer.Option(help="Ask a second person about every yes.")] = True,
    modes: Annotated[str, typer.Option(help="How pictures are shown: card, grid or both.")] = "both",
    opened: Annotated[bool, typer.Option("--open", help="Draw the questions and open it at once.")] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Make a campaign over the train images of a dataset."""
    with connect(base_url, token) as client:
        source = find(client, "datasets", dataset)
        given = next(csv.reader([classes], skipinitialspace=True), [])
        names = [part.strip() for part in given if part.strip()] or source["class_names"] or []
        body = {
            "name": name,
            "dataset_id": source["id"],
            "classes": [{"name": part} for part in names],
            "class_language": class_language,
            "confirm_yes": confirm_yes,
            "modes": modes,
        }
        row = client.post("/campaigns", body)
        if opened:
            row = open_and_wait(client, row["id"])
    show(row, f"{row['name']} ({row['id']}) is {row['state']}.", as_json=as_json)


def open_and_wait(client: "Client", campaign_id: str) -> dict[str, Any]:
    """Open a campaign and wait until its questions are drawn.

    Raises:
        AppError: drawing failed; the detail says why.
    """
    from app.errors import AppError

    path = f"/campaigns/{campaign_id}"
    client.post(f"{path}/open")
    row = wait(
        client,
        path,
        "Drawing the questions",
        until=lambda row: row["state"] != "draft" or bool(row["opening_failure"]),
        done=lambda _: (0, None),
    )
    if row["state"] == "draft":
        raise AppError(row["opening_failure"])
    return row


@campaigns.command("open")
def open_campaign(
    campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Draw the questions and let people answer; or let a paused campaign go on."""
    with connect(base_url, token) as client:
        row = open_and_wait(client, find(client, "campaigns", campaign)["id"])
    show(row, f"{row['name']} is {row['state']}.", as_json=as_json)


@campaigns.command("ask-further")
def ask_further(
    campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Ask about images that have joined the dataset since, and wait until their questions are drawn."""
    from app.errors import AppError

    with connect(base_url, token) as client:
        found = find(client, "campaigns", campaign)
        client.post(f"/campaigns/{found['id']}/further")
        drawn = wait(
            client,
            f"/campaigns/{found['id']}/drawings",
            "Drawing the questions",
            until=lambda row: bool(row["items"][-1]["drawn_at"] or row["items"][-1]["failure"]),
            done=lambda _: (0, None),
        )
        last = drawn["items"][-1]
    if last["failure"]:
        raise AppError(last["failure"])
    words = f"{found['name']} asks {last['question_count']} further questions, drawing {last['number']}."
    show(drawn, words, as_json=as_json)


@campaigns.command("pause")
def pause_campaign(
    campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Hand out no more questions until it is opened again; answers to those that people hold still count."""
    _change(campaign, "pause", base_url, token, as_json=as_json)


@campaigns.command("close")
def close_campaign(
    campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """Take no more answers, for good, and reveal the seed of the draws."""
    _change(campaign, "close", base_url, token, as_json=as_json)


def _change(campaign: str, verb: str, base_url: str, token: str, *, as_json: bool) -> None:
    with connect(base_url, token) as client:
        found = find(client, "campaigns", campaign)
        client.post(f"/campaigns/{found['id']}/{verb}")
        row = client.get(f"/campaigns/{found['id']}")
    show(row, f"{row['name']} is {row['state']}.", as_json=as_json)


@campaigns.command("import")
def import_labels(
    campaign: Campaign,
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="CSV, or the JSON of Label Studio.")
    ],
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Bring in yes/no answers or class labels from elsewhere; they stay apart from the campaign's own."""
    from app.errors import AppError

    with connect(base_url, token) as client:
        found = find(client, "campaigns", campaign)
        with file.open("rb") as stream:
            made = client.upload(f"/campaigns/{found['id']}/imports", stream, filename=file.name)
        row = wait(
            client,
            f"/campaigns/{found['id']}/imports/{made['id']}",
            "Reading labels",
            until=lambda row: row["state"] != "importing",
            done=lambda row: (int(row["state"] != "importing"), 1),
        )
    if row["state"] == "failed":
        faults = row["faults"] if len(row["faults"]) > 1 else []  # one is told by the sentence
        raise AppError("\n".join([row["failure"], *(f"{one['where']} {one['why']}." for one in faults)]))
    show(
        row,
        f"{row['filename']}: {row['yes']} yes, {row['no']} no, {row['unsure']} can't tell, "
        f"{row['unusable']} cannot be used.",
        as_json=as_json,
    )


@campaigns.command("list")
def list_campaigns(base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False) -> None:
    """Every campaign, newest first."""
    with connect(base_url, token) as client:
        for row in client.items("/campaigns"):
            show(row, f"{row['id']}  {row['state']:<8} {row['name']}", as_json=as_json)
