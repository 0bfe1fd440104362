"""`clarinet run`: launching trainings on a server, ending them, and reading their accuracy."""

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clarinet.recipes.scoring import ScoredOn
from clarinet.recipes.source_accuracy import SourceEstimate, in_words
from worker.cli.remote import HERE, Archived, AsJson, BaseUrl, Campaign, Token, connect, show, watching

if TYPE_CHECKING:
    from clarinet_client import Client
    from clarinet_client.shapes.runs import Run

RunName = Annotated[str, typer.Argument(help="Number or id of the run.")]
runs = typer.Typer(no_args_is_help=True, help="Trainings.")


def wait_for_run(client: "Client", run_id: str) -> "Run":
    """Look at a run until it has ended."""
    with watching("Training", lambda row: (row["epoch"], row["epochs"] or None)) as tell:
        return client.runs.wait(run_id, on_look=tell)


def told(row: "Run") -> str:
    """A run, as the API reads it, in words: what was measured, and what is estimated as an estimate."""
    words = f"Run {row['number']}: {row['state']}"
    if row["mean_accuracy"] is not None:
        low, high = row["interval_low"], row["interval_high"]
        assert low is not None  # they come with the mean
        assert high is not None
        scored = ScoredOn(split=row["scored_split"], images=row["scored_on"], of=row["scored_of"])
        ends = f"{100 * low:.2f} to {100 * high:.2f} %"
        words += f", {100 * row['mean_accuracy']:.2f} % ({ends}) on the target, {scored.in_words()}"
        if (chance := row.get("chance")) is not None:  # which a server of an earlier version does not say
            words += f"; chance {100 * chance:.2f} %"
    elif not row["scored_on"]:
        words += f", not measured on the target: {row['unscored']}"
    if row["std_accuracy"] is not None:
        words += f" (standard deviation {100 * row['std_accuracy']:.2f} over {len(row['seeds'])} seeds)"
    if row["scored_on"] and row["unscored"]:
        words += f"\nNot counted: {row['unscored']}."
    if row["recipe"]:
        words += f"\nIt trains {row['recipe']}. {row['recipe_warning']}".rstrip()
    if row["source_estimate"] is not None:
        found = SourceEstimate.from_dict(row["source_estimate"])
        words += f"\nOn the source, estimated from held-out answers: {in_words(found)}"
    failures = [f"\nSeed {trial['seed']}: {trial['failure']}" for trial in row["trials"] if trial["failure"]]
    return words + "".join(failures)


def _show_run(row: "Run", *, as_json: bool) -> None:
    show(row, told(row), as_json=as_json)
    if row["state"] == "failed":
        raise typer.Exit(1)


@runs.command("start")
def start_run(
    campaign: Campaign,
    target: Annotated[str, typer.Option(help="Name or id of the target dataset.")],
    method: Annotated[str, typer.Option(help="clarinet-plus, clarinet, gac, ...")] = "clarinet-plus",
    setting: Annotated[str, typer.Option(help="cc: complementary labels only; pc: true ones too.")] = "cc",
    preset: Annotated[
        str, typer.Option(help="Named hyper-parameters; else what fits the images: digits or photographs.")
    ] = "",
    seeds: Annotated[str, typer.Option(help="One trial each, with commas.")] = "0",
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any field of TrainConfig.")
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="Of a worker that share each batch, each on a GPU of its own.")
    ] = 1,
    download_weights: Annotated[
        bool, typer.Option("--download-weights", help="Let a worker fetch trained weights that none has.")
    ] = False,
    waiting: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Launch a training on the campaign's labels as they are now."""
    from clarinet.commands.options import named_value
    from clarinet_client.shapes.runs import RunChoices

    choices: RunChoices = {
        "method": method,
        "setting": setting,
        "seeds": _seeds(seeds),
        "config": dict(named_value(text) for text in values or []),
    }
    if preset:
        choices["preset"] = preset
    if processes > 1:  # which a server of an earlier version does not know
        choices["processes"] = processes
    if download_weights:
        choices["download_weights"] = True
    with connect(base_url, token) as client:
        source, aim = client.campaigns.find(campaign), client.datasets.find(target)
        row = client.runs.launch(source["id"], aim["id"], **choices)
        if waiting:
            row = wait_for_run(client, row["id"])
    _show_run(row, as_json=as_json)


def _seeds(text: str) -> list[int]:
    from app.errors import Unprocessable

    try:
        return [int(seed) for seed in text.split(",")]
    except ValueError:  # also of more digits than Python reads
        raise Unprocessable(
            f"--seeds {text:.80}: expected whole numbers with commas, for example 0,1,2."
        ) from None


@runs.command("list")
def list_runs(
    campaign: Annotated[str, typer.Option(help="Only those of a campaign, by its name or id.")] = "",
    archived: Archived = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Every training, newest first."""
    with connect(base_url, token) as client:
        campaign_id = client.campaigns.find(campaign)["id"] if campaign else None
        for row in client.runs.all(campaign_id=campaign_id, archived=archived):
            found = row["mean_accuracy"]
            figure = "-" if found is None else f"{100 * found:.2f} %"
            words = f"{row['number']:>5}  {row['state']:<9} {figure:>8}  {row['method']} {row['setting']}"
            show(row, f"{words}  {row['note']}".rstrip(), as_json=as_json)


@runs.command("cancel")
def cancel_run(
    run: RunName,
    waiting: Annotated[bool, typer.Option("--wait", help="Wait until nothing of it trains.")] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """End a training: what waits ends at once, what trains in seconds."""
    with connect(base_url, token) as client:
        row = client.runs.cancel(client.runs.find(run)["id"])
        if waiting:
            row = wait_for_run(client, row["id"])
    show(row, f"Run {row['number']}: {row['state']}, asked to end.", as_json=as_json)


@runs.command("metrics")
def show_metrics(
    run: RunName,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """What its trials reported after each epoch: CSV, or with --json a line of JSON for each."""
    with connect(base_url, token) as client:
        found = client.runs.metrics(client.runs.find(run)["id"])
    if as_json:
        for metric in found:
            show(metric, "", as_json=True)
        return
    terms = sorted({name for metric in found for name in metric["losses"]})
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["seed", "epoch", "step", "seconds", "target_accuracy", *terms])
    for metric in found:
        known = metric["seed"], metric["epoch"], metric["step"], round(metric["seconds"], 3)
        losses = (metric["losses"].get(name) for name in terms)
        table.writerow([*known, metric["target_accuracy"], *losses])


@runs.command("mlflow")
def write_mlflow(
    run: RunName,
    to: Annotated[
        Path, typer.Option(help="MLflow's folder of runs; what else is in it stays.", file_okay=False)
    ] = Path("mlruns"),
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Write a training as runs of MLflow, one for each seed, with parameters, figures of epochs and tags."""
    from app.errors import AppError
    from worker.cli.mlflow_folder import write_run

    with connect(base_url, token) as client:
        row = client.runs.find(run)
        metrics = client.runs.metrics(row["id"])
        campaign = client.campaigns.get(row["campaign_id"])["name"]
        address = f"{client.base_url}/runs/{row['id']}"
    try:
        written = write_run(to, row, metrics, campaign=campaign, address=address)
    except OSError as error:
        raise AppError(f"{to} cannot be written: {error.strerror}.") from error
    show(
        {"path": str(to), "runs": written},
        f"{to}: run {row['number']}, {len(written)} of MLflow",
        as_json=as_json,
    )


@runs.command("show")
def show_run(
    run: RunName,
    waiting: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """A training's state and accuracy."""
    with connect(base_url, token) as client:
        row = client.runs.find(run)
        if waiting:
            row = wait_for_run(client, row["id"])
    _show_run(row, as_json=as_json)
