"""The JSON API's route of images: who may see one follows from campaigns over its dataset, and answers."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request, Response, status

from app.access import signed_in
from app.annotation.own import image_shown_to
from app.datasets import images
from app.datasets.receiving import BINARY
from app.deps import CurrentUser, SessionDep, StorageDep

router = APIRouter(tags=["datasets"])

# What both databases can compare with a column; anything larger would be their error, not a 404.
ExampleId = Annotated[int, Path(ge=1, le=2**63 - 1)]
# The bytes of an example never change: further images are further examples. Private, because one must be
# signed in.
IMMUTABLE = "private, max-age=31536000, immutable"


@router.get(
    "/datasets/{dataset_id}/examples/{example_id}/image",
    name="example_image",
    response_class=Response,
    responses={
        200: {
            "description": "The bytes",
            "content": {"image/png": {"schema": BINARY}, "image/jpeg": {"schema": BINARY}},
        },
        304: {"description": "Not Modified"},
    },
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
    """The picture of an example: for members of a campaign over it while that is open, and for admins.

    Members see what they answered about afterwards, too.
    """
    is_visible = image_shown_to(user)
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    headers = {"Cache-Control": IMMUTABLE}
    if known != {""}:
        etag = f'"{images.example_digest(session, dataset_id, example_id, is_visible)}"'
        if etag in known or "*" in known:
            return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers | {"ETag": etag})
    found = images.example_bytes(session, storage, dataset_id, example_id, is_visible)
    headers["ETag"] = f'"{found.digest}"'
    return Response(found.data, media_type=found.media_type, headers=headers)
