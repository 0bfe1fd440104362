"""Who may not any more when all of their request has arrived: nothing of it is stored."""

import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import anyio
import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from app.accounts import callers, credentials, people
from app.accounts.models import Role, User
from app.clock import utc_now
from app.datasets.models import Dataset, DatasetVersion
from app.deps import get_form, get_session
from app.labels.models import LabelImport
from app.members.erasing import erase_person
from app.registry.pictures_sent import receive_pictures
from app.stores.folder import FolderStorage
from tests.asgi import Answer, ask
from tests.factories import make_campaign, make_dataset, make_token, make_user
from tests.onnx_models import make_model
from tests.pictures import grey_png

BOUNDARY = b"----apart"
FORM = b"multipart/form-data; boundary=" + BOUNDARY
ZIP = b"PK\x03\x04"
BARE = b"application/octet-stream"
LABELS = b"position,class,answer\n0,0,no\n"
End = Callable[[Session, User], None]


def form(field: str, data: bytes, **fields: str) -> bytes:
    """A form with one file."""
    parts = [f'Content-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}' for key in fields]
    parts.append(
        f'Content-Disposition: form-data; name="{field}"; filename="sent"\r\n\r\n{data.decode("latin-1")}'
    )
    joined = b"".join(b"--" + BOUNDARY + b"\r\n" + part.encode("latin-1") + b"\r\n" for part in parts)
    return joined + b"--" + BOUNDARY + b"--\r\n"


def disabled(session: Session, user: User) -> None:
    """Somebody locks them out."""
    other = make_user(session, role="admin")
    people.set_disabled(session, user.id, disabled=True, by=other, now=utc_now())


def demoted(session: Session, user: User) -> None:
    """They are no admin any more."""
    make_user(session, role="admin")
    people.set_role(session, user.id, Role.ANNOTATOR, by=None, now=utc_now())


def erased(session: Session, user: User) -> None:
    """Nobody is behind the account."""
    make_user(session, role="admin")
    erase_person(session, user.id, name=user.name, by=None, now=utc_now())


def signed_out(session: Session, user: User) -> None:
    """Their sessions and tokens end."""
    credentials.end_credentials(session, user.id, now=utc_now())


def only_demoted(session: Session, user: User) -> None:
    """The row alone says that they are no admin: whatever they signed in with would go on."""
    session.execute(update(User).where(User.id == user.id).values(role=Role.ANNOTATOR))


@pytest.fixture
def sending(app: FastAPI, session: Session, admin: User) -> Callable[..., Answer]:
    """Sends a request in two halves, by a token or by a cookie; in between something ends."""

    def send(
        path: str, body: bytes, end: End, *, kind: bytes = FORM, by_cookie: bool = False, pause_s: float = 0
    ) -> Answer:
        if by_cookie:
            secret = credentials.start_session(session, admin, now=utc_now())
            token = callers.csrf_token(app.state.settings.signing_secret(), secret)
            headers = [("cookie", f"clarinet={secret}".encode()), ("x-csrf-token", token.encode())]
        else:
            headers = [("authorization", f"Bearer {make_token(session, admin)}".encode())]
        session.commit()

        def halves() -> Iterator[bytes]:
            yield body[:40]
            end(session, session.get_one(User, admin.id))
            session.commit()
            time.sleep(pause_s)
            yield body[40:]

        there, _, query = path.partition("?")
        return ask(
            app, "POST", there, [*headers, ("content-type", kind)], query=query.encode(), body=halves()
        )

    return send


def count(session: Session, model: Any) -> int:
    """Rows of a table."""
    return session.scalars(select(func.count()).select_from(model)).one()


@pytest.mark.parametrize("end", [disabled, demoted, erased, signed_out])
@pytest.mark.parametrize("by_cookie", [False, True], ids=["token", "cookie"])
def test_a_dataset_of_somebody_who_may_not_any_more_is_not_kept(
    sending: Callable[..., Answer], session: Session, end: End, *, by_cookie: bool
) -> None:
    answer = sending("/api/v1/datasets", form("file", ZIP, name="late"), end, by_cookie=by_cookie)

    assert answer.status == 401
    assert count(session, Dataset) == 0


@pytest.mark.parametrize(
    ("what", "page"),
    [("bare", "/api/v1"), *product(("dataset", "images", "labels"), ("", "/api/v1"))],
)
def test_no_file_of_somebody_who_is_no_admin_any_more_is_kept(
    sending: Callable[..., Answer], session: Session, storage: FolderStorage, what: str, page: str
) -> None:
    dataset = make_dataset(session, storage)
    campaign = make_campaign(session, dataset=dataset)
    session.commit()
    before = [count(session, table) for table in (Dataset, DatasetVersion, LabelImport)]
    path, kind, body = {
        "dataset": ("/datasets" if page else "/datasets/new", FORM, form("file", ZIP, name="late")),
        "bare": ("/datasets?name=late", BARE, ZIP * 100),
        "images": (
            f"/datasets/{dataset.id}/images{'' if page else '/new'}",
            FORM,
            form("file", ZIP),
        ),
        "labels": (f"/campaigns/{campaign.id}/imports", FORM, form("file", LABELS)),
    }[what]

    answer = sending(page + path, body, only_demoted, kind=kind, by_cookie=page == "")

    assert answer.status == 403
    assert [count(session, table) for table in (Dataset, DatasetVersion, LabelImport)] == before


@pytest.mark.parametrize("kind", [FORM, BARE], ids=["form", "bare"])
def test_nothing_is_predicted_for_somebody_who_is_no_admin_any_more(
    sending: Callable[..., Answer], session: Session, storage: FolderStorage, kind: bytes
) -> None:
    model = make_model(session, storage)
    body = form("pictures", grey_png(250)) if kind == FORM else grey_png(250)

    answer = sending(f"/api/v1/models/{model.id}/predict", body, only_demoted, kind=kind, pause_s=1.1)

    assert answer.status == 403


def test_whoever_sends_slowly_and_still_may_is_served(
    sending: Callable[..., Answer], session: Session
) -> None:
    answer = sending("/api/v1/datasets", form("file", ZIP, name="slow"), lambda *_: None)

    assert answer.status == 202
    assert count(session, Dataset) == 1


def test_no_route_begins_its_transaction_before_the_form_has_arrived(app: FastAPI) -> None:
    """What it would ask there about its caller would be old by the time it stores something."""

    def calls(dependant: Dependant) -> Iterator[object]:
        for inner in dependant.dependencies:
            yield from calls(inner)
            yield inner.call

    seen = 0
    for route in iter_route_contexts(app.routes):
        dependant = getattr(route, "dependant", None)
        found = [] if dependant is None else list(calls(dependant))
        reads = [
            place
            for place, call in enumerate(found)
            if call in (get_form, receive_pictures) or getattr(call, "__name__", "") == "receive"
        ]
        if reads and get_session in found:
            seen += 1
            assert max(reads) < found.index(get_session), route.path
    assert seen > 20


@pytest.mark.parametrize(
    "what", ["form", "page", "bare", "json", "other json", "answers", "picture", "nothing"]
)
def test_who_goes_away_while_sending_is_no_mistake_of_ours(
    app: FastAPI, session: Session, admin: User, what: str
) -> None:
    campaign, token = make_campaign(session), make_token(session, admin)
    path, kind, body = {
        "form": ("/api/v1/datasets", FORM, form("file", ZIP, name="cut")),
        "page": ("/datasets/new", FORM, form("file", ZIP, name="cut")),
        "bare": ("/api/v1/datasets", BARE, ZIP),
        "json": ("/api/v1/campaigns", b"application/json", b'{"name": "cut"}'),
        "other json": ("/api/v1/datasets", b"application/json", b'{"name": "cut"}'),
        "answers": (f"/api/v1/campaigns/{campaign.id}/answers", b"application/json", b'{"answers": []}'),
        "picture": (f"/api/v1/models/{campaign.id}/predict", BARE, grey_png(1)),
        "nothing": ("/api/v1/datasets", FORM, b""),
    }[what]
    headers = [("authorization", f"Bearer {token}".encode()), ("content-type", kind)]
    query = b"name=cut" if what == "bare" else b""

    with capture_logs() as said:
        ask(app, "POST", path, headers, query=query, body=[body[:-5]] if body else [], is_cut_off=True)

    assert [(line["event"], line["status"]) for line in said] == [("request.finished", 499)]
    measured = anyio.run(app.state.metrics.text).decode()
    assert 'status="499"' in measured
    assert 'status="5' not in measured
    assert count(session, Dataset) == 1  # the campaign's
