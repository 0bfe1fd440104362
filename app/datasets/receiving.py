"""Uploads over HTTP: a form, a bare body, or the path of a file on the server. Never held in memory."""

import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, TypeVar, get_args

from anyio import to_thread
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from app.datasets.errors import BadUpload
from app.datasets.intake.limits import MAX_CLASS_NAME_LENGTH
from app.datasets.schemas import MAX_CLASSES_TEXT, DatasetCreate, ImagesAdd
from app.datasets.uploads import FirstClass, NamesEncoding, Upload, open_server_file
from app.deps import FORM_TYPES, StorageDep
from app.idempotency import ASKED
from app.spelling import reads_body_or, refuse_unknown_fields, refuse_unknown_query, worded
from app.storage import Storage
from clarinet.files.json_text import json_of

Details = TypeVar("Details", DatasetCreate, ImagesAdd)

WRITE_BYTES = 1024 * 1024
MAX_JSON_BYTES = 64 * 1024
MAX_FILES, MAX_FIELDS = 2, 12
FILES = ("file", "csv")
JSON = "application/json"

SENT: dict[str, Any] = {
    "kind": {"type": "string", "enum": ["auto", "zip", "npz"], "default": "auto"},
    "skip_bad": {"type": "boolean", "default": False},
    "encoding": {"type": "string", "enum": list(get_args(NamesEncoding)), "default": ""},
    "classes": {"type": "string", "maxLength": MAX_CLASSES_TEXT, "default": ""},
    "first_class": {"type": "string", "enum": list(get_args(FirstClass)), "default": ""},
    "no_label": {"type": "string", "maxLength": MAX_CLASS_NAME_LENGTH, "default": ""},
}
NAMED: dict[str, Any] = {
    "name": {"type": "string", "minLength": 1, "maxLength": 120},
    "description": {"type": "string", "maxLength": 4000, "default": ""},
    **SENT,
}
ADDED: dict[str, Any] = {**SENT, "skip_known": {"type": "boolean", "default": True}}
BINARY = {"type": "string", "format": "binary"}


def openapi(named: dict[str, Any]) -> dict[str, Any]:
    """The body of a route in all its shapes: it is streamed, so the framework cannot read them off."""
    needed = [name for name in ("name",) if name in named]
    return {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "properties": {**named, "file": BINARY, "csv": BINARY},
                        "required": [*needed, "file"],
                    }
                },
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {**named, "path": {"type": "string"}},
                        "required": [*needed, "path"],
                    }
                },
            },
        },
    }


@dataclass(frozen=True, slots=True)
class Received(Generic[Details]):
    """What somebody sent: either files, or the path of one."""

    details: Details
    upload: Upload | None


def upload_of_form(form: FormData, details: DatasetCreate | ImagesAdd | None) -> Upload | None:
    """The files of a form, with or without a CSV; None if it has none."""
    file, table = _file(form, "file"), _file(form, "csv")
    if file is None:
        return None
    upload = Upload(file.file, file.filename or "", **_choices(details))
    return upload if table is None else replace(upload, table=table.file, table_name=table.filename or "")


def _choices(details: DatasetCreate | ImagesAdd | None) -> dict[str, Any]:
    """What a form says of how its files are to be read."""
    if details is None:
        return {}
    return {name: getattr(details, name) for name in SENT}


def _file(form: FormData, field: str) -> UploadFile | None:
    """The file of a field; browsers send a nameless one for a field that was left empty."""
    value = form.get(field)
    return value if isinstance(value, UploadFile) and value.filename else None


@contextmanager
def opened(
    details: DatasetCreate | ImagesAdd, upload: Upload | None, roots: Sequence[Path]
) -> Iterator[Upload]:
    """The files that were sent, or the one on the server that was named; raises PathNotAllowed."""
    if upload is not None:
        yield upload
        return
    path = details.path or ""
    with open_server_file(path, roots) as file:
        yield Upload(file, path, **_choices(details))


def receiver(schema: type[Details], named: dict[str, Any]) -> Callable[..., AsyncIterator[Received[Details]]]:
    """What a route that takes files depends on.

    A bare body has the other fields in the address. The document tells of them in words: as parameters beside
    fields of the same names they would be `name2` in clients that are made of it.
    """
    query = (*named, "filename")

    @reads_body_or(*query)
    async def receive(request: Request, storage: StorageDep) -> AsyncIterator[Received[Details]]:
        """Take the body in, whatever form it has.

        Raises:
            RequestValidationError: fields are missing, misspelt or of the wrong shape.
            BadUpload: no file, or more JSON than a path needs.
        """
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_bare = content_type not in {JSON, *FORM_TYPES}
        refuse_unknown_query(request, query if is_bare else ())
        if content_type == JSON:
            yield Received(_details(schema, await _read_json(request)), None)
        elif not is_bare:
            async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS) as form:
                refuse_unknown_fields(form, named, files=FILES)
                details = _details(schema, {name: form[name] for name in named if name in form})
                yield Received(details, _needed(upload_of_form(form, details)))
        else:
            values = dict(request.query_params)
            filename = values.pop("filename", "")
            details = _details(schema, values)
            async for upload in _spool(request, storage, details, filename):
                yield Received(details, upload)

    return receive


DatasetDep = Annotated[Received[DatasetCreate], Depends(receiver(DatasetCreate, NAMED))]
ImagesDep = Annotated[Received[ImagesAdd], Depends(receiver(ImagesAdd, ADDED))]


def _needed(upload: Upload | None) -> Upload:
    if upload is None:
        raise BadUpload('There is no file in the field "file"; nothing was stored.')
    return upload


def _details(schema: type[Details], values: object) -> Details:
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        raise RequestValidationError(_faults(error, schema)) from error


def _faults(error: ValidationError, schema: type[DatasetCreate] | type[ImagesAdd]) -> list[dict[str, Any]]:
    """What is wrong, in words, as the framework lists faults of a body."""
    return [
        {**fault, "loc": ("body", *fault["loc"]), "msg": worded(fault, schema, fault["loc"])}
        for fault in error.errors(include_url=False)
    ]


async def _read_json(request: Request) -> object:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_JSON_BYTES:
            raise BadUpload(f"A JSON body of this address has at most {MAX_JSON_BYTES // 1024} KB.")
    setattr(request.state, ASKED, body)
    try:
        values: object = json_of(body)
    except ValueError as error:
        raise BadUpload("The body is no JSON; nothing was stored.") from error
    return values


async def _spool(
    request: Request, storage: Storage, details: DatasetCreate | ImagesAdd, filename: str
) -> AsyncIterator[Upload]:
    with tempfile.TemporaryFile(dir=storage.spool()) as file:
        digest = hashlib.sha256()

        def keep(data: bytes) -> None:
            digest.update(data)
            file.write(data)

        waiting = bytearray()
        async for chunk in request.stream():
            waiting += chunk
            if len(waiting) >= WRITE_BYTES:
                await to_thread.run_sync(keep, bytes(waiting))
                waiting.clear()
        keep(bytes(waiting))
        file.seek(0)
        setattr(request.state, ASKED, digest.digest())
        name = PurePosixPath(filename).name or "upload"
        yield Upload(file, name, **_choices(details))
