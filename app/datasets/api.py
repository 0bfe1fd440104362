"""JSON routes: datasets, their examples and the images."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response, status

from app.access import admin_only, signed_in
from app.clock import utc_now
from app.datasets import importing, schemas, service
from app.datasets.models import Dataset, Example, Split
from app.datasets.receiving import BINARY, OPENAPI, ReceivedDep, opened
from app.deps import CurrentUser, SessionDep, SettingsDep, StorageDep
from app.idempotency import OnceDep

router = APIRouter(tags=["datasets"])

# What both databases can compare with a column; anything larger would be their error, not a 404.
ExampleId = Annotated[int, Path(ge=1, le=2**63 - 1)]
Position = Annotated[int, Query(ge=-1, le=2**31 - 1)]
TrueClass = Annotated[int, Query(ge=0, le=2**31 - 1)]

# The bytes of an example never change: a new import is a new dataset. Private, because one must be signed in.
IMMUTABLE = "private, max-age=31536000, immutable"


@router.post(
    "/datasets",
    response_model=schemas.DatasetRead,
    status_code=status.HTTP_202_ACCEPTED,
    openapi_extra=OPENAPI,
)
@admin_only
def create_dataset(
    *,
    request: Request,
    response: Response,
    received: ReceivedDep,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
    settings: SettingsDep,
) -> Dataset:
    """Send a zip of images, a zip with a CSV, or an npz; or name such a file on the server.

    The answer comes before the images are taken in: look at the state under the Location.
    """
    now = utc_now()
    if made := once.begin(session, now=now):
        dataset = service.get_dataset(session, UUID(made), by=user)
        response.headers["Location"] = request.app.url_path_for("read_dataset", dataset_id=dataset.id)
        return dataset
    details = received.details
    with opened(details, received.upload, settings.dataset_roots) as upload:
        dataset = service.create_dataset(
            session,
            storage,
            upload,
            name=details.name,
            description=details.description,
            by=user,
            now=now,
        )
    once.end(session, dataset.id)
    response.headers["Location"] = request.app.url_path_for("read_dataset", dataset_id=dataset.id)
    return dataset


@router.post(
    "/datasets/{dataset_id}/import",
    response_model=schemas.DatasetRead,
    status_code=status.HTTP_202_ACCEPTED,
)
@admin_only
def import_dataset_again(
    dataset_id: UUID, given: schemas.ImportAgain, user: CurrentUser, session: SessionDep
) -> Dataset:
    """Import once more what an import has refused, with the choice that it lacked."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    importing.import_again(session, dataset, skip_bad=given.skip_bad, encoding=given.encoding, by=user)
    return dataset


@router.get("/datasets")
@admin_only
def read_datasets(
    user: CurrentUser,
    session: SessionDep,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> schemas.DatasetPage:
    """Datasets, newest first."""
    found = service.list_datasets(session, by=user, after=after, limit=limit + 1)
    return schemas.DatasetPage(
        items=[schemas.DatasetRead.model_validate(dataset) for dataset in found[:limit]],
        next=found[limit - 1].id if len(found) > limit else None,
    )


@router.get("/datasets/{dataset_id}", response_model=schemas.DatasetRead)
@admin_only
def read_dataset(dataset_id: UUID, user: CurrentUser, session: SessionDep) -> Dataset:
    """One dataset and where its import stands."""
    return service.get_dataset(session, dataset_id, by=user)


@router.delete("/datasets/{dataset_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_dataset(dataset_id: UUID, user: CurrentUser, session: SessionDep, storage: StorageDep) -> None:
    """Delete a dataset that no campaign and no run needs, with its images."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    service.delete_dataset(session, storage, dataset, by=user)


@router.get("/datasets/{dataset_id}/examples")
@admin_only
def read_examples(
    *,
    request: Request,
    dataset_id: UUID,
    user: CurrentUser,
    session: SessionDep,
    after: Position = -1,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    split: Split | None = None,
    true_class: TrueClass | None = None,
) -> schemas.ExamplePage:
    """The examples of a dataset in position order, train split first."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    query = service.examples_of(dataset.id, after=after, limit=limit + 1, split=split, true_class=true_class)
    found = session.scalars(query).all()
    return schemas.ExamplePage(
        items=[_read(request, example) for example in found[:limit]],
        next=found[limit - 1].position if len(found) > limit else None,
    )


def _read(request: Request, example: Example) -> schemas.ExampleRead:
    path = {"dataset_id": example.dataset_id, "example_id": example.id}
    return schemas.ExampleRead(
        id=example.id,
        position=example.position,
        split=example.split,
        true_class=example.true_class,
        filename=example.filename,
        digest=example.digest,
        media_type=example.media_type,
        width=example.width,
        height=example.height,
        image_url=request.app.url_path_for("example_image", **path),
    )


@router.get(
    "/datasets/{dataset_id}/examples/{example_id}/image",
    name="example_image",
    response_class=Response,
    responses={
        200: {
            "description": "The bytes",
            "content": {"image/png": {"schema": BINARY}, "image/jpeg": {"schema": BINARY}},
        },
        304: {"description": "Not Modified"},
    },
)
@signed_in
def example_image(
    request: Request, dataset_id: UUID, example_id: ExampleId, session: SessionDep, storage: StorageDep
) -> Response:
    """The picture of an example."""
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    headers = {"Cache-Control": IMMUTABLE}
    if known != {""}:
        etag = f'"{service.example_digest(session, dataset_id, example_id)}"'
        if etag in known or "*" in known:
            return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers | {"ETag": etag})
    image = service.example_bytes(session, storage, dataset_id, example_id)
    headers["ETag"] = f'"{image.digest}"'
    return Response(image.data, media_type=image.media_type, headers=headers)
