"""JSON routes that predict: some pictures at once, or a whole dataset in the background."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.responses import StreamingResponse

from app.access import admin_only, only_answers
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep, StorageDep
from app.heads import wants_body
from app.idempotency import OnceDep
from app.registry import predictions, service
from app.registry.asking import Resolve, ask, by_alias, by_id
from app.registry.pictures_sent import OPENAPI, PicturesDep, is_bare
from app.registry.predict_errors import PictureRefused
from app.registry.predict_schemas import PicturesRead, PredictionCreate, PredictionList, PredictionRead
from app.registry.predicting import Predicted
from app.registry.prediction_models import Prediction
from app.registry.predictor import Sent, Served
from app.registry.schemas import Alias
from app.schemas import Searched

PREDICT = "/models/{model_id}/predict"

router = APIRouter(tags=["registry"])
TABLE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/csv": {"schema": {"type": "string", "format": "binary"}}},
        "description": "file, position, class, the probability of each class, and why it was refused",
    }
}


@router.post(PREDICT, openapi_extra=OPENAPI)
@admin_only
@only_answers
async def predict_pictures(
    request: Request, model_id: UUID, pictures: PicturesDep, user: CurrentUser
) -> PicturesRead:
    """What the model says of pictures, as `clarinet predict` says it; nothing is stored.

    Send one picture as the body (`?filename=...` names it), or several as the files of a form. Of several
    each is answered or refused by itself. A single one that is refused is a problem.
    """
    return await _said(request, by_id(model_id, user), pictures)


@router.post("/model-names/{name:path}/aliases/{alias}/predict", openapi_extra=OPENAPI)
@admin_only
@only_answers
async def predict_pictures_by_alias(
    request: Request, name: Searched, alias: Alias, pictures: PicturesDep, user: CurrentUser
) -> PicturesRead:
    """The same by the model for which an alias of a name stands when the request comes.

    The answer says which version that is. It is of one model, wherever the alias moves meanwhile.
    """
    return await _said(request, by_alias(name, alias, user), pictures)


async def _said(request: Request, resolve: Resolve, pictures: list[Sent]) -> PicturesRead:
    return answered(request, *await ask(request, resolve, pictures))


def answered(request: Request, served: Served, predicted: list[Predicted]) -> PicturesRead:
    """The answer, in which a picture may be refused; raises PictureRefused where it is the body itself."""
    if is_bare(request) and predicted[0].refused:
        raise PictureRefused(predicted[0].refused)
    return PicturesRead.of(served, predicted)


@router.post(
    "/models/{model_id}/predictions",
    response_model=PredictionRead,
    status_code=status.HTTP_202_ACCEPTED,
)
@admin_only
def create_prediction(
    *,
    request: Request,
    response: Response,
    model_id: UUID,
    given: PredictionCreate,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
) -> Prediction:
    """Predict each image that a dataset has now, in the background: look at the state under the Location."""
    model = service.get_model(session, model_id, by=user)
    now = utc_now()
    if made := once.begin(session, now=now):
        prediction = predictions.get_prediction(session, model, UUID(made), by=user)
    else:
        prediction = predictions.predict_dataset(session, storage, model, given.dataset_id, by=user, now=now)
        once.end(session, prediction.id)
    path = {"model_id": model.id, "prediction_id": prediction.id}
    response.headers["Location"] = request.app.url_path_for("read_prediction", **path)
    return prediction


@router.get("/models/{model_id}/predictions")
@admin_only
def read_predictions(
    *,
    model_id: UUID,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    session: SessionDep,
    user: CurrentUser,
) -> PredictionList:
    """The datasets that a model predicted or is to predict, newest first."""
    model = service.get_model(session, model_id, by=user)
    found, following = predictions.list_predictions(session, model, by=user, after=after, limit=limit)
    return PredictionList(items=[PredictionRead.model_validate(item) for item in found], next=following)


@router.get("/models/{model_id}/predictions/{prediction_id}", response_model=PredictionRead)
@admin_only
def read_prediction(
    model_id: UUID, prediction_id: UUID, session: SessionDep, user: CurrentUser
) -> Prediction:
    """Where the prediction of a dataset stands."""
    model = service.get_model(session, model_id, by=user)
    return predictions.get_prediction(session, model, prediction_id, by=user)


@router.get(
    "/models/{model_id}/predictions/{prediction_id}/file",
    response_class=StreamingResponse,
    responses=TABLE,
)
@admin_only
def download_prediction(
    *,
    request: Request,
    model_id: UUID,
    prediction_id: UUID,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> StreamingResponse:
    """What the model says of each image of the dataset, as CSV."""
    model = service.get_model(session, model_id, by=user)
    prediction = predictions.get_prediction(session, model, prediction_id, by=user)
    pieces = predictions.file_pieces(storage, prediction)
    headers = {
        "Content-Disposition": f'attachment; filename="predictions-{prediction.id}.csv"',
        "Content-Length": str(prediction.size_bytes),
        "Cache-Control": "no-store",
    }
    return StreamingResponse(
        pieces if wants_body(request) else iter(()), media_type="text/csv; charset=utf-8", headers=headers
    )


@router.delete("/models/{model_id}/predictions/{prediction_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_prediction(
    *,
    model_id: UUID,
    prediction_id: UUID,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> None:
    """Stop the prediction of a dataset, or delete its file."""
    model = service.get_model(session, model_id, by=user)
    prediction = predictions.get_prediction(session, model, prediction_id, by=user)
    predictions.delete_prediction(session, storage, model, prediction, by=user)
