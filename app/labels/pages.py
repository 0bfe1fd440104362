"""HTML routes of labels from elsewhere."""

from uuid import UUID

from fastapi import APIRouter, Request, status
from fastapi.responses import Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.accounts.models import User
from app.campaigns import service as campaigns
from app.campaigns.deps import CampaignDep
from app.campaigns.errors import WrongCampaignState
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, StorageDep
from app.labels import service
from app.labels.errors import AlreadyImported, BadImport
from app.labels.schemas import ImportRead, file_of_form, keep_file
from app.pages import render, see_other
from app.quality.service import is_large

router = APIRouter(include_in_schema=False)


@router.get("/campaigns/{campaign_id}/imports")
@admin_only
def show_imports(
    *,
    request: Request,
    campaign: CampaignDep,
    user: CurrentUser,
    session: SessionDep,
    differing: bool = False,
) -> Response:
    """What was imported, and the form for more; of a large campaign where people differ if asked for it."""
    return _page(request, session, campaign, user, differing=differing)


@router.post("/campaigns/{campaign_id}/imports")
@admin_only
def import_labels_from_form(
    *,
    request: Request,
    campaign_id: UUID,
    form: FormDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    storage: StorageDep,
) -> Response:
    """Keep a file and show how its import goes, or say what is wrong with it."""
    try:
        file, choices = file_of_form(form)
        with reading.begin() as looking:
            campaign = campaigns.find_campaign(looking, campaign_id, by=user)
        keep_file(session, storage, campaign, file, choices, by=user, now=utc_now())
    except (BadImport, AlreadyImported, WrongCampaignState) as error:
        campaign = campaigns.find_campaign(session, campaign_id, by=user)
        return _page(request, session, campaign, user, errors={"file": error.detail})
    return _again(request, campaign_id)


@router.post("/campaigns/{campaign_id}/imports/{import_id}/delete")
@admin_only
def delete_import_from_page(
    *,
    request: Request,
    campaign: CampaignDep,
    import_id: UUID,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
) -> Response:
    """Take an import back."""
    service.delete_import(session, storage, campaign, import_id, by=user)
    return _again(request, campaign.id)


def _page(
    request: Request,
    session: Session,
    campaign: Campaign,
    user: User,
    *,
    errors: dict[str, str] | None = None,
    differing: bool = False,
) -> Response:
    service.require_labels(campaign)
    # The fragment asks for itself each second while a file is read, and does not show them.
    is_whole = not request.headers.get("hx-request")
    asks = is_whole and is_large(campaign) and not differing and service.has_imports(session, campaign)
    found = service.disagreements(session, campaign, by=user) if is_whole and not asks else None
    imports = service.imports_of(session, campaign, by=user)
    not_counting = service.not_counting(session, campaign)
    return render(
        request,
        "labels/imports.html",
        fragment="labels/_imports.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        campaign=campaign,
        imports=imports,
        later={
            item.id: read.left_out_later for item in imports if (read := ImportRead.of(item, not_counting))
        },
        errors=errors or {},
        disagreements=found.named if found else [],
        differing=service.words_of(found) if found else "",
        agree=differing and found is not None and not found.count,
        asks_to_look=asks,
    )


def _again(request: Request, campaign_id: UUID) -> Response:
    return see_other(request, "show_imports", campaign_id=str(campaign_id))
