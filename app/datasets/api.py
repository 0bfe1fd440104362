"""JSON routes: datasets, their examples and the images."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response, status

from app.access import admin_only
from app.clock import utc_now
from app.datasets import schemas, service
from app.datasets.models import Dataset, Example, Split
from app.datasets.receiving import OPENAPI, ReceivedDep, opened
from app.deps import CurrentUser, SessionDep, SettingsDep, StorageDep
from app.idempotency import OnceDep

router = APIRouter(tags=["datasets"])

Position = Annotated[int, Query(ge=-1, le=2**31 - 1)]
TrueClass = Annotated[int, Query(ge=0, le=2**31 - 1)]


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

    A bare file is taken, too (`application/octet-stream`), with the other fields in the address:
    `?name=...&filename=...`.

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
    dataset_id: UUID, given: schemas.ImportAgain, once: OnceDep, user: CurrentUser, session: SessionDep
) -> Dataset:
    """Import once more what an import has refused, with the choice that it lacked."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    if not once.begin(session, now=utc_now()):
        service.import_again(session, dataset, skip_bad=given.skip_bad, encoding=given.encoding, by=user)
        once.end(session, dataset.id)
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
