"""`clarinet model`: what trainings on a server have published."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.remote import HERE, AsJson, BaseUrl, Token, connect, show

if TYPE_CHECKING:
    from clarinet_client import Client
    from clarinet_client.shapes.runs import Model

models = typer.Typer(no_args_is_help=True, help="Trained networks.")
ModelName = Annotated[
    str,
    typer.Argument(help="Id of the model, or number of its run; with a seed as in 7:1 where it has several."),
]


def find_model(client: "Client", wanted: str) -> "Model":
    """A model by its id, or by its run's number and, where that has several, its seed.

    Raises:
        AppError: several models are meant, or none.
    """
    from uuid import UUID

    from app.errors import AppError

    number, _, seed = wanted.partition(":")
    if not number.isdecimal():
        try:
            return client.models.get(str(UUID(wanted)))
        except ValueError:
            raise AppError(f"{wanted!r} is neither the id of a model nor the number of a run.") from None
    found = [
        model
        for model in client.models.all(run_id=client.runs.find(number)["id"])
        if not seed or str(model["card"]["seed"]) == seed
    ]
    if not found:
        raise AppError(
            f"Run {number} has published no such model. `clarinet model list` shows what there is."
        )
    if len(found) > 1:
        seeds = sorted(model["card"]["seed"] for model in found)
        raise AppError(
            f"Run {number} has {len(found)} models, one for each seed. Say which: "
            + ", ".join(f"{number}:{one}" for one in seeds)
            + "."
        )
    return found[0]


@models.command("list")
def list_models(
    run: Annotated[str, typer.Option(help="Only those of a run, by its number or id.")] = "",
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Every model, newest first."""
    with connect(base_url, token) as client:
        run_id = client.runs.find(run)["id"] if run else None
        for row in client.models.all(run_id=run_id):
            name = f"run {row['card']['run']}, seed {row['card']['seed']}"
            megabytes = row["size_bytes"] / 1e6
            show(
                row, f"{row['id']}  {name:<18} {megabytes:>7.1f} MB  {row['created_at']:.19}", as_json=as_json
            )


@models.command("show")
def show_model(
    model: ModelName, base_url: BaseUrl = HERE, token: Token = "", as_json: AsJson = False
) -> None:
    """A model's card."""
    import json

    with connect(base_url, token) as client:
        row = find_model(client, model)
    show(row, json.dumps(row["card"], indent=2, ensure_ascii=False), as_json=as_json)


@models.command("get")
def get_model(
    model: ModelName,
    to: Annotated[
        Path, typer.Option("--output", "-o", help="File or folder; a folder takes the server's name for it.")
    ] = Path(),
    onnx: Annotated[
        bool, typer.Option("--onnx", help="As ONNX alone, instead of a zip with the weights.")
    ] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Download weights, cards and ONNX as a zip."""
    with connect(base_url, token) as client:
        row = find_model(client, model)
        path = client.models.save_onnx(row["id"], to) if onnx else client.models.save(row["id"], to)
    show({"id": row["id"], "digest": row["digest"], "path": str(path)}, f"Saved as {path}.", as_json=as_json)
