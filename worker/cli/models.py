"""`clarinet model`: what trainings on a server have published."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.remote import HERE, Archived, AsJson, BaseUrl, Token, connect, show, watching

if TYPE_CHECKING:
    from clarinet_client import Client
    from clarinet_client.shapes.runs import Model

models = typer.Typer(no_args_is_help=True, help="Trained networks.")
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A name, whose newest version is meant; NAME@ALIAS; an id; or a run's number, with a seed as "
        "in 7:1 where it has several.",
    ),
]


def find_model(client: "Client", wanted: str) -> "Model":
    """A model by its id, its name and an alias, or its run's number and, where that has several, its seed.

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
            return _by_name(client, wanted)
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


def _by_name(client: "Client", wanted: str) -> "Model":
    """The version for which an alias stands, of NAME@ALIAS; the newest of a name."""
    from app.errors import AppError

    name, _, alias = wanted.rpartition("@")
    if name and (found := [*client.models.all(name=name, alias=alias)]):
        return found[0]
    versions = [*client.models.all(name=wanted), *client.models.all(name=wanted, archived=True)]
    if not versions:
        raise AppError(
            f"{wanted!r} is no model: give a name, a name and an alias as in Shop@production, an id, or the "
            "number of a run. `clarinet model list` shows what there is."
        )
    return max(versions, key=lambda row: (row["archived_at"] is None, row["version"]))


@models.command("list")
def list_models(
    run: Annotated[str, typer.Option(help="Only those of a run, by its number or id.")] = "",
    name: Annotated[str, typer.Option(help="Only versions of this name.")] = "",
    archived: Archived = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Every model, newest first."""
    with connect(base_url, token) as client:
        run_id = client.runs.find(run)["id"] if run else None
        for row in client.models.all(run_id=run_id, name=name or None, archived=archived):
            trained = f"run {row['card']['run']}, seed {row['card']['seed']}"
            known = f"{row['name']}, version {row['version']}"
            known += f" ({', '.join(row['aliases'])})" if row["aliases"] else ""
            megabytes = row["size_bytes"] / 1e6
            words = f"{row['id']}  {trained:<18} {megabytes:>7.1f} MB  {row['created_at']:.19}  {known}"
            show(row, words, as_json=as_json)


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


@models.command("predict")
def predict(
    model: ModelName,
    images: Annotated[
        Path,
        typer.Option(
            metavar="DIR|FILE", exists=True, help="A picture, or a folder: every image file below it."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="CSV", dir_okay=False, help="File to write.")],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out pictures that cannot be read, instead of refusing.")
    ] = False,
    base_url: BaseUrl = HERE,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """What a model of the server says of pictures here: the table of `clarinet predict`, without torch.

    An alias is looked up once: all of a table is by one version.
    """
    from clarinet.recipes.counting import many
    from worker.cli.predicting import write_predictions

    with connect(base_url, token) as client:
        row = find_model(client, model)
        with watching("Predicting", lambda done: done) as tell:
            written = write_predictions(client, row, images, out, skip_bad=skip_bad, on_look=tell)
    for why in written.left_out:
        typer.echo(f"Left out: {why}", err=True)
    told = f"{many(written.images, 'image')}, {many(written.classes, 'class', 'classes')}"
    show(
        {"id": row["id"], "name": row["name"], "version": row["version"], "digest": row["digest"]}
        | {"images": written.images, "left_out": list(written.left_out), "path": str(out)},
        f"{out}: {told}, by {row['name']}, version {row['version']}",
        as_json=as_json,
    )
