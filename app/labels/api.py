"""JSON routes of labels from elsewhere."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response, status

from app.access import admin_only
from app.campaigns import service as campaigns
from app.campaigns.deps import CampaignDep
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, StorageDep
from app.idempotency import OnceDep
from app.labels import service
from app.labels.models import LabelImport
from app.labels.schemas import (
    CONTRADICTIONS,
    FIRST,
    MAX_IGNORED,
    MAX_NO_LABEL,
    DisagreementRead,
    DisagreementsRead,
    ImportRead,
    ImportsRead,
    file_of_form,
    keep_file,
)

router = APIRouter(tags=["annotation"])

# The form is read as it comes, so the framework cannot read its shape off the signature.
OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "contradictions": {
                            "type": "string",
                            "enum": list(CONTRADICTIONS),
                            "default": CONTRADICTIONS[0],
                            "description": "where somebody contradicts themselves: the file is refused, or "
                            "both sides are left out",
                        },
                        "first_class": {
                            "type": "string",
                            "enum": list(FIRST),
                            "description": "from which number the file counts classes; without it from 0, "
                            "and what could count from 1 is refused",
                        },
                        "first_position": {
                            "type": "string",
                            "enum": list(FIRST),
                            "description": "from which number the file counts pictures; without it from 0, "
                            "and where 1 is the smallest and nothing else tells a picture it is refused",
                        },
                        "ignore_columns": {
                            "type": "string",
                            "maxLength": MAX_IGNORED,
                            "default": "",
                            "description": "names of columns that are left out, or of controls of Label "
                            "Studio, with commas between, as a CSV writes a line",
                        },
                        "no_label": {
                            "type": "string",
                            "maxLength": MAX_NO_LABEL,
                            "default": "",
                            "description": "what the file writes in place of a class that nobody knows, such "
                            "as 255; such lines are left out",
                        },
                    },
                    "required": ["file"],
                }
            }
        },
    }
}


@router.post(
    "/campaigns/{campaign_id}/imports",
    response_model=ImportRead,
    status_code=status.HTTP_202_ACCEPTED,
    openapi_extra=OPENAPI,
)
@admin_only
def import_labels(
    *,
    request: Request,
    response: Response,
    campaign_id: UUID,
    form: FormDep,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    storage: StorageDep,
) -> LabelImport:
    """Bring in yes/no answers or class labels: a CSV or Label Studio's JSON.

    The answer comes before the file is read: look at the state under the Location. Labels from elsewhere stay
    apart from the campaign's own answers, because no question was drawn for them, and enter label files and
    runs only where these ask for them.
    """
    file, choices = file_of_form(form)
    with reading.begin() as looking:
        campaign = campaigns.find_campaign(looking, campaign_id, by=user)
    now = utc_now()
    if made := once.begin(session, now=now):
        found = service.get_import(session, campaign_id, UUID(made), by=user)
    else:
        found = keep_file(session, storage, campaign, file, choices, by=user, now=now)
        once.end(session, found.id)
    path = {"campaign_id": campaign_id, "import_id": found.id}
    response.headers["Location"] = request.app.url_path_for("read_import", **path)
    return found


@router.get("/campaigns/{campaign_id}/imports")
@admin_only
def read_imports(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> ImportsRead:
    """What was imported into the campaign, newest first."""
    found = service.imports_of(session, campaign, by=user)
    not_counting = service.not_counting(session, campaign)
    return ImportsRead(items=[ImportRead.of(item, not_counting) for item in found])


@router.get("/campaigns/{campaign_id}/imports/disagreements")
@admin_only
def read_disagreements(campaign: CampaignDep, user: CurrentUser, reading: ReadingDep) -> DisagreementsRead:
    """Pictures about which people of imports differ, among themselves or from answers here.

    Worked out from all that was imported and answered whenever it is asked for: a second for 100,000.
    """
    with reading.begin() as session:
        found = service.disagreements(session, campaign, by=user)
    return DisagreementsRead(
        count=found.count, items=[DisagreementRead.model_validate(item) for item in found.named]
    )


@router.get("/campaigns/{campaign_id}/imports/{import_id}")
@admin_only
def read_import(campaign: CampaignDep, import_id: UUID, user: CurrentUser, session: SessionDep) -> ImportRead:
    """One import and where it stands; of one that failed, every line that could not be taken."""
    found = service.get_import(session, campaign.id, import_id, by=user)
    return ImportRead.of(found, service.not_counting(session, campaign))


@router.delete("/campaigns/{campaign_id}/imports/{import_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_import(
    *,
    campaign: CampaignDep,
    import_id: UUID,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
) -> None:
    """Take an import back, or end one that runs. Runs that have used it keep their frozen labels."""
    service.delete_import(session, storage, campaign, import_id, by=user)
