"""Files of labels, taken in as a worker does; most of them are read in this process, which is quicker."""

import io
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Connection, select
from sqlalchemy.orm import Session, sessionmaker

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.db import Database
from app.jobs import Job
from app.labels import service as labelling
from app.labels.errors import BadImport
from app.labels.importing.__main__ import take_in
from app.labels.importing.accepting import NONE_CHOSEN, Choices
from app.labels.models import ImportState, LabelImport
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_campaign
from worker.apart import ImportFailed
from worker.context import Context
from worker.label_intake import import_labels


def read_here(
    _module: str, request: Mapping[str, Any], *, name: str, beat: Callable[[Mapping[str, Any]], None]
) -> dict[str, Any]:
    """As `read_apart` does, without a process."""
    assert name
    beat({})
    try:
        result: dict[str, Any] = json.loads(
            json.dumps(take_in(FolderStorage(Path(request["root"])), request))
        )
    except BadImport as refusal:
        raise ImportFailed(refusal.detail) from refusal
    return result


def make_named_campaign(session: Session, *, ending: str = ".png", **details: Any) -> Campaign:
    """A campaign whose pictures are called by their positions, such as 0.png."""
    campaign = make_campaign(session, **details)
    for example in session.scalars(select(Example).where(Example.dataset_id == campaign.dataset_id)):
        example.filename = f"{example.position}{ending}"
    session.commit()
    return campaign


def bring(
    session: Session,
    campaign: Campaign,
    table: str | bytes,
    by: User,
    *,
    choices: Choices = NONE_CHOSEN,
    name: str = "a/b\\old.csv",
) -> LabelImport:
    """Import a file; raises BadImport with the sentence of one that fails."""
    data = table.encode() if isinstance(table, str) else table
    with tempfile.TemporaryDirectory() as folder:
        storage = FolderStorage(Path(folder))
        made = labelling.create_import(
            session, storage, campaign, io.BytesIO(data), filename=name, choices=choices, by=by, now=NOW
        )
        session.commit()
        connection = cast("Connection", session.get_bind())
        maker = sessionmaker(connection, expire_on_commit=False, join_transaction_mode="create_savepoint")
        database = Database(read=maker, write=maker, engine=connection.engine)
        settings = Settings(environment="test", _env_file=None)
        jobs: list[Job] = []
        context = Context(settings=settings, database=database, storage=storage, publish=jobs.append)
        import_labels(context, made.id, read=read_here)
        assert not [path for path in storage.root.rglob("*") if path.is_file()]
    session.refresh(made)
    if made.state is ImportState.FAILED:
        raise BadImport(made.failure or "")
    assert made.state is ImportState.READY
    return made


def context_of(client: TestClient) -> Context:
    """What a worker beside the application works with."""
    state = cast("FastAPI", client.app).state
    return Context(
        settings=state.settings, database=state.database, storage=state.storage, publish=state.publish
    )


def upload(
    client: TestClient, campaign: Campaign, data: bytes, name: str = "old.csv", **choices: str
) -> httpx2.Response:
    """Send a file over the API; nobody has read it yet."""
    url = f"/api/v1/campaigns/{campaign.id}/imports"
    return client.post(url, files={"file": (name, data)}, data=choices)


def send(
    client: TestClient, campaign: Campaign, data: bytes, name: str = "old.csv", **choices: str
) -> dict[str, Any]:
    """Send a file over the API and let a worker take it in; gives what the API says of it, or a problem."""
    response = upload(client, campaign, data, name, **choices)
    if response.status_code != 202:
        problem: dict[str, Any] = response.json()
        return problem
    import_labels(context_of(client), UUID(response.json()["id"]), read=read_here)
    found: dict[str, Any] = client.get(response.headers["location"]).json()
    return found | {"status": 202}
