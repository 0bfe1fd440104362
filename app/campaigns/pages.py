"""HTML routes of campaigns: the form, and the buttons that change the state."""

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, status
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.accounts.models import User
from app.campaigns import class_text, drawings, pictures, service
from app.campaigns.classes import MAX_CLASS_EXAMPLES, MAX_CLASSES, ClassDetails
from app.campaigns.deps import CampaignDep
from app.campaigns.errors import (
    BadPrice,
    CampaignNameTaken,
    EvaluationIsFixed,
    InvalidClasses,
    NotADraft,
    SourceNotReady,
)
from app.campaigns.models import CHOSEN, Campaign, CampaignState
from app.campaigns.schemas import CampaignForm, CampaignUpdate, ClassInput, PicturesForm, PriceInput
from app.campaigns.service import CampaignDetails
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets.models import DatasetState
from app.deps import CurrentUser, FormDep, SessionDep
from app.languages import CLASS_LANGUAGES, language_name
from app.pages import as_sentence, read_form, render, see_other, with_query
from app.uses import itself
from clarinet.files.names import sameness

router = APIRouter(include_in_schema=False)

MAX_DATASETS = 500  # offered in the form
CLASSES_ON_A_PAGE = 50  # of pictures to choose from
FirstClass = Annotated[int, Query(ge=0, le=MAX_CLASSES)]
Batch = Annotated[int, Query(ge=0, le=100_000)]
FIELD_OF = {
    CampaignNameTaken: "name",
    SourceNotReady: "dataset_id",
    InvalidClasses: "classes",
    EvaluationIsFixed: "",
}


@router.get("/campaigns/new")
@admin_only
def new_campaign(
    request: Request, user: CurrentUser, session: SessionDep, dataset_id: UUID | None = None
) -> Response:
    """The form for a new campaign; `dataset_id` is the one chosen already."""
    values = {"confirm_yes": "true", "dataset_id": str(dataset_id or "")}
    return _form(request, session, user, values, {}, campaign=None)


@router.post("/campaigns/new")
@admin_only
def create_campaign_from_form(
    request: Request, form: FormDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Draft the campaign, or show the form again with what is wrong."""
    values = {name: str(value) for name, value in form.items()}
    details, errors = _details(read_form(form, CampaignForm), campaign=None)
    if details is not None:
        try:
            campaign = service.create_campaign(session, details, by=user, now=utc_now())
        except (CampaignNameTaken, SourceNotReady, InvalidClasses) as error:
            errors = {FIELD_OF[type(error)]: error.detail}
        else:
            return _back_to(request, campaign)
    return _form(request, session, user, values, errors, campaign=None)


@router.get("/campaigns/{campaign_id}/edit")
@admin_only
def edit_campaign_form(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """The form of a draft."""
    values = {
        "name": campaign.name,
        "dataset_id": str(campaign.dataset_id),
        "classes": class_text.written((item.name, item.description) for item in campaign.classes),
        **{name: _typed(getattr(campaign, name)) for name in CHOSEN},
    }
    return _form(request, session, user, values, {}, campaign=campaign)


@router.post("/campaigns/{campaign_id}/edit")
@admin_only
def edit_campaign_from_form(
    request: Request, form: FormDep, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Change the draft, or show the form again with what is wrong."""
    values = {name: str(value) for name, value in form.items()}
    details, errors = _details(read_form(form, CampaignForm), campaign=campaign)
    if details is not None:
        try:
            service.edit_campaign(session, campaign, details, by=user)
        except (CampaignNameTaken, SourceNotReady, InvalidClasses, EvaluationIsFixed) as error:
            errors = {FIELD_OF[type(error)]: error.detail}
        else:
            return _back_to(request, campaign)
    return _form(request, session, user, values, errors, campaign=campaign)


@router.get("/campaigns/{campaign_id}/pictures")
@admin_only
def choose_pictures(
    *,
    request: Request,
    campaign_id: UUID,
    user: CurrentUser,
    session: SessionDep,
    first: FirstClass = 0,
    batch: Batch = 0,
) -> Response:
    """Pictures to show annotators what each class looks like."""
    campaign = service.find_campaign(session, campaign_id, by=user)
    if campaign.state is not CampaignState.DRAFT or campaign.is_opening:
        raise NotADraft(campaign.name, campaign.question_count, itself(campaign))
    return _pictures(request, session, campaign, first=first, batch=batch)


@router.post("/campaigns/{campaign_id}/pictures")
@admin_only
def choose_pictures_from_form(
    *,
    request: Request,
    form: FormDep,
    campaign: CampaignDep,
    user: CurrentUser,
    session: SessionDep,
    first: FirstClass = 0,
    batch: Batch = 0,
) -> Response:
    """Keep the pictures chosen on this page; then come others, further classes, or the campaign."""
    read, errors = read_form(form, PicturesForm)
    shown = range(first, first + CLASSES_ON_A_PAGE)
    if read is None:
        return _pictures(
            request, session, campaign, first=first, batch=batch, errors={"": " ".join(errors.values())}
        )
    chosen = read.by_class()
    kept = CampaignUpdate().details(campaign)
    classes = tuple(
        replace(item, example_ids=chosen.get(position, ())) if position in shown else item
        for position, item in enumerate(kept.classes)
    )
    try:
        service.edit_campaign(session, campaign, replace(kept, classes=classes), by=user)
    except InvalidClasses as error:
        return _pictures(
            request, session, campaign, first=first, batch=batch, chosen=chosen, errors={"": error.detail}
        )
    if read.more:
        where = {"first": first, "batch": batch + 1}
    elif shown.stop < len(classes):
        where = {"first": shown.stop}
    else:
        return _back_to(request, campaign)
    here = with_query(request, "choose_pictures", path={"campaign_id": str(campaign.id)}, **where)
    return RedirectResponse(here, status.HTTP_303_SEE_OTHER)


def _pictures(
    request: Request,
    session: Session,
    campaign: Campaign,
    *,
    first: int,
    batch: int,
    chosen: dict[int, tuple[int, ...]] | None = None,
    errors: dict[str, str] | None = None,
) -> Response:
    classes = campaign.classes[first : first + CLASSES_ON_A_PAGE]
    ticked = {item.position: tuple(item.example_ids) for item in classes} if chosen is None else chosen
    return render(
        request,
        "campaigns/pictures.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        campaign=campaign,
        offers=pictures.pictures_to_choose(session, campaign, classes, batch=batch, chosen=ticked),
        limit=MAX_CLASS_EXAMPLES,
        first=first,
        batch=batch,
        is_last=first + CLASSES_ON_A_PAGE >= campaign.num_classes,
        errors=errors or {},
    )


@router.post("/campaigns/{campaign_id}/open")
@admin_only
def open_campaign_from_page(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Open or resume."""
    service.open_campaign(session, campaign, by=user, now=utc_now())
    if campaign.is_evaluation:  # that page tells what the answers say
        return see_other(request, "show_evaluation_of_campaign", campaign_id=str(campaign.id))
    return _back_to(request, campaign)


@router.post("/campaigns/{campaign_id}/pause")
@admin_only
def pause_campaign_from_page(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Pause."""
    service.pause_campaign(session, campaign, by=user)
    return _back_to(request, campaign)


@router.post("/campaigns/{campaign_id}/close")
@admin_only
def close_campaign_from_page(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Close for good."""
    service.close_campaign(session, campaign, by=user, now=utc_now())
    return _back_to(request, campaign)


@router.post("/campaigns/{campaign_id}/further")
@admin_only
def ask_further_from_page(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Ask about images that have joined the dataset."""
    drawings.ask_further(session, campaign, by=user, now=utc_now())
    return _back_to(request, campaign)


@router.post("/campaigns/{campaign_id}/price")
@admin_only
def set_price_from_page(
    request: Request, form: FormDep, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Say what an answer or an hour costs."""
    read, errors = read_form(form, PriceInput)
    if read is None:
        raise BadPrice(" ".join(errors.values()))
    service.set_price(session, campaign, price=read.price, per=read.price_per, by=user)
    return _back_to(request, campaign)


@router.post("/campaigns/{campaign_id}/archive")
@admin_only
def archive_campaign_from_page(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Hide a campaign from lists."""
    service.archive_campaign(session, campaign, by=user, now=utc_now())
    return _back_to(request, campaign)


@router.post("/campaigns/{campaign_id}/restore")
@admin_only
def restore_campaign_from_page(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Show an archived campaign in lists again."""
    service.archive_campaign(session, campaign, by=user, now=None)
    return _back_to(request, campaign)


@router.post("/campaigns/{campaign_id}/delete")
@admin_only
def delete_campaign_from_page(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Delete a draft, or a closed campaign that no run rests on."""
    service.delete_campaign(session, campaign, by=user)
    return see_other(request, "list_campaigns")


def _back_to(request: Request, campaign: Campaign) -> Response:
    return see_other(request, "show_campaign", campaign_id=str(campaign.id))


def _typed(value: object) -> str:
    """As the form's inputs have it; a box is ticked or left out."""
    return ("true" if value else "") if isinstance(value, bool) else str(value)


def _details(
    read: tuple[CampaignForm | None, dict[str, str]], *, campaign: Campaign | None
) -> tuple[CampaignDetails | None, dict[str, str]]:
    """A form as details; pictures of an edited campaign's classes stay with their names, as long as the
    dataset stays."""
    form, errors = read
    if form is None:
        return None, errors
    known = campaign.classes if campaign is not None and campaign.dataset_id == form.dataset_id else ()
    shown = {sameness(item.name): tuple(item.example_ids) for item in known}
    classes = []
    for name, description in class_text.read(form.classes):
        try:
            item = ClassInput(name=name, description=description, example_ids=[])
        except ValueError as error:
            return None, {"classes": _first_message(error, name)}
        classes.append(ClassDetails(item.name, item.description, shown.get(sameness(item.name), ())))
    return CampaignDetails(form.name, form.dataset_id, tuple(classes), **form.chosen()), {}


def _first_message(error: ValueError, name: str) -> str:
    message = str(error).splitlines()[2].split(" [", maxsplit=1)[0].strip()
    return f"{name[:40]!r}: {as_sentence(message)}"


def _form(
    request: Request,
    session: Session,
    user: User,
    values: dict[str, str],
    errors: dict[str, str],
    *,
    campaign: Campaign | None,
) -> Response:
    ready = [
        dataset
        for dataset in datasets.list_datasets(session, by=user, limit=MAX_DATASETS)
        if dataset.state is DatasetState.READY and dataset.train_count
    ]
    if campaign is not None and all(dataset.id != campaign.dataset_id for dataset in ready):
        ready.append(datasets.get_dataset(session, campaign.dataset_id, by=user))  # archived meanwhile
    tags = dict.fromkeys(("", *CLASS_LANGUAGES, values.get("class_language", "")))
    return render(
        request,
        "campaigns/form.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        campaign=campaign,
        datasets=ready,
        class_languages=sorted((language_name(tag), tag) for tag in tags if tag),
        values=values,
        errors=errors,
    )
