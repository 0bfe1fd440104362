"""JSON routes: datasets, their examples and the images."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response, status

from app.access import admin_only
from app.clock import utc_now
from app.datasets import growing, importing, naming, schemas, service, versions
from app.datasets.models import Dataset, DatasetVersion, Example, Split
from app.datasets.receiving import ADDED, NAMED, DatasetDep, ImagesDep, openapi, opened
from app.deps import CurrentUser, SessionDep, SettingsDep, StorageDep
from app.idempotency import OnceDep

router = APIRouter(tags=["datasets"])

Position = Annotated[int, Query(ge=-1, le=2**31 - 1)]
TrueClass = Annotated[int, Query(ge=0, le=2**31 - 1)]


@router.post(
    "/datasets",
    response_model=schemas.DatasetRead,
    status_code=status.HTTP_202_ACCEPTED,
    openapi_extra=openapi(NAMED),
)
@admin_only
def create_dataset(
    *,
    request: Request,
    response: Response,
    received: DatasetDep,
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
        importing.import_again(session, dataset, skip_bad=given.skip_bad, encoding=given.encoding, by=user)
        once.end(session, dataset.id)
    return dataset


@router.get("/datasets")
@admin_only
def read_datasets(
    user: CurrentUser,
    session: SessionDep,
    archived: Annotated[bool, Query(description="those that are archived, in place of the others")] = False,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> schemas.DatasetPage:
    """Datasets, newest first."""
    found = service.list_datasets(session, by=user, archived=archived, after=after, limit=limit + 1)
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


@router.put("/datasets/{dataset_id}/archived", response_model=schemas.DatasetRead)
@admin_only
def archive_dataset(dataset_id: UUID, user: CurrentUser, session: SessionDep) -> Dataset:
    """Hide a dataset from lists. All else about it stays."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    service.archive_dataset(session, dataset, by=user, now=utc_now())
    return dataset


@router.delete("/datasets/{dataset_id}/archived", response_model=schemas.DatasetRead)
@admin_only
def restore_dataset(dataset_id: UUID, user: CurrentUser, session: SessionDep) -> Dataset:
    """Show an archived dataset in lists again."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    service.archive_dataset(session, dataset, by=user, now=None)
    return dataset


@router.post(
    "/datasets/{dataset_id}/images",
    response_model=schemas.VersionRead,
    status_code=status.HTTP_202_ACCEPTED,
    openapi_extra=openapi(ADDED),
)
@admin_only
def add_images(
    *,
    request: Request,
    response: Response,
    dataset_id: UUID,
    received: ImagesDep,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
    settings: SettingsDep,
) -> DatasetVersion:
    """Send further images for a dataset, in any shape in which a dataset can be sent.

    They join it together as a new version, behind those that are there; until then nothing changes. Campaigns
    ask about them once an admin lets them: see `further`.
    """
    now = utc_now()
    if made := once.begin(session, now=now):
        addition = versions.get_version(session, dataset_id, UUID(made), by=user)
    else:
        dataset = service.get_dataset(session, dataset_id, by=user)
        details = received.details
        with opened(details, received.upload, settings.dataset_roots) as upload:
            addition = growing.add_images(
                session, storage, dataset, upload, skip_known=details.skip_known, by=user, now=now
            )
        once.end(session, addition.id)
    path = {"dataset_id": dataset_id, "version_id": addition.id}
    response.headers["Location"] = request.app.url_path_for("read_version", **path)
    return addition


@router.get("/datasets/{dataset_id}/versions")
@admin_only
def read_versions(dataset_id: UUID, user: CurrentUser, session: SessionDep) -> schemas.VersionList:
    """The versions of a dataset, oldest first; then images that are on their way, or failed to join."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    found = [*versions.versions_of(session, dataset.id), *versions.additions_of(session, dataset.id)]
    return schemas.VersionList(items=[schemas.VersionRead.model_validate(item) for item in found])


@router.get("/datasets/{dataset_id}/versions/{version_id}", response_model=schemas.VersionRead)
@admin_only
def read_version(
    dataset_id: UUID, version_id: UUID, user: CurrentUser, session: SessionDep
) -> DatasetVersion:
    """One version, or where the import of further images stands."""
    return versions.get_version(session, dataset_id, version_id, by=user)


@router.post(
    "/datasets/{dataset_id}/versions/{version_id}/import",
    response_model=schemas.VersionRead,
    status_code=status.HTTP_202_ACCEPTED,
)
@admin_only
def add_images_again(
    *,
    dataset_id: UUID,
    version_id: UUID,
    given: schemas.ImportAgain,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
) -> DatasetVersion:
    """Import once more further images that an import has refused, with the choice that it lacked."""
    addition = versions.get_version(session, dataset_id, version_id, by=user)
    if not once.begin(session, now=utc_now()):
        importing.import_again(session, addition, skip_bad=given.skip_bad, encoding=given.encoding, by=user)
        once.end(session, addition.id)
    return addition


@router.delete("/datasets/{dataset_id}/versions/{version_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def drop_images(
    dataset_id: UUID, version_id: UUID, user: CurrentUser, session: SessionDep, storage: StorageDep
) -> None:
    """Stop further images on their way, or forget that they failed. What has joined stays."""
    addition = versions.get_version(session, dataset_id, version_id, by=user)
    growing.drop_addition(session, storage, addition, by=user)


@router.put("/datasets/{dataset_id}/classes", response_model=schemas.DatasetRead)
@admin_only
def name_classes(
    dataset_id: UUID, given: schemas.ClassesName, user: CurrentUser, session: SessionDep
) -> Dataset:
    """Name classes that are called by their numbers, as an npz without names has them."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    naming.name_classes(session, dataset, given.names, by=user)
    return dataset


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
    """The examples of a dataset in position order; within each version the train split comes first."""
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
