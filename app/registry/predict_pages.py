"""HTML routes that predict: pictures that are dropped on a model's page, and whole datasets."""

import base64
from uuid import UUID

from fastapi import APIRouter, Request, status
from fastapi.responses import Response
from sqlalchemy.orm import Session

from app.access import admin_only, only_answers
from app.accounts.models import User
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets.errors import DatasetNotFound, DatasetNotReady
from app.datasets.models import DatasetState
from app.deps import CurrentUser, FormDep, SessionDep, StorageDep
from app.errors import AppError, Conflict, TooMany, Unprocessable
from app.pages import read_form, render, see_other
from app.registry import predictions, service
from app.registry.asking import ask, by_id
from app.registry.errors import ModelWithoutOnnx
from app.registry.models import Model
from app.registry.pictures_sent import PicturesDep
from app.registry.predict_schemas import PredictionCreate
from app.registry.predicting import Predicted

router = APIRouter(include_in_schema=False)

MOST_BARS = 5  # classes shown of a picture
ROWS = 50
MOST_DATASETS = 200


@router.post("/models/{model_id}/predict")
@admin_only
@only_answers
async def predict_pictures_from_form(
    request: Request, model_id: UUID, pictures: PicturesDep, user: CurrentUser
) -> Response:
    """What the model says of the pictures of a form."""
    resolve = by_id(model_id, user)
    try:
        _, predicted = await ask(request, resolve, pictures, seen=True)
    except (Conflict, TooMany, Unprocessable, ModelWithoutOnnx) as error:
        return _predicted(request, model_id, [], error)
    return _predicted(request, model_id, predicted)


def _predicted(
    request: Request, model_id: UUID, predicted: list[Predicted], error: AppError | None = None
) -> Response:
    return render(
        request,
        "registry/predicted.html",
        fragment="registry/_predicted.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if error else status.HTTP_200_OK,
        model_id=model_id,
        pictures=[(one, one.likeliest(MOST_BARS), _as_address(one.said.seen)) for one in predicted],
        error=error.detail if error else "",
    )


def _as_address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}" if png else ""


@router.get("/models/{model_id}/predictions")
@admin_only
def show_predictions(
    request: Request, model_id: UUID, session: SessionDep, user: CurrentUser, after: UUID | None = None
) -> Response:
    """The datasets that a model predicted or is to predict, and the form for another."""
    return _page(request, session, service.get_model(session, model_id, by=user), user, after=after)


@router.post("/models/{model_id}/predictions")
@admin_only
def create_prediction_from_form(
    *,
    request: Request,
    model_id: UUID,
    form: FormDep,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """Predict a dataset in the background, or say why not."""
    model = service.get_model(session, model_id, by=user)
    given, errors = read_form(form, PredictionCreate)
    if given is None:
        return _page(request, session, model, user, errors=errors)
    try:
        predictions.predict_dataset(session, storage, model, given.dataset_id, by=user, now=utc_now())
    except (DatasetNotFound, DatasetNotReady) as error:
        return _page(request, session, model, user, errors={"dataset_id": error.detail})
    return see_other(request, "show_predictions", model_id=model_id)


@router.post("/models/{model_id}/predictions/{prediction_id}/delete")
@admin_only
def delete_prediction_from_page(
    *,
    request: Request,
    model_id: UUID,
    prediction_id: UUID,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """Stop a prediction, or delete its file."""
    model = service.get_model(session, model_id, by=user)
    prediction = predictions.get_prediction(session, model, prediction_id, by=user)
    predictions.delete_prediction(session, storage, model, prediction, by=user)
    return see_other(request, "show_predictions", model_id=model_id)


def _page(
    request: Request,
    session: Session,
    model: Model,
    user: User,
    *,
    after: UUID | None = None,
    errors: dict[str, str] | None = None,
) -> Response:
    found, following = predictions.list_predictions(session, model, by=user, after=after, limit=ROWS)
    ready = [
        (item.id, item.name)
        for item in datasets.list_datasets(session, by=user, limit=MOST_DATASETS)
        if item.state is DatasetState.READY
    ]
    return render(
        request,
        "registry/predictions.html",
        fragment="registry/_predictions.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        model=model,
        predictions=found,
        next_after=following,
        after=after,
        datasets=ready,
        errors=errors or {},
    )
