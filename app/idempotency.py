"""`Idempotency-Key`: a request that makes or launches something, sent again, makes nothing more.

A key is kept in the transaction that makes the thing, with what was asked for and the id of what was made. So
whoever lost the answer sends the request again and is shown what it made. Keys are forgotten after a day.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from anyio import to_thread
from fastapi import Depends, Header, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy import delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session
from starlette.datastructures import UploadFile

from app.clock import utc_now
from app.deps import FORM_TYPES, CurrentUser
from app.errors import Conflict, NotFound, Unprocessable
from app.request_keys import LIFE, MAX_KEY, IdempotencyKey
from app.spelling import ONCE_FIELD, reads_body

HEADER = "Idempotency-Key"
ASKED = "asked"  # in `request.state`: a body that can be read once, or its digest, by its reader
READ_BYTES = 1024 * 1024
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_INSERT = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class KeyUsedOtherwise(Unprocessable):
    """The Idempotency-Key was sent with another request before."""

    title = "Idempotency-Key used otherwise"

    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key came with another request before. Make a new key for a new request."
        )


class MadeBefore(Conflict):
    """The request was carried out before, and its secret was shown that once."""

    title = "Made before"

    def __init__(self, made: str) -> None:
        super().__init__(
            "This request was carried out before. Its secret was shown once and is not kept: take back "
            "what it made, and make another under a new key.",
            made=made,
        )


class DeletedSince(Conflict):
    """The request was carried out before, and what it made is not there any more."""

    title = "Deleted since"

    def __init__(self, made: str) -> None:
        super().__init__(
            "This request was carried out before, and what it made has been deleted or taken back since. "
            "Nothing was made again. To make it anew, send the request under a new key.",
            made=made,
        )


class SentBefore(Conflict):
    """A page's form was sent before, and what it made was shown that once."""

    title = "Sent before"

    def __init__(self) -> None:
        super().__init__(
            "This form was sent before, and nothing was made again. A link or a secret is shown that once: "
            "if you have not kept it, go back to the page, take back what it made, and make another."
        )


@dataclass(slots=True)
class Once:
    """A request and its key, if it has one. `made`: by the same request before, as far as anybody looked."""

    user_id: UUID
    key: str | None
    request: str
    made: str | None = None

    def made_before(self, session: Session) -> str | None:
        """The id of what this very request made before.

        Raises:
            KeyUsedOtherwise: the key came with another request.
        """
        if self.key is None:
            return None
        row = session.execute(
            select(IdempotencyKey.request, IdempotencyKey.made).where(
                IdempotencyKey.user_id == self.user_id, IdempotencyKey.key == self.key
            )
        ).one_or_none()
        if row is None:
            return None
        if row.request != self.request:
            raise KeyUsedOtherwise
        self.made = str(row.made)
        return self.made

    def begin(self, session: Session, *, now: datetime) -> str | None:
        """Keep the key before anything is made; gives the id of what was made if it was kept already.

        Whoever sends the same at the same time waits here until the other's transaction has ended.
        """
        if self.key is None:
            return None
        own = IdempotencyKey.user_id == self.user_id
        session.execute(delete(IdempotencyKey).where(own, IdempotencyKey.created_at < now - LIFE))
        insert: Any = _INSERT[session.connection().dialect.name](IdempotencyKey)  # each has a type of its own
        values = {
            "user_id": self.user_id,
            "key": self.key,
            "request": self.request,
            "made": "",
            "created_at": now,
        }
        insert = insert.values(**values).on_conflict_do_nothing().returning(IdempotencyKey.key)
        return None if session.scalar(insert) else self.made_before(session)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Where what was made before is not found any more, say that it was, and is deleted.

        Raises:
            DeletedSince: in place of NotFound.
        """
        try:
            yield
        except NotFound as error:
            if self.made is None:
                raise
            raise DeletedSince(self.made) from error

    def end(self, session: Session, made: UUID | int) -> None:
        """Keep what was made."""
        if self.key is not None:
            session.execute(
                update(IdempotencyKey)
                .where(IdempotencyKey.user_id == self.user_id, IdempotencyKey.key == self.key)
                .values(made=str(made))
            )

    def begin_secret(self, session: Session) -> None:
        """As `begin`, where what is made is a secret that cannot be shown again.

        Raises:
            MadeBefore: it was made.
        """
        made = self.begin(session, now=utc_now())
        if made is not None:
            raise MadeBefore(made)

    def begin_form(self, session: Session) -> None:
        """The same for a page's form, which a reload sends again.

        Raises:
            SentBefore: it came before.
        """
        if self.begin(session, now=utc_now()) is not None:
            raise SentBefore


async def get_once(
    request: Request,
    user: CurrentUser,
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=MAX_KEY,
            pattern=f"^{_KEY.pattern}$",
            description="The same request under the same key, within a day, makes nothing more.",
        ),
    ] = None,
) -> AsyncIterator[Once]:
    """What was asked for under which key; a key of odd characters is malformed."""
    keys = request.headers.getlist(HEADER)
    if len(keys) > 1:
        fault = {"type": "value_error", "loc": ("header", HEADER), "msg": "There is more than one"}
        raise RequestValidationError([fault])
    asked = await _digest(request) if idempotency_key is not None else ""
    once = Once(user.id, idempotency_key, asked)
    with once.telling():
        yield once


OnceDep = Annotated[Once, Depends(get_once)]


@reads_body
async def get_form_once(request: Request, user: CurrentUser) -> AsyncIterator[Once]:
    """A page's form and its field `once`, which is another each time that the page is shown.

    Another form from the same page, as after going back, has another key.
    """
    given = (await request.form()).get(ONCE_FIELD)
    once = Once(user.id, None, "")
    if isinstance(given, str) and given:
        asked = await _digest(request)
        once = Once(user.id, hashlib.sha256(f"{given} {asked}".encode()).hexdigest(), asked)
    with once.telling():
        yield once


FormOnceDep = Annotated[Once, Depends(get_form_once)]


async def _digest(request: Request) -> str:
    """Of what was asked for: of a form its texts, names and bytes of its files; of a bare file its bytes."""
    found = hashlib.sha256(f"{request.method} {request.scope['path']}?".encode("utf-8", "surrogatepass"))
    found.update(request.scope["query_string"])
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORM_TYPES:
        for name, value in (await request.form()).multi_items():
            sent = (value.filename, await _digest_of(value)) if isinstance(value, UploadFile) else value
            found.update(repr((name, sent)).encode("utf-8", "surrogatepass"))
    elif hasattr(request.state, ASKED):
        found.update(getattr(request.state, ASKED))  # its reader keeps no more
    else:
        found.update(await request.body())
    return found.hexdigest()


async def _digest_of(file: UploadFile) -> str:
    """Of a file that waits to be read, and waits at its beginning again."""

    def read() -> str:
        digest = hashlib.sha256()
        file.file.seek(0)
        while data := file.file.read(READ_BYTES):
            digest.update(data)
        file.file.seek(0)
        return digest.hexdigest()

    return await to_thread.run_sync(read)
