"""The JSON API's routes of images: by number for who may know numbers, by name for who answers."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Request, Response, status
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.access import signed_in
from app.annotation.deps import ScreenDep
from app.annotation.own import picture_shown_to
from app.annotation.public_ids import public_ids_of
from app.campaigns.admission import image_visible_to
from app.datasets import images
from app.datasets.receiving import BINARY
from app.deps import CurrentUser, SessionDep, StorageDep
from app.storage import Storage

router = APIRouter(tags=["datasets"])

# What both databases can compare with a column; anything larger would be their error, not a 404.
ExampleId = Annotated[int, Path(ge=1, le=2**63 - 1)]
PictureName = Annotated[str, Path(pattern="^[0-9a-f]{13}$", description="as `image_url` has it")]
# The bytes of an example never change: further images are further examples. Private, because one must be
# signed in.
IMMUTABLE = "private, max-age=31536000, immutable"


BYTES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes",
        "content": {"image/png": {"schema": BINARY}, "image/jpeg": {"schema": BINARY}},
    },
    304: {"description": "Not Modified"},
}


@router.get(
    "/datasets/{dataset_id}/examples/{example_id}/image",
    name="example_image",
    response_class=Response,
    responses=BYTES,
)
@signed_in
def example_image(
    *,
    request: Request,
    dataset_id: UUID,
    example_id: ExampleId,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
) -> Response:
    """The picture of an example, by its number: for admins, and for reviewers once a campaign was opened.

    Numbers follow the order of import, which can give a class away. So annotators get pictures from their
    campaign, under the address that stands beside each question.
    """
    return _bytes_of(request, session, storage, (dataset_id, example_id, image_visible_to(user)))


@router.get(
    "/campaigns/{campaign_id}/pictures/{picture}",
    name="campaign_picture",
    response_class=Response,
    responses=BYTES,
)
@signed_in
def campaign_picture(
    *,
    request: Request,
    campaign: ScreenDep,
    picture: PictureName,
    user: CurrentUser,
    session: SessionDep,
    storage: StorageDep,
) -> Response:
    """A picture that a campaign asks about, for its members while it is open.

    They see what they answered about afterwards, too. Its name tells nothing, and differs between campaigns.
    """
    example_id = public_ids_of(session, campaign.id).example_id(picture)
    which = campaign.dataset_id, example_id, picture_shown_to(user, campaign)
    return _bytes_of(request, session, storage, which)


def _bytes_of(
    request: Request,
    session: Session,
    storage: Storage,
    which: tuple[UUID, int, ColumnElement[bool]],
) -> Response:
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    headers = {"Cache-Control": IMMUTABLE}
    if known != {""}:
        etag = f'"{images.example_digest(session, *which)}"'
        if etag in known or "*" in known:
            return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers | {"ETag": etag})
    found = images.example_bytes(session, storage, *which)
    headers["ETag"] = f'"{found.digest}"'
    return Response(found.data, media_type=found.media_type, headers=headers)
