"""Pictures that are sent to be predicted, by programs and on a model's page."""

import asyncio
import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote
from uuid import uuid4

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Scope, User
from app.clock import utc_now
from app.db import Database
from app.registry.asking import ask
from app.registry.inference.limits import MOST_PICTURES
from app.registry.models import Model
from app.registry.predictor import Predictor, Sent
from app.stores.folder import FolderStorage
from tests.onnx_models import bright_onnx, make_model
from tests.pictures import grey_png

HTML = {"accept": "text/html"}
BARE = {"content-type": "application/octet-stream"}


@pytest.fixture(scope="module")
def warm() -> Iterator[Predictor]:
    """One process for all of these tests."""
    with Predictor() as predictor:
        yield predictor


@pytest.fixture(autouse=True)
def _predictor(app: FastAPI, warm: Predictor) -> None:
    app.state.predictor = warm


@pytest.fixture
def model(session: Session, storage: FolderStorage) -> Model:
    """It tells dark pictures from light ones."""
    return make_model(session, storage)


def files(*pictures: tuple[str, bytes]) -> list[tuple[str, tuple[str, bytes]]]:
    return [("pictures", picture) for picture in pictures]


def path(model: Model, *, page: bool = False) -> str:
    return f"{'' if page else '/api/v1'}/models/{model.id}/predict"


def test_an_alias_predicts_by_its_version_and_the_answer_names_it(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    """A name may have a slash in it, or look like an address."""
    name, models = "Shop / aliases/x", []
    for levels in ([0, 255], [255, 0]):
        model = make_model(session, storage, onnx_file=bright_onnx(levels))
        assert client.patch(f"/api/v1/models/{model.id}", json={"name": name}).is_success
        models.append(model)
    here = f"/api/v1/model-names/{quote(name, safe='')}/aliases/production/predict"

    early = client.post(here, content=grey_png(250), headers=BARE)
    answers = []
    for model in models:
        client.put(f"/api/v1/models/{model.id}/aliases/production")
        answers.append(client.post(here, files=files(("a.png", grey_png(250)))).json())

    assert (early.status_code, early.json()["type"]) == (404, "/problems/alias-not-found")
    assert [(said["name"], said["version"], said["digest"]) for said in answers] == [
        (name, number, model.digest) for number, model in enumerate(models, start=1)
    ]
    assert [said["pictures"][0]["predicted_class"] for said in answers] == ["light", "dark"]


def test_one_picture_is_the_body(client: TestClient, model: Model) -> None:
    answer = client.post(path(model), content=grey_png(250), headers=BARE, params={"filename": "a.png"})

    said = answer.json()
    assert answer.status_code == 200
    assert (said["model_id"], said["digest"], said["classes"]) == (
        str(model.id),
        model.digest,
        ["dark", "light"],
    )
    [picture] = said["pictures"]
    assert (picture["name"], picture["predicted_class"], picture["refused"]) == ("a.png", "light", None)
    assert sum(picture["probabilities"]) == pytest.approx(1, abs=1e-5)


def test_of_several_bad_ones_are_refused_with_a_sentence_and_the_others_answered(
    client: TestClient, model: Model
) -> None:
    sent = files(("dark.png", grey_png(3)), ("notes.txt", b"no picture"), ("light.png", grey_png(240)))

    pictures = client.post(path(model), files=sent).json()["pictures"]

    assert [one["predicted_class"] for one in pictures] == ["dark", None, "light"]
    assert pictures[1]["probabilities"] is None
    assert pictures[1]["refused"].startswith('"notes.txt" is not a PNG, JPEG')


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        ({"content": b"no picture", "headers": BARE}, "picture-refused"),
        ({"content": b"", "headers": BARE}, "no-picture"),
        ({"data": {"csrf_token": "x"}}, "no-picture"),
        ({"files": files(*[("a.png", b"x")] * (MOST_PICTURES + 1))}, "too-many-pictures"),
        ({"files": [("picture", ("a.png", b"x"))]}, "malformed-request"),
    ],
)
def test_what_cannot_be_predicted_is_a_problem_in_words(
    client: TestClient, model: Model, request_: dict[str, Any], kind: str
) -> None:
    answer = client.post(path(model), **request_)

    assert (answer.status_code, answer.json()["type"]) == (422, f"/problems/{kind}")


def test_a_model_without_onnx_says_so_in_words(client: TestClient, session: Session, model: Model) -> None:
    model.card = model.card | {"onnx": {"missing": "ONNX export needs the package onnx"}}
    session.commit()

    answer = client.post(path(model), content=grey_png(1), headers=BARE)
    pages = [client.get(f"/models/{model.id}{rest}", headers=HTML).text for rest in ("", "/predictions")]

    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/model-without-onnx")
    for page in pages:
        assert "no ONNX file: ONNX export needs the package onnx" in page
        assert "/predict" not in re.findall(r'<form[^>]*action="([^"]*)"', page)


def test_a_lost_or_damaged_file_is_said(client: TestClient, storage: FolderStorage, model: Model) -> None:
    storage.put(f"{model.key}/model.onnx", b"another")
    damaged = client.post(path(model), content=grey_png(1), headers=BARE)
    storage.delete_tree(model.key)
    lost = client.post(path(model), content=grey_png(1), headers=BARE)

    assert (damaged.status_code, damaged.json()["type"]) == (409, "/problems/stored-file-damaged")
    assert (lost.status_code, lost.json()["type"]) == (409, "/problems/stored-file-missing")


def test_too_much_is_told_to_come_again(app: FastAPI, client: TestClient, model: Model) -> None:
    app.state.predictor = Predictor()
    app.state.predictor.close()

    program = client.post(path(model), content=grey_png(1), headers=BARE)
    page = client.post(path(model, page=True), files=files(("a.png", grey_png(1))), headers=HTML)

    assert (program.status_code, program.json()["type"]) == (429, "/problems/predictor-busy")
    assert int(program.headers["retry-after"]) > 0
    assert page.status_code == 422
    assert "Send them again in a moment." in page.text


def test_who_may_predict(
    client: TestClient, annotator_client: TestClient, session: Session, admin: User, model: Model
) -> None:
    """It changes nothing, so that a token that may only read may predict."""
    found = {}
    for scope in Scope:
        _, secret = accounts.create_token(session, admin, scope, scope=scope, now=utc_now())
        session.commit()
        headers = BARE | {"Authorization": f"Bearer {secret}"}
        found[scope] = client.post(path(model), content=grey_png(1), headers=headers).status_code

    assert found == {Scope.READ: 200, Scope.ANNOTATE: 403, Scope.MANAGE: 200}
    assert annotator_client.post(path(model), content=grey_png(1), headers=BARE).status_code == 403
    assert client.post(f"/api/v1/models/{uuid4()}/predict", content=b"x", headers=BARE).status_code == 404


def test_past_the_framework_a_request_means_what_it_means_there(
    client: TestClient, annotator_client: TestClient, session: Session, model: Model
) -> None:
    """A body whose length is not declared goes to the framework."""
    lost = make_model(session, client.app.state.storage)  # type: ignore[attr-defined]
    client.app.state.storage.delete_tree(lost.key)  # type: ignore[attr-defined]
    png, here, elsewhere = grey_png(250), path(model), f"/api/v1/models/{uuid4()}/predict"
    boundary = {"content-type": "multipart/form-data; boundary=x"}
    form = b'--x\r\nContent-Disposition: form-data; name="pictures"; filename="a.png"\r\n\r\n%b\r\n--x--\r\n'
    asked: list[tuple[str, dict[str, str], bytes]] = [
        (f"{here}?filename=a.png", BARE, png),
        (here, boundary, form % png),
        (here, boundary, form % b"no picture"),
        (here, boundary, form.replace(b"pictures", b"picture") % png),
        (here, boundary, b"--x--\r\n"),
        (here, BARE, b"no picture"),
        (f"{here}?name=a.png", BARE, png),
        (f"{elsewhere}?name=a.png", BARE, png),
        (elsewhere, BARE, png),
        (path(lost), BARE, png),
        (here, BARE | {"Authorization": "Bearer of nobody"}, png),
        (here, {"content-type": "text/plain; charset=latin-1"}, png),
    ]

    for address, headers, body in asked:
        for program in (client, annotator_client):
            fast = program.post(address, headers=headers, content=body)
            plain = program.post(address, headers=headers, content=iter([body]))
            assert "content-length" in fast.request.headers
            assert "content-length" not in plain.request.headers
            assert (fast.status_code, without_id(fast.text)) == (plain.status_code, without_id(plain.text))
            assert set(fast.headers) == set(plain.headers)


def without_id(text: str) -> str:
    return re.sub(r'"request_id":\s*"[^"]*"', "", text)


def test_what_is_kept_of_a_model_tells_no_old_name_and_predicts_by_none_that_is_gone(
    client: TestClient, session: Session, model: Model
) -> None:
    before = client.post(path(model), content=grey_png(1), headers=BARE).json()
    client.patch(f"/api/v1/models/{model.id}", json={"name": "Shop"})
    renamed = client.post(path(model), content=grey_png(1), headers=BARE).json()
    session.delete(session.get_one(Model, model.id))
    session.commit()
    gone = client.post(path(model), content=grey_png(1), headers=BARE)

    assert (renamed["name"], renamed["version"]) == ("Shop", 1) != (before["name"], before["version"])
    assert (gone.status_code, gone.json()["type"]) == (404, "/problems/model-not-found")


def test_the_page_shows_classes_bars_and_what_the_network_sees(client: TestClient, model: Model) -> None:
    sent = files(("<dark>.png", grey_png(3)), ("notes.txt", b"no picture"))

    form = client.get(f"/models/{model.id}", headers=HTML).text
    page = client.post(path(model, page=True), files=sent, headers=HTML)
    part = client.post(path(model, page=True), files=sent, headers=HTML | {"HX-Request": "true"})
    nothing = client.post(path(model, page=True), files=files(("", b"")), headers=HTML)

    assert f'action="{path(model, page=True)}"' in form
    assert page.status_code == 200
    for told in (
        "<strong>dark</strong>",
        "&lt;dark&gt;.png",
        "data:image/png;base64,",
        "<meter value=",
        "is not a",
    ):
        assert told in page.text
        assert told in part.text
    assert "<html" in page.text
    assert "<html" not in part.text
    assert nothing.status_code == 422


class OneAtATime:
    """A test has one connection, which threads cannot share."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self.read = self

    @contextmanager
    def begin(self) -> Iterator[Session]:
        with self._lock, self._database.read.begin() as session:
            yield session


def test_a_name_that_moves_never_mixes_two_models_in_one_response(
    warm: Predictor, database: Database, session: Session, storage: FolderStorage
) -> None:
    """The second says of every picture the opposite, in other words."""
    opposite = make_model(session, storage, classes=("hell", "dunkel"), onnx_file=bright_onnx([0, 255]))
    plain = make_model(session, storage)
    light = {plain.id: ("light", plain.digest), opposite.id: ("dunkel", opposite.digest)}
    turn = itertools.cycle([plain.id, opposite.id])
    asked = 0

    def resolve(session: Session) -> Model:
        nonlocal asked
        asked += 1
        return session.get_one(Model, next(turn))

    state = SimpleNamespace(database=OneAtATime(database), storage=storage, predictor=warm)
    request = cast("Request", SimpleNamespace(app=SimpleNamespace(state=state)))
    pictures = [Sent(f"{place}", grey_png(250)) for place in range(5)]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(ask(request, resolve, pictures) for _ in range(12)))

    answers = asyncio.run(all_at_once())

    assert asked == 12
    assert {served.id for served, _ in answers} == set(light)
    for served, predicted in answers:
        word, digest = light[served.id]
        assert served.digest == digest
        assert [one.predicted_class for one in predicted] == [word] * 5
