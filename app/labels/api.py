"""JSON routes of labels from elsewhere."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, status

from app.access import admin_only
from app.campaigns import service as campaigns
from app.campaigns.deps import CampaignDep
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep
from app.idempotency import OnceDep
from app.labels import service
from app.labels.schemas import ImportRead, ImportsRead, file_of_form

router = APIRouter(tags=["annotation"])

# The form is read as it comes, so the framework cannot read its shape off the signature.
OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"file": {"type": "string", "format": "binary"}},
                    "required": ["file"],
                }
            }
        },
    }
}


@router.post("/campaigns/{campaign_id}/imports", status_code=status.HTTP_201_CREATED, openapi_extra=OPENAPI)
@admin_only
def import_labels(
    *,
    campaign_id: UUID,
    form: FormDep,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
) -> ImportRead:
    """Bring in yes/no answers or class labels: a CSV or Label Studio's JSON.

    They stay apart from the campaign's own answers, because no question was drawn for them, and enter label
    files and runs only where these ask for them.
    """
    file = file_of_form(form)
    with reading.begin() as looking:
        if made := once.made_before(looking):
            return ImportRead.model_validate(service.get_import(looking, campaign_id, UUID(made), by=user))
        campaign = campaigns.find_campaign(looking, campaign_id, by=user)
        prepared = service.prepare_import(looking, campaign, file.data, filename=file.name, by=user)
    now = utc_now()
    if made := once.begin(session, now=now):  # by the same request, which came meanwhile
        return ImportRead.model_validate(service.get_import(session, campaign_id, UUID(made), by=user))
    kept = service.store_import(session, prepared, by=user, now=now)
    once.end(session, kept.id)
    return ImportRead.model_validate(kept)


@router.get("/campaigns/{campaign_id}/imports")
@admin_only
def read_imports(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> ImportsRead:
    """What was imported into the campaign, newest first."""
    found = service.imports_of(session, campaign, by=user)
    return ImportsRead(items=[ImportRead.model_validate(item) for item in found])


@router.delete("/campaigns/{campaign_id}/imports/{import_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_import(campaign: CampaignDep, import_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Take an import back. Runs that have used it keep their frozen labels."""
    service.delete_import(session, campaign, import_id, by=user)
