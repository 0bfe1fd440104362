"""Uploads over HTTP: a form, a bare body, or the path of a file on the server. Never held in memory."""

import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, get_args

from anyio import to_thread
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from app.datasets.errors import BadUpload
from app.datasets.schemas import DatasetCreate
from app.datasets.uploads import NamesEncoding, Upload, open_server_file
from app.deps import FORM_TYPES, StorageDep
from app.spelling import reads_body_or, refuse_unknown_fields, refuse_unknown_query, worded
from app.storage import Storage
from clarinet.files.json_text import json_of

WRITE_BYTES = 1024 * 1024
MAX_JSON_BYTES = 64 * 1024
MAX_FILES, MAX_FIELDS = 2, 10
FILES = ("file", "csv")
JSON = "application/json"

NAMED: dict[str, Any] = {
    "name": {"type": "string", "minLength": 1, "maxLength": 120},
    "description": {"type": "string", "maxLength": 4000, "default": ""},
    "kind": {"type": "string", "enum": ["auto", "zip", "npz"], "default": "auto"},
    "skip_bad": {"type": "boolean", "default": False},
    "encoding": {"type": "string", "enum": list(get_args(NamesEncoding)), "default": ""},
}
BINARY = {"type": "string", "format": "binary"}
# The body is streamed, so the framework cannot read these shapes off the signature.
OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {**NAMED, "file": BINARY, "csv": BINARY},
                    "required": ["name", "file"],
                }
            },
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {**NAMED, "path": {"type": "string"}},
                    "required": ["name", "path"],
                }
            },
        },
    },
}
# Of a bare body, which the document tells of in words: as parameters beside fields of the same names they
# would be `name2` in clients that are made of it.
QUERY = (*NAMED, "filename")


@dataclass(frozen=True, slots=True)
class Received:
    """What somebody sent: either files, or the path of one."""

    details: DatasetCreate
    upload: Upload | None


def upload_of_form(form: FormData, details: DatasetCreate | None) -> Upload | None:
    """The files of a form, with or without a CSV; None if it has none."""
    file, table = _file(form, "file"), _file(form, "csv")
    if file is None:
        return None
    upload = Upload(file.file, file.filename or "", **_choices(details))
    return upload if table is None else replace(upload, table=table.file, table_name=table.filename or "")


def _choices(details: DatasetCreate | None) -> dict[str, Any]:
    """What a form says of how its files are to be read."""
    if details is None:
        return {}
    return {"kind": details.kind, "skip_bad": details.skip_bad, "encoding": details.encoding}


def _file(form: FormData, field: str) -> UploadFile | None:
    """The file of a field; browsers send a nameless one for a field that was left empty."""
    value = form.get(field)
    return value if isinstance(value, UploadFile) and value.filename else None


@contextmanager
def opened(details: DatasetCreate, upload: Upload | None, roots: Sequence[Path]) -> Iterator[Upload]:
    """The files that were sent, or the one on the server that was named; raises PathNotAllowed."""
    if upload is not None:
        yield upload
        return
    path = details.path or ""
    with open_server_file(path, roots) as file:
        yield Upload(file, path, **_choices(details))


@reads_body_or(*QUERY)
async def receive(request: Request, storage: StorageDep) -> AsyncIterator[Received]:
    """Take the body in, whatever form it has.

    Raises:
        RequestValidationError: fields are missing, misspelt or of the wrong shape.
        BadUpload: no file, or more JSON than a path needs.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_bare = content_type not in {JSON, *FORM_TYPES}
    refuse_unknown_query(request, QUERY if is_bare else ())
    if content_type == JSON:
        yield Received(_details(await _read_json(request)), None)
    elif not is_bare:
        async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS) as form:
            refuse_unknown_fields(form, NAMED, files=FILES)
            details = _details({name: form[name] for name in NAMED if name in form})
            yield Received(details, _needed(upload_of_form(form, details)))
    else:
        query = dict(request.query_params)
        filename = query.pop("filename", "")
        details = _details(query)
        async for received in _spool(request, storage, details, filename):
            yield received


ReceivedDep = Annotated[Received, Depends(receive)]


def _needed(upload: Upload | None) -> Upload:
    if upload is None:
        raise BadUpload('There is no file in the field "file"; nothing was stored.')
    return upload


def _details(values: object) -> DatasetCreate:
    try:
        return DatasetCreate.model_validate(values)
    except ValidationError as error:
        faults = [
            {**fault, "loc": ("body", *fault["loc"]), "msg": worded(fault, DatasetCreate, fault["loc"])}
            for fault in error.errors(include_url=False)
        ]
        raise RequestValidationError(faults) from error


async def _read_json(request: Request) -> object:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_JSON_BYTES:
            raise BadUpload(f"A JSON body of this address has at most {MAX_JSON_BYTES // 1024} KB.")
    request.state.asked = body
    try:
        values: object = json_of(body)
    except ValueError as error:
        raise BadUpload("The body is no JSON; nothing was stored.") from error
    return values


async def _spool(
    request: Request, storage: Storage, details: DatasetCreate, filename: str
) -> AsyncIterator[Received]:
    folder = storage.path("uploads")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:  # beside the storage: /tmp is memory on many systems
        waiting = bytearray()
        async for chunk in request.stream():
            waiting += chunk
            if len(waiting) >= WRITE_BYTES:
                await to_thread.run_sync(file.write, bytes(waiting))
                waiting.clear()
        file.write(waiting)
        file.seek(0)
        name = PurePosixPath(filename).name or "upload"
        yield Received(details, Upload(file, name, **_choices(details)))
