"""Routes that hand out a campaign's labels and answers as files, streamed."""

import enum
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from sqlalchemy.orm import Session

from app.access import admin_only, reviewers_too
from app.campaigns import service as campaigns
from app.campaigns.by_belief import most_ruled_out
from app.campaigns.noting import note
from app.datasets.models import Dataset
from app.datasets.pictures import image_address
from app.deps import CurrentUser, SettingsDep, StorageDep, UnitOfWorkDep
from app.heads import wants_body
from app.journal.models import Action
from app.labels import service
from app.labels.exports import answers, labels
from app.labels.exports.answers import People
from app.labels.exports.class_folders import folder_pieces
from app.labels.exports.filenames import longest_filename, with_filenames
from app.labels.exports.formats import ExportFormat
from app.settings import Settings
from clarinet.files.tables import guarded

router = APIRouter(tags=["annotation"])


BINARY = {"type": "string", "format": "binary"}
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file, streamed",
        "content": {kind.media_type.partition(";")[0]: {"schema": BINARY} for kind in ExportFormat},
    }
}


class PeopleShown(enum.StrEnum):
    """How a download calls people."""

    PSEUDONYMS = "pseudonyms"
    NAMES = "names"


@router.get("/campaigns/{campaign_id}/labels", response_class=StreamingResponse, responses=FILES)
@reviewers_too
def download_labels(
    request: Request,
    campaign_id: UUID,
    settings: SettingsDep,
    user: CurrentUser,
    work: UnitOfWorkDep,
    *,
    format: ExportFormat = ExportFormat.CSV,
    imported: bool = False,
) -> StreamingResponse:
    """The labels that the answers add up to so far, weighted as a run would use them.

    `imported`: with labels from elsewhere, about which nobody was asked here.
    """
    facts = {"format": format} | ({"imported": "with labels from elsewhere"} if imported else {})
    with work() as session:
        campaign = campaigns.find_campaign(session, campaign_id, by=user)
        service.require_labels(campaign)
        if wants_body(request):
            note(session, Action.LABELS_DOWNLOADED, campaign, by=user, details=facts)
    image_url = _image_url(request, settings, campaign.dataset_id)

    def pieces(session: Session) -> Iterator[bytes]:
        tells_questions = format is not ExportFormat.LABEL_STUDIO
        rows = service.weighted(
            service.labels(session, campaign, imported=imported, as_given=tells_questions),
            service.class_factors(session, campaign.id),
        )
        return labels.pieces(
            with_filenames(session, campaign.dataset_id, rows),
            format,
            class_names=campaign.class_names,
            num_images=session.get_one(Dataset, campaign.dataset_id).train_count,
            image_url=image_url,
            longest_filename=longest_filename(session, campaign.dataset_id),
            most_excluded=most_ruled_out(session, campaign.id),
        )

    return _download(
        request, pieces, name=f"labels-{campaign.id}.{format.ending}", media_type=format.media_type
    )


@router.get(
    "/campaigns/{campaign_id}/labels/folders",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/zip": {"schema": BINARY}}, "description": "CLASS/picture"}},
)
@reviewers_too
def download_class_folders(
    request: Request,
    campaign_id: UUID,
    storage: StorageDep,
    user: CurrentUser,
    work: UnitOfWorkDep,
    *,
    imported: bool = False,
) -> StreamingResponse:
    """A zip with each picture whose class is known (a true label) in its class's folder.

    `imported`: with labels from elsewhere, about which nobody was asked here.
    """
    facts = {"format": "class folders"} | ({"imported": "with labels from elsewhere"} if imported else {})
    with work() as session:
        campaign = campaigns.find_campaign(session, campaign_id, by=user)
        service.require_labels(campaign)
        note(session, Action.LABELS_DOWNLOADED, campaign, by=user, details=facts)

    def pieces(session: Session) -> Iterator[bytes]:
        rows = list(service.labels(session, campaign, imported=imported))
        return folder_pieces(session, storage, campaign, rows)

    name, media_type = f"pictures-{campaign.id}.zip", "application/zip"
    return _download(request, pieces, name=name, media_type=media_type)


@router.get("/campaigns/{campaign_id}/answers", response_class=StreamingResponse, responses=FILES)
@admin_only
def download_answers(
    request: Request,
    campaign_id: UUID,
    settings: SettingsDep,
    user: CurrentUser,
    work: UnitOfWorkDep,
    *,
    format: ExportFormat = ExportFormat.CSV,
    people: PeopleShown = PeopleShown.PSEUDONYMS,
) -> StreamingResponse:
    """Every answer that stands: to which question, when, in how many milliseconds, under which key.

    People appear as pseudonyms that stand for one person within this campaign, unless names are asked for.
    """
    with work() as session:
        campaign = campaigns.find_campaign(session, campaign_id, by=user)
        facts = {"format": format, "people": people}
        if wants_body(request):
            note(session, Action.ANSWERS_DOWNLOADED, campaign, by=user, details=facts)
    image_url = _image_url(request, settings, campaign.dataset_id)
    secret = settings.signing_secret() if people is PeopleShown.PSEUDONYMS else None

    def pieces(session: Session) -> Iterator[bytes]:
        text = guarded if format.is_for_spreadsheets else str
        rows = answers.answer_rows(session, campaign, People(session, campaign.id, secret), text=text)
        return answers.pieces(
            rows,
            format,
            class_names=campaign.class_names,
            image_url=image_url,
            longest_filename=longest_filename(session, campaign.dataset_id),
        )

    return _download(
        request, pieces, name=f"answers-{campaign.id}.{format.ending}", media_type=format.media_type
    )


def _download(
    request: Request, pieces: Callable[[Session], Iterator[bytes]], *, name: str, media_type: str
) -> StreamingResponse:
    def body() -> Iterator[bytes]:
        if not wants_body(request):
            return
        # The route's own session ends before the body is sent; a download gets one for as long as it lasts.
        with request.app.state.database.read.begin() as session:
            yield from filter(None, pieces(session))

    return StreamingResponse(
        body(),
        media_type=media_type,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
        },
    )


def _image_url(request: Request, settings: Settings, dataset_id: UUID) -> str:
    """Where a picture lies, with {example_id} in it: one address for all, because a million are needed."""
    return settings.public_url.rstrip("/") + image_address(request, dataset_id)
