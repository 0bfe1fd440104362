"""HTML routes: the list, the form, and one dataset as a contact sheet."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from starlette.datastructures import FormData

from app.access import admin_only
from app.clock import utc_now
from app.datasets import importing, schemas, service
from app.datasets.errors import BadUpload, DatasetNameTaken, PathNotAllowed
from app.datasets.intake.member_names import ENCODINGS, title_of
from app.datasets.models import Dataset, DatasetState, Split
from app.datasets.receiving import FILES, NAMED, opened, upload_of_form
from app.deps import CurrentUser, FormDep, SessionDep, SettingsDep, StorageDep
from app.pages import read_form, render, see_other
from app.spelling import refuse_unknown_fields

router = APIRouter(include_in_schema=False)

CARDS = 24
PICTURES_ON_A_CARD = 12  # fills rows of 2, 3, 4 and 6
PICTURES_ON_A_SHEET = 240
UNPROCESSABLE = 422
ENCODING_TITLES = [(name, title_of(name)) for name in ("utf-8", *ENCODINGS)]


@router.get("/datasets")
@admin_only
def list_datasets(
    request: Request, user: CurrentUser, session: SessionDep, after: UUID | None = None
) -> Response:
    """Datasets as cards, newest first."""
    found = service.list_datasets(session, by=user, after=after, limit=CARDS + 1)
    shown = found[:CARDS]
    return render(
        request,
        "datasets/index.html",
        cards=[(dataset, service.samples_of(session, dataset, PICTURES_ON_A_CARD)) for dataset in shown],
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
    request: Request, values: FormData, errors: dict[str, str], *, has_roots: bool, status: int = 200
) -> Response:
    return render(
        request,
        "datasets/new.html",
        status=status,
        values=values,
        errors=errors,
        has_roots=has_roots,
        encodings=[("", "Find out"), *ENCODING_TITLES],
    )


@router.get("/datasets/{dataset_id}")
@admin_only
def show_dataset(
    *,
    request: Request,
    dataset_id: UUID,
    user: CurrentUser,
    session: SessionDep,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1)] = -1,
    split: Split | str = "",
    true_class: Annotated[str, Query(pattern=r"^\d{0,6}$")] = "",
) -> Response:
    """One dataset: how its import goes, or its pictures."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    chosen = Split(split) if split in set(Split) else None
    label = int(true_class) if true_class else None
    query = service.examples_of(
        dataset.id, after=after, limit=PICTURES_ON_A_SHEET + 1, split=chosen, true_class=label
    )
    found = session.scalars(query).all() if dataset.state is DatasetState.READY else []
    shown = found[:PICTURES_ON_A_SHEET]
    return render(
        request,
        "datasets/show.html",
        fragment="datasets/_contents.html",
        dataset=dataset,
        examples=shown,
        next_after=shown[-1].position if len(found) > PICTURES_ON_A_SHEET else None,
        is_first=after < 0,
        split=chosen.value if chosen else "",
        true_class=true_class,
        class_rows=_class_rows(dataset),
        encodings=ENCODING_TITLES,
    )


def _class_rows(dataset: Dataset) -> list[tuple[str, int, int]]:
    """(class name, train, test), in label order; last those whose class is not known."""
    train, test = dataset.train_per_class or [], dataset.test_per_class or []
    rows = list(zip(dataset.class_names or [], train, test, strict=False))  # none before it is ready
    unknown = dataset.train_count - sum(train), dataset.test_count - sum(test)
    return [*rows, ("not known", *unknown)] if any(unknown) else rows


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


@router.post("/datasets/{dataset_id}/delete")
@admin_only
def delete_dataset_from_page(
    request: Request, dataset_id: UUID, user: CurrentUser, session: SessionDep, storage: StorageDep
) -> Response:
    """Delete a dataset that nothing needs."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    service.delete_dataset(session, storage, dataset, by=user)
    return see_other(request, "list_datasets")
