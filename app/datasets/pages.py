"""HTML routes of datasets: the list and the forms. One dataset's page is among those of campaigns."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.datastructures import FormData

from app.access import admin_only
from app.clock import utc_now
from app.datasets import growing, importing, naming, schemas, service, versions
from app.datasets.errors import BadUpload, DatasetNameTaken, PathNotAllowed
from app.datasets.intake.member_names import ENCODINGS, title_of
from app.datasets.models import Dataset
from app.datasets.receiving import ADDED, FILES, NAMED, opened, upload_of_form
from app.deps import CurrentUser, FormDep, SessionDep, SettingsDep, StorageDep
from app.pages import read_form, render, see_other
from app.spelling import refuse_unknown_fields
from clarinet.files.names import class_lines

router = APIRouter(include_in_schema=False)

CARDS = 24
PICTURES_ON_A_CARD = 12  # fills rows of 2, 3, 4 and 6
UNPROCESSABLE = 422
ENCODING_TITLES = [(name, title_of(name)) for name in ("utf-8", *ENCODINGS)]


@router.get("/datasets")
@admin_only
def list_datasets(
    *,
    request: Request,
    user: CurrentUser,
    session: SessionDep,
    archived: bool = False,
    after: UUID | None = None,
) -> Response:
    """Datasets as cards, newest first: those that are archived, or the others."""
    found = service.list_datasets(session, by=user, archived=archived, after=after, limit=CARDS + 1)
    shown = found[:CARDS]
    return render(
        request,
        "datasets/index.html",
        cards=[(dataset, service.samples_of(session, dataset, PICTURES_ON_A_CARD)) for dataset in shown],
        archived=archived,
        next_after=shown[-1].id if len(found) > CARDS else None,
        is_first=after is None,
    )


@router.get("/datasets/new")
@admin_only
def new_dataset(request: Request, settings: SettingsDep) -> Response:
    """The form for a new dataset."""
    return _form(request, FormData(), {}, has_roots=bool(settings.dataset_roots))


@router.post("/datasets/new")
@admin_only
def create_dataset_from_form(
    *,
    request: Request,
    form: FormDep,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
    settings: SettingsDep,
) -> Response:
    """Keep the file and show how its import goes."""
    refuse_unknown_fields(form, (*NAMED, "path"), files=FILES)
    texts = FormData([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
    details, errors = read_form(texts, schemas.DatasetCreate)
    upload = upload_of_form(form, details)
    if upload is None and not texts.get("path"):
        errors["file"] = "Please choose a file."
    dataset: Dataset | None = None
    if details is not None and not errors:
        try:
            with opened(details, upload, settings.dataset_roots) as files:
                dataset = service.create_dataset(
                    session,
                    storage,
                    files,
                    name=details.name,
                    description=details.description,
                    by=user,
                    now=utc_now(),
                )
        except DatasetNameTaken as error:
            errors["name"] = error.detail
        except BadUpload as error:
            errors["file"] = error.detail
        except PathNotAllowed as error:
            errors["path"] = error.detail
    if dataset is None:
        return _form(request, texts, errors, has_roots=bool(settings.dataset_roots), status=UNPROCESSABLE)
    return see_other(request, "show_dataset", dataset_id=dataset.id)


def _form(
    request: Request,
    values: FormData,
    errors: dict[str, str],
    *,
    dataset: Dataset | None = None,
    has_roots: bool,
    status: int = 200,
) -> Response:
    return render(
        request,
        "datasets/new.html",
        status=status,
        dataset=dataset,
        values=values,
        errors=errors,
        has_roots=has_roots,
        encodings=[("", "Find out"), *ENCODING_TITLES],
    )


@router.post("/datasets/{dataset_id}/import")
@admin_only
def import_dataset_again_from_page(
    request: Request, dataset_id: UUID, form: FormDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Import once more what an import has refused, with the choice that it lacked."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    refuse_unknown_fields(form, schemas.ImportAgain.model_fields)
    given, _ = read_form(form, schemas.ImportAgain)
    if given is not None:
        importing.import_again(session, dataset, skip_bad=given.skip_bad, encoding=given.encoding, by=user)
    return see_other(request, "show_dataset", dataset_id=dataset_id)


@router.get("/datasets/{dataset_id}/images/new")
@admin_only
def new_images(
    request: Request, dataset_id: UUID, user: CurrentUser, session: SessionDep, settings: SettingsDep
) -> Response:
    """The form for further images."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    values = FormData({"skip_known": "true"})
    return _form(request, values, {}, dataset=dataset, has_roots=bool(settings.dataset_roots))


@router.post("/datasets/{dataset_id}/images/new")
@admin_only
def add_images_from_form(
    *,
    request: Request,
    dataset_id: UUID,
    form: FormDep,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
    settings: SettingsDep,
) -> Response:
    """Keep the file; the dataset's page shows how its import goes."""
    refuse_unknown_fields(form, (*ADDED, "path"), files=FILES)
    dataset = service.get_dataset(session, dataset_id, by=user)
    texts = FormData([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
    details, errors = read_form(texts, schemas.ImagesAddForm)
    upload = upload_of_form(form, details)
    if upload is None and not texts.get("path"):
        errors["file"] = "Please choose a file."
    if details is not None and not errors:
        try:
            with opened(details, upload, settings.dataset_roots) as files:
                growing.add_images(
                    session, storage, dataset, files, skip_known=details.skip_known, by=user, now=utc_now()
                )
        except BadUpload as error:
            errors["file"] = error.detail
        except PathNotAllowed as error:
            errors["path"] = error.detail
        else:
            return see_other(request, "show_dataset", dataset_id=dataset_id)
    return _form(
        request,
        texts,
        errors,
        dataset=dataset,
        has_roots=bool(settings.dataset_roots),
        status=UNPROCESSABLE,
    )


@router.post("/datasets/{dataset_id}/versions/{version_id}/import")
@admin_only
def add_images_again_from_page(
    *,
    request: Request,
    dataset_id: UUID,
    version_id: UUID,
    form: FormDep,
    user: CurrentUser,
    session: SessionDep,
) -> Response:
    """Import once more further images that an import has refused, with the choice that it lacked."""
    addition = versions.get_version(session, dataset_id, version_id, by=user)
    refuse_unknown_fields(form, schemas.ImportAgain.model_fields)
    given, _ = read_form(form, schemas.ImportAgain)
    if given is not None:
        importing.import_again(session, addition, skip_bad=given.skip_bad, encoding=given.encoding, by=user)
    return see_other(request, "show_dataset", dataset_id=dataset_id)


@router.post("/datasets/{dataset_id}/versions/{version_id}/drop")
@admin_only
def drop_images_from_page(
    *,
    request: Request,
    dataset_id: UUID,
    version_id: UUID,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
) -> Response:
    """Stop further images on their way, or forget that they failed."""
    addition = versions.get_version(session, dataset_id, version_id, by=user)
    growing.drop_addition(session, storage, addition, by=user)
    return see_other(request, "show_dataset", dataset_id=dataset_id)


@router.post("/datasets/{dataset_id}/classes")
@admin_only
def name_classes_from_page(
    request: Request, dataset_id: UUID, form: FormDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Name classes that are called by their numbers."""
    refuse_unknown_fields(form, ("names",))
    dataset = service.get_dataset(session, dataset_id, by=user)
    naming.name_classes(session, dataset, class_lines(str(form.get("names", ""))), by=user)
    return see_other(request, "show_dataset", dataset_id=dataset_id)


@router.post("/datasets/{dataset_id}/archive")
@admin_only
def archive_dataset_from_page(
    request: Request, dataset_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Hide a dataset from lists."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    service.archive_dataset(session, dataset, by=user, now=utc_now())
    return see_other(request, "show_dataset", dataset_id=dataset_id)


@router.post("/datasets/{dataset_id}/restore")
@admin_only
def restore_dataset_from_page(
    request: Request, dataset_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Show an archived dataset in lists again."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    service.archive_dataset(session, dataset, by=user, now=None)
    return see_other(request, "show_dataset", dataset_id=dataset_id)


@router.post("/datasets/{dataset_id}/delete")
@admin_only
def delete_dataset_from_page(
    request: Request, dataset_id: UUID, user: CurrentUser, session: SessionDep, storage: StorageDep
) -> Response:
    """Delete a dataset that nothing needs."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    service.delete_dataset(session, storage, dataset, by=user)
    return see_other(request, "list_datasets")
