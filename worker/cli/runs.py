"""`clarinet run`: launching trainings on a server and reading their accuracy."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from clarinet.recipes.scoring import ScoredOn
from clarinet.recipes.source_accuracy import SourceEstimate, in_words
from worker.cli.remote import HERE, AsJson, BaseUrl, Campaign, Token, connect, find, show, wait

if TYPE_CHECKING:
    from worker.client import Client

runs = typer.Typer(no_args_is_help=True, help="Trainings.")


def wait_for_run(client: "Client", run_id: str) -> dict[str, Any]:
    """Look at a run until it has ended."""
    return wait(
        client,
        f"/runs/{run_id}",
        "Training",
        until=lambda row: row["state"] not in {"queued", "running"},
        done=lambda row: (row["epoch"], row["epochs"] or None),
    )


def told(row: dict[str, Any]) -> str:
    """A run, as the API reads it, in words: what was measured, and what is estimated as an estimate."""
    words = f"Run {row['number']}: {row['state']}"
    if row["mean_accuracy"] is not None:
        scored = ScoredOn(split=row["scored_split"], images=row["scored_on"], of=row["scored_of"])
        ends = f"{100 * row['interval_low']:.2f} to {100 * row['interval_high']:.2f} %"
        words += f", {100 * row['mean_accuracy']:.2f} % ({ends}) on the target, {scored.in_words()}"
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


def _show_run(row: dict[str, Any], *, as_json: bool) -> None:
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
    waiting: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Launch a training on the campaign's labels as they are now."""
    from clarinet.commands.options import named_value

    wanted = {"seeds": _seeds(seeds), "config": dict(named_value(text) for text in values or [])}
    with connect(base_url, token) as client:
        body = {
            "method": method,
            "setting": setting,
            "target_dataset_id": find(client, "datasets", target)["id"],
            **wanted,
        }
        if preset:
            body["preset"] = preset
        row = client.post(f"/campaigns/{find(client, 'campaigns', campaign)['id']}/runs", body)
        if waiting:
            row = wait_for_run(client, row["id"])
    _show_run(row, as_json=as_json)


def _seeds(text: str) -> list[int]:
    from app.errors import AppError

    try:
        return [int(seed) for seed in text.split(",")]
    except ValueError:  # also of more digits than Python reads
        raise AppError(
            f"--seeds {text:.80}: expected whole numbers with commas, for example 0,1,2."
        ) from None


@runs.command("show")
def show_run(
    run: Annotated[str, typer.Argument(help="Number or id of the run.")],
    waiting: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """A training's state and accuracy."""
    with connect(base_url, token) as client:
        row = find(client, "runs", run)
        if waiting:
            row = wait_for_run(client, row["id"])
    _show_run(row, as_json=as_json)
