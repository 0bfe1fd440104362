"""What routes that predict pictures do: find the model once, and wait without holding anything."""

import asyncio
from collections.abc import Callable
from uuid import UUID

from anyio import to_thread
from fastapi import Request
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.registry import aliases, service
from app.registry.models import Model
from app.registry.predicting import Predicted, predicted, served
from app.registry.predictor import Sent, Served

Resolve = Callable[[Session], Model]


def by_id(model_id: UUID, user: User) -> Resolve:
    """The model of an id."""
    return lambda session: service.get_model(session, model_id, by=user)


def by_alias(name: str, alias: str, user: User) -> Resolve:
    """The model for which an alias of a name stands at this moment."""
    return lambda session: aliases.model_under(session, name, alias, by=user)


async def ask(
    request: Request, resolve: Resolve, pictures: list[Sent], *, seen: bool = False
) -> tuple[Served, list[Predicted]]:
    """Let one model predict all pictures of a request; gives it, and what it says of each.

    `resolve` finds the model, and is asked once: a name that comes to mean another model meanwhile changes
    nothing. No transaction and no thread is held while the pictures wait.

    Raises:
        ModelNotFound, AliasNotFound, ModelWithoutOnnx, ModelCannotPredict, StoredFileMissing,
            StoredFileDamaged: there is no model that can predict.
        PredictorBusy: too many wait.
    """
    state = request.app.state

    def find() -> Served:
        with state.database.read.begin() as session:
            return served(state.storage, resolve(session))

    found = await to_thread.run_sync(find)
    return found, await say(request, found, pictures, seen=seen)


async def say(
    request: Request, served: Served, pictures: list[Sent], *, seen: bool = False
) -> list[Predicted]:
    """What a model that was found says of pictures; raises as `ask`."""
    said = await asyncio.wrap_future(request.app.state.predictor.ask(served, pictures, seen=seen))
    return predicted(served, [picture.name for picture in pictures], said)
