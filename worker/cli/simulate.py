"""`clarinet simulate` and `clarinet audit`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clarinet.recipes.counting import many
from worker.cli.remote import HERE, AsJson, BaseUrl, Campaign, Token, connect, show

if TYPE_CHECKING:
    from clarinet_client.shapes.campaigns import Audit, DrawingAudit
    from worker.demo.annotators import Tally

ALARMED = 3  # exit status of an audit that found something


def simulate(
    campaign: Campaign,
    annotators: Annotated[int, typer.Option(min=1, max=64, help="How many accounts answer.")] = 4,
    error: Annotated[
        float, typer.Option(min=0, max=1, help="Share of images seen as another class, uniformly.")
    ] = 0.0,
    confusion: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Instead: K x K weights as CSV, true class by row."),
    ] = None,
    pace: Annotated[
        float | None, typer.Option(min=0.01, help="Answers per second of each; else as fast as it goes.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=100, help="Questions leased and answered at once.")] = 100,
    seed: Annotated[int, typer.Option(help="Same seed, same errors.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many answers.")] = None,
    leave: Annotated[
        int, typer.Option(min=0, help="Stop while so many questions are left that nobody has answered.")
    ] = 0,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Let programs answer a campaign's questions in people's place; pages show that they are simulated."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from worker.demo.annotators import Plan, simulate, to_do
    from worker.demo.perception import read_confusion, read_truth
    from worker.local.up import asked_to_end

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total}"),
        TextColumn("{task.fields[rate]} answers/s"),
        TimeElapsedColumn(),
    )
    with connect(base_url, token) as client, asked_to_end() as stop:
        found = client.campaigns.find(campaign)
        names = [one["name"] for one in found["classes"]]
        plan = Plan(
            annotators=annotators,
            error=error,
            confusion=read_confusion(confusion, names) if confusion else None,
            pace=pace,
            batch=batch,
            seed=seed,
            leave=leave,
            limit=limit,
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("Reading the images' true classes", total=None, rate="")
            truth = read_truth(client, found)
            total = max(0, to_do(client.campaigns.progress(found["id"])) - leave)
            bar.update(task, description="Answering", total=total)

            def on_progress(tally: "Tally") -> None:
                rate = round(tally.answers / tally.seconds) if tally.seconds else 0
                bar.update(task, completed=max(0, total - tally.waiting + leave), rate=rate)

            tally = simulate(client, found, plan, stop=stop, truth=truth, on_progress=on_progress)
    figures = tally.summary()
    words = (
        f"{many(figures['answers'], 'answer')} in {figures['seconds']} s "
        f"({figures['answers_per_s']} answers/s): {figures['yes']} yes, {figures['no']} no, "
        f"{figures['wrong']} of them wrong. "
        f"{many(figures['waiting'], 'question')} still to answer."
    )
    show(figures, words, as_json=as_json)


def audit(campaign: Campaign, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False) -> None:
    """Have the server recompute a campaign's draws, and print the tests; status 3 if something is wrong."""
    with connect(base_url, token) as client:
        found = client.campaigns.audit(client.campaigns.find(campaign)["id"], recompute=True)
    show(found, _report(found), as_json=as_json)
    if found["passed"] is False:
        raise typer.Exit(ALARMED)


def _over(drawing: "DrawingAudit") -> str:
    version = drawing["dataset_version"]
    return (
        ", over a version told once the campaign is closed"
        if version is None
        else f", over version {version}"
    )


def _law(drawing: "DrawingAudit") -> str:
    law = drawing["law"]
    if law is None or law["by_belief_of"] is None:
        return ""
    return f", by the belief of {law['by_belief_of']} with a floor of {law['floor_percent']} %"


def _corrected(rounds: int) -> str:
    """Why the p-value is not that of the chi-square, where several were tested."""
    return f" (the most uneven of {rounds}, so p is {rounds} times its own, 1 at most)" if rounds > 1 else ""


def _report(found: "Audit") -> str:
    secret = "not yet: the seed is secret until the campaign is closed"
    said = {True: "yes", False: "NO", None: secret}
    if found["uniformity"] is None:
        return "The draws were not checked yet: a worker does it after the opening. Ask again soon."
    lines = [
        f"Images unchanged since the opening: {said[found['dataset_unchanged']]}",
        f"Every draw as the seed says: {said[found['draws_match']]}",
        f"Seed as committed to ({found['commitment'][:16]}...): {said[found['commitment_matches']]}",
        *(
            f"Drawing {item['number']}{_over(item)}{_law(item)}: "
            f"every draw as its seed says: {said[item['draws_match']]}; "
            f"seed as committed to ({item['commitment'][:16]}...): {said[item['commitment_matches']]}"
            for item in found["drawings"]
            if len(found["drawings"]) > 1
        ),
        f"Classes drawn uniformly: chi-square {found['uniformity']['statistic']:.1f}, "
        f"p = {found['uniformity']['p_value']:.3f}{_corrected(found['uniformity_of'])}",
        *(f"ALARM: {alarm}" for alarm in found["alarms"]),
        "Nothing is wrong." if found["passed"] else "Something is wrong.",
    ]
    return "\n".join(lines)
