"""Routes that hand out a model's files: streamed, in parts where a program asks for one, and checked."""

from collections.abc import Iterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, HTTPException, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, Field

from app.access import admin_only
from app.accounts.models import User
from app.deps import CurrentUser, SessionDep, StorageDep, UnitOfWork, UnitOfWorkDep
from app.heads import wants_body
from app.registry import service
from app.registry.files import ModelFile, StoredModelFile, link_to, stored_file, zip_pieces
from app.registry.models import Model
from app.registry.ranges import OutsideFile, asked_range, is_among
from app.storage import Storage

router = APIRouter(tags=["registry"])

BINARY = {"type": "string", "format": "binary"}
OCTETS = {"application/octet-stream": {"schema": BINARY}}
PARTIAL, NOT_MODIFIED, NOT_SATISFIABLE = 206, 304, 416
ELSEWHERE = 307
IN_PARTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file, streamed; its `ETag` is its SHA-256", "content": OCTETS},
    PARTIAL: {"description": "The part that `Range` asks for", "content": OCTETS},
    NOT_MODIFIED: {"description": "It is still the file of `If-None-Match`"},
    ELSEWHERE: {"description": "Where the bucket hands it out: a link of some minutes"},
}


class Part(BaseModel):
    """What a request says of the part that it wants, and of what it has already."""

    range: str = Field("", description="one range, such as bytes=1000-; of several the whole is sent")
    if_range: str = Field("", description="an ETag; if the file is another one by now, the whole is sent")
    if_none_match: str = Field("", description="an ETag; if the file is still this one, nothing is sent")


PartDep = Annotated[Part, Header()]


@router.get(
    "/models/{model_id}/download",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"application/zip": {"schema": BINARY}},
            "description": "weights, cards and, mostly, ONNX",
        }
    },
)
@admin_only
def download_model(
    *,
    request: Request,
    model_id: UUID,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
    work: UnitOfWorkDep,
) -> StreamingResponse:
    """A zip of the weights (safetensors), the card (JSON, Markdown) and the ONNX file, if there is one.

    It is made while it is sent. To go on after an interruption, ask for `files/` one by one.
    """
    model = service.get_model(session, model_id, by=user)
    pieces = filter(None, zip_pieces(storage, model))
    if wants_body(request):
        _note(work, model, user, "zip")
    return StreamingResponse(
        pieces if wants_body(request) else iter(()),
        media_type="application/zip",
        headers=_headers(model, "zip") | {"Accept-Ranges": "none"},
    )


@router.get("/models/{model_id}/onnx", response_class=StreamingResponse, responses=IN_PARTS)
@admin_only
def download_onnx(
    *,
    request: Request,
    model_id: UUID,
    part: PartDep,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
    work: UnitOfWorkDep,
) -> Response:
    """The model as ONNX: images as uint8 (N, H, W, C) in, probabilities (N, K) out."""
    model = service.get_model(session, model_id, by=user)
    if linked := _link(request, storage, model, ModelFile.ONNX, by=user, work=work):
        return linked
    stored = stored_file(storage, model, ModelFile.ONNX)
    return _send(request, model, stored, part, ModelFile.ONNX, by=user, work=work)


@router.get("/models/{model_id}/files/{file}", response_class=StreamingResponse, responses=IN_PARTS)
@admin_only
def download_model_file(
    *,
    request: Request,
    model_id: UUID,
    file: ModelFile,
    part: PartDep,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
    work: UnitOfWorkDep,
) -> Response:
    """One file of a model: its weights, its ONNX file, or its card as a page of Markdown."""
    model = service.get_model(session, model_id, by=user)
    if linked := _link(request, storage, model, file, by=user, work=work):
        return linked
    return _send(request, model, stored_file(storage, model, file), part, file, by=user, work=work)


def _link(
    request: Request, storage: Storage, model: Model, which: ModelFile, *, by: User, work: UnitOfWork
) -> Response | None:
    """The way to the file in a bucket, where the operator lets it hand files out; the caller may have it."""
    if not wants_body(request) or (url := link_to(storage, model, which)) is None:
        return None
    _note(work, model, by, f"{which}, by a link to the bucket")
    return RedirectResponse(url, ELSEWHERE, _headers(model, which.partition(".")[2]))


def _send(
    request: Request,
    model: Model,
    stored: StoredModelFile,
    part: Part,
    which: ModelFile,
    *,
    by: User,
    work: UnitOfWork,
) -> Response:
    etag = f'"{stored.digest}"'
    headers = {"ETag": etag, "Accept-Ranges": "bytes"} | _headers(model, which.partition(".")[2])
    if is_among(etag, part.if_none_match):
        return Response(status_code=NOT_MODIFIED, headers=headers)
    try:
        is_asked = part.if_range in {"", etag}
        found = asked_range(part.range, stored.size) if is_asked else None
    except OutsideFile:
        raise HTTPException(
            NOT_SATISFIABLE,
            f"The file has {stored.size} bytes, and the range begins behind them.",
            headers={"Content-Range": f"bytes */{stored.size}"},
        ) from None
    start, stop = found or (0, stored.size)
    headers["Content-Length"] = str(stop - start)
    if found:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{stored.size}"
    pieces: Iterator[bytes] = iter(())
    if wants_body(request):
        pieces = stored.pieces(start, stop)
        _note(work, model, by, which if found is None else f"{which}, bytes {start} to {stop - 1}")
    status = PARTIAL if found else 200
    return StreamingResponse(pieces, status, headers, media_type=which.media_type)


def _note(work: UnitOfWork, model: Model, by: User, file: str) -> None:
    with work() as writing:
        service.note_download(writing, model, by=by, file=file)


def _headers(model: Model, ending: str) -> dict[str, str]:
    name = f"clarinet-run{model.card['run']}-seed{model.card['seed']}.{ending}"
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
