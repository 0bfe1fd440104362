"""Pictures that somebody sends to be predicted: one as a bare body, or several in a form."""

from typing import Annotated, Any

from anyio import to_thread
from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from app.deps import FORM_TYPES, require_access_still
from app.registry.inference.limits import MOST_BYTES, MOST_PICTURES
from app.registry.predict_errors import NoPicture, TooManyPictures
from app.registry.predictor import Sent
from app.spelling import CSRF_FIELD, no_such, reads_body_or, refuse, refuse_unknown_query

FIELD, NAME = "pictures", "filename"
BINARY = {"type": "string", "format": "binary"}
OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {FIELD: {"type": "array", "items": BINARY, "maxItems": MOST_PICTURES}},
                    "required": [FIELD],
                }
            },
            "application/octet-stream": {"schema": BINARY},
        },
    }
}


def is_bare(request: Request) -> bool:
    """Whether the body is a picture itself, and no form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind not in FORM_TYPES


@reads_body_or(NAME)
async def receive_pictures(request: Request) -> list[Sent]:
    """The pictures of a request in their order, each with a name.

    Raises:
        NotSignedIn, NotAllowed: who sends them may not any more, now that they have arrived.
        RequestValidationError: a field is misspelt.
        NoPicture, TooManyPictures: there is none, or more than one request may have.
    """
    if is_bare(request):
        refuse_unknown_query(request, (NAME,))
        data = await request.body()
        await to_thread.run_sync(require_access_still, request)
        if not data:
            raise NoPicture
        return [Sent(request.query_params.get(NAME) or "The picture", data)]
    refuse_unknown_query(request, ())
    async with request.form() as form:
        await to_thread.run_sync(require_access_still, request)
        files = [value for value in form.getlist(FIELD) if isinstance(value, UploadFile) and value.filename]
        unknown = dict.fromkeys(name for name in form if name not in {FIELD, CSRF_FIELD})
        refuse("body", [(name, no_such(name, (FIELD,))) for name in unknown])
        if not files:
            raise NoPicture
        if len(files) > MOST_PICTURES or sum(file.size or 0 for file in files) > MOST_BYTES:
            raise TooManyPictures
        return [Sent(file.filename or "", await file.read()) for file in files]


PicturesDep = Annotated[list[Sent], Depends(receive_pictures)]
