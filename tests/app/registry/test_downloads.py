"""A model's files leave in streams: whole, in parts, or not at all where the caller has them."""

import io
import tracemalloc
import zipfile
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.journal.models import Action, Entry
from app.registry.files import PIECE, ModelFile, stored_file, zip_pieces
from app.registry.models import Model
from app.registry.ranges import OutsideFile, asked_range, is_among
from app.registry.service import WEIGHTS as NAME
from app.stores.folder import FolderStorage
from tests.app.registry.conftest import WEIGHTS

SIZE = len(WEIGHTS)


def address(model: Model, file: str = NAME) -> str:
    return f"/api/v1/models/{model.id}/files/{file}"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("bytes=0-9", (0, 10)),
        ("bytes=5-", (5, 100)),
        ("bytes=-7", (93, 100)),
        ("bytes=-700", (0, 100)),
        ("bytes=99-1000", (99, 100)),
        ("", None),
        ("bytes=-", None),
        ("bytes=9-3", None),
        ("bytes=0-1,5-6", None),
        ("lines=0-9", None),
        (f"bytes=0-{'9' * 5000}", None),
    ],
)
def test_a_range_is_one_part_or_the_whole(text: str, part: tuple[int, int] | None) -> None:
    assert asked_range(text, 100) == part


@pytest.mark.parametrize("text", ["bytes=100-", "bytes=500-600", "bytes=-0"])
def test_a_range_behind_the_end_is_none(text: str) -> None:
    with pytest.raises(OutsideFile):
        asked_range(text, 100)


def test_an_etag_is_found_among_others() -> None:
    assert [is_among('"a"', given) for given in ('"b", "a"', 'W/"a"', "*", '"b"', "")] == [
        *[True] * 3,
        *[False] * 2,
    ]


def test_a_broken_download_goes_on_where_it_ended(client: TestClient, model: Model) -> None:
    whole = client.get(address(model))
    first = client.get(address(model), headers={"Range": "bytes=0-299"})
    etag = whole.headers["etag"]
    rest = client.get(address(model), headers={"Range": f"bytes={len(first.content)}-", "If-Range": etag})

    assert (whole.status_code, whole.headers["content-length"]) == (200, str(SIZE))
    assert (etag, whole.headers["accept-ranges"]) == (f'"{model.digest}"', "bytes")
    assert (first.status_code, rest.status_code) == (206, 206)
    assert rest.headers["content-range"] == f"bytes 300-{SIZE - 1}/{SIZE}"
    assert first.content + rest.content == whole.content == WEIGHTS


def test_what_has_changed_or_is_there_already_is_told(client: TestClient, model: Model) -> None:
    other = client.get(address(model), headers={"Range": "bytes=300-", "If-Range": '"another"'})
    known = client.get(address(model), headers={"If-None-Match": f'"{model.digest}"'})
    behind = client.get(address(model), headers={"Range": f"bytes={SIZE}-"})

    assert (other.status_code, other.content) == (200, WEIGHTS)
    assert (known.status_code, known.content) == (304, b"")
    assert (behind.status_code, behind.headers["content-range"]) == (416, f"bytes */{SIZE}")
    assert behind.headers["content-type"] == "application/problem+json"


def test_a_look_at_the_head_is_no_download_and_each_part_is_one(
    client: TestClient, session: Session, model: Model
) -> None:
    head = client.head(address(model))
    client.head(f"/api/v1/models/{model.id}/download")
    client.get(address(model), headers={"If-None-Match": head.headers["etag"]})
    client.get(address(model), headers={"Range": "bytes=1-"})

    lines = session.scalars(select(Entry).where(Entry.action == Action.MODEL_DOWNLOADED)).all()
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(SIZE), b"")
    assert [line.details["file"] for line in lines] == [f"{NAME}, bytes 1 to {SIZE - 1}"]


def test_every_file_has_its_name_and_a_card_of_before_is_said(
    client: TestClient, with_onnx: Model, storage: FolderStorage
) -> None:
    card = client.get(address(with_onnx, "MODEL_CARD.md"))
    graph = client.get(address(with_onnx, "model.onnx"))
    odd = client.get(address(with_onnx, "../model.json"))
    storage.path(f"{with_onnx.key}/MODEL_CARD.md").unlink()
    gone = client.get(address(with_onnx, "MODEL_CARD.md"))
    everything = client.get(f"/api/v1/models/{with_onnx.id}/download")

    assert (card.text, graph.content) == ("# Model card", b"graph")
    assert card.headers["content-disposition"].endswith('-seed0.md"')
    assert odd.status_code in {404, 422}
    assert (gone.status_code, gone.json()["type"]) == (404, "/problems/model-file-missing")
    assert sorted(zipfile.ZipFile(io.BytesIO(everything.content)).namelist()) == [
        "model.json",
        "model.onnx",
        "model.safetensors",
    ]


@pytest.mark.parametrize("how", ["file", "zip"])
def test_a_large_model_is_never_in_memory_whole(
    session: Session, storage: FolderStorage, model: Model, how: str
) -> None:
    large = bytes(PIECE) * 40
    model.digest = storage.put(f"{model.key}/{NAME}", large)
    session.commit()

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    pieces = (
        zip_pieces(storage, model)
        if how == "zip"
        else stored_file(storage, model, ModelFile.WEIGHTS).pieces()
    )
    sent = sum(len(piece) for piece in pieces)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()

    assert sent >= len(large)
    assert peak < 6 * PIECE


def test_a_file_that_is_changed_under_the_server_is_found_at_the_next_download(
    client: TestClient, storage: FolderStorage, model: Model
) -> None:
    before = client.get(address(model))
    storage.put(f"{model.key}/{NAME}", b"eight bz" * 100)  # of the same length
    after = client.get(address(model))

    assert before.status_code == 200
    assert (after.status_code, after.json()["type"]) == (409, "/problems/stored-file-damaged")


@pytest.mark.parametrize("path", ["", "/files/model.safetensors", "/aliases/production"])
def test_annotators_have_no_part_of_it(annotator_client: TestClient, model: Model, path: str) -> None:
    method = "PUT" if path.startswith("/aliases") else "GET"
    assert annotator_client.request(method, f"/api/v1/models/{model.id}{path}").status_code == 403
    assert annotator_client.delete(f"/api/v1/models/{uuid4()}").status_code == 403
