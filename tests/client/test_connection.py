"""The client and a real server that is slow to come back, refuses, or breaks off."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from clarinet_client import (
    Client,
    ClientError,
    Conflict,
    Failed,
    Malformed,
    NotFound,
    NotSignedIn,
    Refused,
    ServerAway,
    TookTooLong,
    Unavailable,
)
from clarinet_client.annotation import answer_to
from tests.live import free_port
from tests.receiving import LOST, Receiver, Reply


def ok(body: Any, **headers: str) -> Reply:
    return 200, body, {name.replace("_", "-"): value for name, value in headers.items()}


def problem(status: int, detail: str, **more: Any) -> Reply:
    told = {"type": "/problems/x", "title": "X", "status": status, "detail": detail, **more}
    return status, told, {"Content-Type": "application/problem+json"}


DATASET: dict[str, Any] = {"id": "d", "name": "Photos", "state": "ready", "faults": [], "failure": None}
PAGE = {"items": [DATASET], "next": None}


@pytest.fixture
def server() -> Iterator[Receiver]:
    server = Receiver()
    yield server
    server.close()


@pytest.fixture
def client(server: Receiver) -> Iterator[Client]:
    with Client(server.url, "t", patience_s=5) as client:
        yield client


def test_what_makes_something_is_repeated_under_one_key_until_it_is_answered(
    server: Receiver, client: Client
) -> None:
    server.will(LOST, problem(503, "Restarting."), ok(DATASET))

    made = client.datasets.send(BytesIO(b"images"), filename="a.zip", name="Photos", skip_bad=True)

    assert made["id"] == "d"
    assert len({headers["idempotency-key"] for _, _, headers, _ in server.asked}) == 1
    bodies = [body for _, _, _, body in server.asked]
    assert [b"images" in body and b"Photos" in body and b"\r\ntrue\r\n" in body for body in bodies] == [
        True
    ] * 3
    assert server.asked[0][2]["authorization"] == "Bearer t"


def test_people_are_invited_and_disagreements_read(server: Receiver, client: Client) -> None:
    server.will(LOST, ok({"items": [{"email": "a@example.org", "url": "/i"}]}), ok({"count": 2, "items": []}))

    [made] = client.people.invite_several(["a@example.org"], role="reviewer")
    found = client.labels.disagreements("c")

    assert (made["email"], found["count"]) == ("a@example.org", 2)
    several, again, listed = server.asked
    assert json.loads(several.body) == {"role": "reviewer", "addresses": ["a@example.org"]}
    assert several.headers["idempotency-key"] == again.headers["idempotency-key"]
    assert several.path == "/api/v1/invitations/several"
    assert listed.path == "/api/v1/campaigns/c/imports/disagreements"


def test_what_nobody_chose_is_not_sent(server: Receiver, client: Client) -> None:
    """An older server refuses fields that it does not know."""
    server.will(ok({"id": "i"}))

    client.labels.send("c", BytesIO(b"answers"), filename="a.csv")
    client.labels.send(
        "c", BytesIO(b"answers"), filename="a.csv", contradictions="leave-out", first_class="0"
    )
    client.datasets.send(BytesIO(b"images"), filename="a.zip", name="N", classes="", first_class="")

    names = [set(re.findall(rb' name="(\w+)"', body)) for _, _, _, body in server.asked]
    assert names == [{b"file"}, {b"file", b"contradictions", b"first_class"}, {b"file", b"name"}]


def test_a_key_of_ones_own_is_sent(server: Receiver, client: Client) -> None:
    server.will(ok({"id": "r"}))

    client.runs.launch("c", "d", key="mine", seeds=[1])

    [(method, path, headers, body)] = server.asked
    assert (method, path, headers["idempotency-key"]) == ("POST", "/api/v1/campaigns/c/runs", "mine")
    assert json.loads(body) == {"target_dataset_id": "d", "seeds": [1]}


def test_answers_are_repeated_and_what_would_be_done_twice_is_not(server: Receiver, client: Client) -> None:
    question: Any = {"id": 7}
    server.will(LOST, ok({"results": [{"key": "k", "status": "stored", "detail": None}]}))
    assert client.annotation.answer("c", [answer_to(question, "no")])[0]["status"] == "stored"
    first, second = (json.loads(body)["answers"][0]["key"] for _, _, _, body in server.asked)
    assert first == second

    server.will(LOST, ok({"undone": []}))
    with pytest.raises(ServerAway):
        client.annotation.undo("c")


def test_what_was_deleted_before_the_answer_was_lost_is_deleted(server: Receiver, client: Client) -> None:
    server.will(LOST, problem(404, "There is no such dataset."))
    client.datasets.delete("d")

    server.will(problem(404, "There is no such dataset."))
    with pytest.raises(NotFound, match="no such dataset"):
        client.datasets.delete("d")


def test_patience_ends(server: Receiver) -> None:
    server.will(problem(503, "More to do than the server can."))
    with (
        Client(server.url, "t", patience_s=0.3) as client,
        pytest.raises(Unavailable, match="More to do") as caught,
    ):
        client.datasets.get("d")
    assert caught.value.status == 503
    assert len(server.asked) > 1

    # What asks for more patience than there is need not be waited for.
    server.asked.clear()
    server.will((503, {}, {"Retry-After": "60"}))
    with Client(server.url, "t", patience_s=5) as client, pytest.raises(Unavailable, match="answered 503"):
        client.datasets.get("d")
    assert len(server.asked) == 1


def test_nobody_there_is_said(server: Receiver) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with (
        Client(away, "t", patience_s=0) as client,
        pytest.raises(ServerAway, match="No Clarinet server answers"),
    ):
        client.datasets.get("d")
    server.will((200, b"<html>", {"Content-Type": "text/html"}))
    with Client(server.url, "t") as client, pytest.raises(ClientError, match="is no Clarinet server"):
        client.datasets.get("d")


@pytest.mark.parametrize(
    ("status", "kind"), [(401, NotSignedIn), (404, NotFound), (409, Conflict), (422, Malformed)]
)
def test_a_problem_is_an_error_with_its_words(
    server: Receiver, client: Client, status: int, kind: type[Conflict]
) -> None:
    server.will(
        problem(status, "Choose another name.", errors=[{"pointer": "body/name", "detail": "Taken."}])
    )

    with pytest.raises(kind) as caught:
        client.campaigns.create("Cats", "d")

    assert (str(caught.value), caught.value.type, caught.value.title) == (
        "Choose another name.",
        "/problems/x",
        "X",
    )
    assert caught.value.errors == [{"pointer": "body/name", "detail": "Taken."}]
    assert len(server.asked) == 1


def test_lists_are_followed_to_their_end_and_names_found(server: Receiver, client: Client) -> None:
    other = DATASET | {"id": "e", "name": "Others"}
    server.will(ok({"items": [DATASET], "next": "d"}), ok({"items": [other], "next": None}))

    assert client.datasets.find("Others")["id"] == "e"
    assert [path for _, path, _, _ in server.asked] == ["/api/v1/datasets", "/api/v1/datasets?after=d"]
    with pytest.raises(NotFound, match="There is no dataset called 'None'"):
        client.datasets.find("None")


def test_waiting_ends_well_badly_or_too_late(server: Receiver, client: Client) -> None:
    seen: list[str] = []
    importing = DATASET | {"state": "importing"}
    server.will(ok(importing), ok(DATASET))
    assert client.datasets.wait("d", on_look=lambda row: seen.append(row["state"]))["name"] == "Photos"
    assert seen == ["importing", "ready"]

    bad = {"file": "a.txt", "why": "is no picture"}
    server.will(ok(DATASET | {"state": "failed", "failure": "Nothing was taken.", "faults": [bad]}))
    with pytest.raises(Failed) as caught:
        client.datasets.wait("d")
    assert str(caught.value) == 'Nothing was taken.\n"a.txt" is no picture.'

    server.will(ok(importing))
    with pytest.raises(TookTooLong, match=r"The end of the import is not there after 0\.1 s"):
        client.datasets.wait("d", timeout_s=0.1)


@pytest.mark.parametrize("name", ["model.zip", "../../model.zip", "..\\model.zip"])
def test_a_file_is_kept_under_its_name_inside_the_folder(
    server: Receiver, client: Client, tmp_path: Path, name: str
) -> None:
    server.will(LOST, ok(b"PK", Content_Disposition=f'attachment; filename="{name}"'))

    assert client.models.save("m", tmp_path) == tmp_path / "model.zip"
    assert (tmp_path / "model.zip").read_bytes() == b"PK"
    assert client.models.save_onnx("m", tmp_path / "net.onnx").read_bytes() == b"PK"


def test_a_file_that_breaks_off_leaves_what_was_there(server: Receiver, tmp_path: Path) -> None:
    there = tmp_path / "labels.csv"
    there.write_text("earlier")
    server.will(ok(b"half", Content_Length="8", Connection="close"))
    calls: list[Callable[[Client], object]] = [
        lambda client: client.labels.save("c", there),
        lambda client: client.labels.read("c"),
    ]
    for call in calls:
        with Client(server.url, "t", patience_s=0) as client, pytest.raises(ServerAway):
            call(client)

    assert there.read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


@pytest.fixture
def bucket() -> Iterator[Receiver]:
    bucket = Receiver()
    yield bucket
    bucket.close()


def test_a_link_to_a_bucket_is_followed_without_the_token(
    server: Receiver, client: Client, bucket: Receiver, tmp_path: Path
) -> None:
    link = f"{bucket.url}/models/m/model.onnx?X-Amz-Signature=s"
    server.will((307, b"", {"Location": link, "Content-Disposition": 'attachment; filename="run.onnx"'}))
    bucket.will(LOST, ok(b"ONNX"))

    assert client.models.save_onnx("m", tmp_path) == tmp_path / "run.onnx"

    assert (tmp_path / "run.onnx").read_bytes() == b"ONNX"
    assert {asked.path for asked in bucket.asked} == {"/models/m/model.onnx?X-Amz-Signature=s"}
    assert all("authorization" not in asked.headers for asked in bucket.asked)
    assert len(server.asked) == 2, "a link lasts minutes: whoever asks again asks for another"


def test_a_bucket_that_refuses_or_is_away_is_told(server: Receiver, bucket: Receiver, tmp_path: Path) -> None:
    to = tmp_path / "m.onnx"
    with Client(server.url, "t", patience_s=0) as client:
        server.will((307, b"", {"Location": f"{bucket.url}/m"}))
        bucket.will((403, b"<Error/>", {}))
        with pytest.raises(Refused):
            client.models.save_onnx("m", to)
        bucket.will(LOST)
        with pytest.raises(ServerAway, match=rf"No bucket answers at {bucket.url}"):
            client.models.save_onnx("m", to)
        server.will((307, b"", {"Location": "https://127.0.0.1:1/api/v1/models/m/onnx"}))
        with pytest.raises(ClientError, match="give the address that it leads to"):
            client.models.save_onnx("m", to)
    assert not to.exists()


def test_a_redirect_is_no_success(server: Receiver, client: Client, tmp_path: Path) -> None:
    """Whoever is at the other address would get the token."""
    server.will((307, {"id": "d"}, {"Location": "https://elsewhere.example.org/"}))

    calls: list[Callable[[], object]] = [
        lambda: client.datasets.get("d"),
        lambda: client.models.save("m", tmp_path / "m.zip"),
    ]
    for call in calls:
        with pytest.raises(ClientError, match=r"answers 307 and sends us to 'https://elsewhere"):
            call()
    assert list(tmp_path.iterdir()) == []
    assert len(server.asked) == 2


def test_predictions_are_asked_for_again_because_nothing_is_stored(server: Receiver, client: Client) -> None:
    said = {"model_id": "m", "digest": "d", "name": "Shop", "version": 2, "classes": ["a"], "pictures": []}
    named = partial(client.models.predict_by_alias, "Shop/1", "production")
    for call, path in (
        (partial(client.models.predict, "m"), "/api/v1/models/m/predict"),
        (named, "/api/v1/model-names/Shop%2F1/aliases/production/predict"),
    ):
        server.asked.clear()
        server.will(LOST, (429, {}, {"Retry-After": "0"}), ok(said))

        assert call([("a.png", b"x")])["version"] == 2
        assert [one.path for one in server.asked] == [path] * 3
        assert all(b'filename="a.png"' in one.body for one in server.asked)


def test_what_was_put_away_is_listed_where_it_is_asked_for_and_found_last(
    server: Receiver, client: Client
) -> None:
    old = DATASET | {"id": "o", "name": "Old"}
    server.will(ok(PAGE), ok({"items": [old], "next": None}), ok(PAGE))

    assert client.datasets.find("Old")["id"] == "o"
    assert client.datasets.find("Photos")["id"] == "d"
    for group in (client.datasets, client.campaigns, client.runs, client.models):
        assert [*group.all(archived=True)] == [DATASET]
    assert [one.path for one in server.asked] == [
        "/api/v1/datasets",
        "/api/v1/datasets?archived=true",
        "/api/v1/datasets",
        *(f"/api/v1/{kind}?archived=true" for kind in ("datasets", "campaigns", "runs", "models")),
    ]
