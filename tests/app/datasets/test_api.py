"""Datasets over HTTP: status, shape, permission, caching."""

import io
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import jobs
from app.accounts.models import User
from app.datasets import service
from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset, DatasetState
from app.db import Base, Database
from app.jobs import Job
from app.main import create_app
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.datasets.files import picture, zip_of
from tests.factories import make_dataset, make_token, make_user

ZIP = zip_of({"cat/1.png": picture()})
TABLE = b"filename,class\ncat/1.png,tiger\n"


class TestImportAgain:
    def test_a_choice_sends_the_import_again_and_a_second_one_conflicts(
        self, client: TestClient, session: Session, published: list[Job]
    ) -> None:
        files = {"file": ("pets.zip", io.BytesIO(ZIP))}
        made = client.post("/api/v1/datasets", data={"name": "Pets", "skip_bad": "false"}, files=files).json()
        dataset = session.get_one(Dataset, UUID(made["id"]))
        assert dataset.upload is not None
        dataset.state, dataset.faults = DatasetState.FAILED, [{"file": "a.png", "why": "is broken"}]
        dataset.upload = {**dataset.upload, "mend": "skip_bad"}
        session.commit()
        published.clear()
        path = f"/api/v1/datasets/{made['id']}"
        failed = client.get(path).json()

        again = client.post(f"{path}/import", json={"skip_bad": True})
        twice = client.post(f"{path}/import", json={"skip_bad": True})

        assert (failed["mend"], failed["faults"]) == ("skip_bad", [{"file": "a.png", "why": "is broken"}])
        assert again.status_code == 202
        assert (again.json()["state"], again.json()["faults"]) == ("importing", [])
        assert published == [Job(jobs.IMPORT_DATASET, (made["id"],))]
        assert (twice.status_code, twice.json()["type"]) == (409, "/problems/import-not-kept")
        assert client.post(f"{path}/import", json={"encoding": "ebcdic"}).status_code == 422

    @pytest.mark.parametrize("text", ["a\x1b[2Jb", "a\u202eb"])
    def test_a_description_is_checked_like_every_text(self, client: TestClient, text: str) -> None:
        files = {"file": ("pets.zip", io.BytesIO(ZIP))}

        answer = client.post("/api/v1/datasets", data={"name": "Pets", "description": text}, files=files)

        assert answer.status_code == 422
        assert "Only letters, digits, signs and spaces" in answer.text


class TestCreate:
    def test_a_form(
        self, client: TestClient, session: Session, storage: FolderStorage, published: list[Job]
    ) -> None:
        files = {"file": ("pets.zip", io.BytesIO(ZIP)), "csv": ("table.csv", io.BytesIO(TABLE))}

        response = client.post("/api/v1/datasets", data={"name": "Pets", "description": "ours"}, files=files)

        assert response.status_code == 202, response.text
        made = response.json()
        assert (made["name"], made["description"], made["state"]) == ("Pets", "ours", "importing")
        assert response.headers["location"].endswith(f"/api/v1/datasets/{made['id']}")
        assert published == [Job(jobs.IMPORT_DATASET, (made["id"],))]
        dataset = session.get_one(Dataset, UUID(made["id"]))
        assert dataset.upload
        assert storage.read(dataset.upload["data"]) == ZIP
        assert storage.read(dataset.upload["table"]) == TABLE
        assert dataset.upload["table_name"] == "table.csv"

    def test_a_bare_body_in_pieces(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        large = ZIP + bytes(3 * 1024 * 1024)

        def pieces() -> Iterator[bytes]:
            for start in range(0, len(large), 50_000):
                yield large[start : start + 50_000]

        response = client.post(
            "/api/v1/datasets",
            params={"name": "Pets", "filename": "pets.zip"},
            content=pieces(),
            headers={"Content-Type": "application/zip"},
        )

        assert response.status_code == 202, response.text
        dataset = session.get_one(Dataset, UUID(response.json()["id"]))
        assert dataset.upload
        assert dataset.upload["name"] == "pets.zip"
        assert storage.read(dataset.upload["data"]) == large
        assert [path.name for path in storage.path("uploads").iterdir()] == [str(dataset.id)]

    def test_a_path_on_the_server(
        self,
        *,
        settings: Settings,
        database: Database,
        published: list[Job],
        session: Session,
        admin: User,
        tmp_path: Path,
    ) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "pets.zip").write_bytes(ZIP)
        (tmp_path / "secret.zip").write_bytes(ZIP)
        settings = settings.model_copy(update={"dataset_roots": (tmp_path / "data",)})
        app = create_app(settings, database=database, publish=published.append)
        headers = {"Authorization": f"Bearer {make_token(session, admin)}"}
        with TestClient(app, headers=headers) as client:
            good = {"name": "Pets", "path": str(tmp_path / "data" / "pets.zip")}
            bad = {"name": "Secret", "path": str(tmp_path / "data" / ".." / "secret.zip")}

            assert client.post("/api/v1/datasets", json=good).status_code == 202
            refused = client.post("/api/v1/datasets", json=bad)

        assert refused.status_code == 422
        assert refused.json()["type"] == "/problems/path-not-allowed"

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            ({"data": {"name": "Pets"}}, "bad-upload"),
            ({"data": {"name": "Pets"}, "files": {"file": ("a.zip", b"hello")}}, "bad-upload"),
            ({"data": {}, "files": {"file": ("a.zip", ZIP)}}, "malformed-request"),
            ({"data": {"name": " "}, "files": {"file": ("a.zip", ZIP)}}, "malformed-request"),
            ({"data": {"name": "P", "nmae": "Q"}, "files": {"file": ("a.zip", ZIP)}}, "malformed-request"),
            ({"data": {"name": "P", "kind": "tar"}, "files": {"file": ("a.zip", ZIP)}}, "malformed-request"),
            ({"params": {"name": "P"}, "content": b""}, "bad-upload"),
            ({"params": {"path": "/etc/passwd"}, "content": ZIP}, "malformed-request"),
            ({"json": {"name": "P", "path": "/etc/passwd"}}, "path-not-allowed"),
            ({"json": {"name": "P"}}, "path-not-allowed"),
            ({"json": ["P"]}, "malformed-request"),
            ({"content": b"{", "headers": {"Content-Type": "application/json"}}, "bad-upload"),
            ({"content": b" " * 70_000, "headers": {"Content-Type": "application/json"}}, "bad-upload"),
        ],
    )
    def test_what_does_not_fit_is_a_problem_and_nothing_stays(
        self,
        client: TestClient,
        storage: FolderStorage,
        published: list[Job],
        body: dict[str, object],
        kind: str,
    ) -> None:
        response = client.post("/api/v1/datasets", **body)  # type: ignore[arg-type]

        assert response.status_code == 422, response.text
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["type"] == f"/problems/{kind}"
        assert published == []
        assert [path for path in storage.root.rglob("*") if path.is_file()] == []

    def test_a_name_in_use(self, client: TestClient, session: Session, storage: FolderStorage) -> None:
        make_dataset(session, storage, name="Pets")
        session.commit()

        response = client.post("/api/v1/datasets", params={"name": "Pets"}, content=ZIP)

        assert response.status_code == 409
        assert response.json()["type"] == "/problems/dataset-name-taken"

    def test_too_many_files(self, client: TestClient) -> None:
        files = [("file", (f"{n}.zip", ZIP)) for n in range(40)]

        assert client.post("/api/v1/datasets", data={"name": "P"}, files=files).status_code == 400


class TestRead:
    def test_pages_of_datasets(self, client: TestClient, session: Session, storage: FolderStorage) -> None:
        made = {str(make_dataset(session, storage, train=1, test=0).id) for _ in range(3)}
        session.commit()

        first = client.get("/api/v1/datasets", params={"limit": 2}).json()
        second = client.get("/api/v1/datasets", params={"limit": 2, "after": first["next"]}).json()

        assert {item["id"] for item in first["items"] + second["items"]} == made
        assert second["next"] is None

    def test_one(self, client: TestClient, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage)
        session.commit()

        read = client.get(f"/api/v1/datasets/{dataset.id}").json()

        assert (read["state"], read["train_count"], read["test_count"]) == ("ready", 6, 2)
        assert read["class_names"] == ["cat", "dog"]
        assert "upload" not in read
        missing = client.get(f"/api/v1/datasets/{uuid4()}")
        assert (missing.status_code, missing.json()["type"]) == (404, "/problems/dataset-not-found")

    def test_pages_of_examples(self, client: TestClient, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage)
        session.commit()
        url = f"/api/v1/datasets/{dataset.id}/examples"

        first = client.get(url, params={"limit": 5}).json()
        second = client.get(url, params={"limit": 5, "after": first["next"]}).json()
        cats = client.get(url, params={"true_class": 0, "split": "test"}).json()

        assert [item["position"] for item in first["items"] + second["items"]] == list(range(8))
        assert (first["next"], second["next"]) == (4, None)
        assert [item["position"] for item in cats["items"]] == [6]
        assert client.get(first["items"][0]["image_url"]).status_code == 200

    @pytest.mark.parametrize("query", ["after=99999999999999", "limit=0", "split=all", "true_class=-1"])
    def test_queries_that_mean_nothing(
        self, client: TestClient, session: Session, storage: FolderStorage, query: str
    ) -> None:
        dataset = make_dataset(session, storage)
        session.commit()

        assert client.get(f"/api/v1/datasets/{dataset.id}/examples?{query}").status_code == 422


class TestImage:
    @pytest.fixture
    def url(self, session: Session, storage: FolderStorage) -> str:
        """Address of an example's image."""
        dataset = make_dataset(session, storage)
        session.commit()
        example = session.scalars(service.examples_of(dataset.id)).first()
        assert example
        return f"/api/v1/datasets/{dataset.id}/examples/{example.id}/image"

    def test_it_may_be_kept_for_ever(self, client: TestClient, url: str) -> None:
        first = client.get(url)
        etag = first.headers["etag"]

        again = client.get(url, headers={"If-None-Match": f'"other", W/{etag}'})

        assert first.status_code == 200
        assert first.content.startswith(b"\x89PNG")
        assert first.headers["content-type"] == "image/png"
        assert first.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert first.headers["x-content-type-options"] == "nosniff"
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == etag
        assert client.get(url, headers={"If-None-Match": '"other"'}).status_code == 200

    def test_other_bytes_than_were_stored_are_not_shown_nor_kept(
        self, client: TestClient, session: Session, storage: FolderStorage, url: str
    ) -> None:
        dataset = session.scalars(select(Dataset)).one()
        shard = storage.path(shard_key(service.prefix_of(dataset), 0))
        content = bytearray(shard.read_bytes())
        content[40] ^= 1  # of the first picture's pixels
        shard.write_bytes(content)

        damaged = client.get(url)

        assert (damaged.status_code, damaged.json()["type"]) == (409, "/problems/stored-file-damaged")
        assert damaged.headers["cache-control"] == "no-store"

    def test_one_must_be_signed_in(self, anonymous: TestClient, url: str) -> None:
        assert anonymous.get(url).status_code == 401
        assert anonymous.get(url, headers={"If-None-Match": "*"}).status_code == 401

    @pytest.mark.parametrize("example", ["0", "99999999", str(2**63), "x", "..%2f1"])
    def test_unknown_examples(self, client: TestClient, url: str, example: str) -> None:
        assert client.get(f"{url.rsplit('/', 2)[0]}/{example}/image").status_code in (404, 422)


class TestDelete:
    def test_it_is_gone(self, client: TestClient, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage)
        session.commit()

        assert client.delete(f"/api/v1/datasets/{dataset.id}").status_code == 204
        assert client.get(f"/api/v1/datasets/{dataset.id}").status_code == 404

    def test_a_failed_one_can_go_too(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        dataset = make_dataset(session, storage)
        dataset.state = DatasetState.FAILED
        session.commit()

        assert client.delete(f"/api/v1/datasets/{dataset.id}").status_code == 204


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", ""),
        ("GET", ""),
        ("GET", "/{id}"),
        ("DELETE", "/{id}"),
        ("GET", "/{id}/examples"),
    ],
)
def test_annotators_see_images_and_nothing_else(
    *,
    annotator_client: TestClient,
    anonymous: TestClient,
    session: Session,
    storage: FolderStorage,
    method: str,
    path: str,
) -> None:
    dataset = make_dataset(session, storage)
    session.commit()
    url = f"/api/v1/datasets{path.format(id=dataset.id)}"

    assert annotator_client.request(method, url).status_code == 403
    assert anonymous.request(method, url).status_code == 401


def test_an_upload_holds_no_writing_transaction_while_it_arrives(tmp_path: Path) -> None:
    """On SQLite there is one writer; somebody's slow upload must not stop everybody's answers."""
    settings = Settings(environment="test", data_dir=tmp_path, _env_file=None)
    app: FastAPI = create_app(settings, publish=lambda _job: None)
    database: Database = app.state.database
    Base.metadata.create_all(database.engine)
    with database.write() as session:
        token = make_token(session, make_user(session, role="admin"))
        session.commit()

    def slow() -> Iterator[bytes]:
        yield ZIP
        with database.write() as session:  # would wait for the pool's only connection and time out
            make_user(session)
            session.commit()
        yield b""

    database.engine.pool._timeout = 2  # type: ignore[attr-defined]  # a minute is too long for a test
    with TestClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        response = client.post("/api/v1/datasets", params={"name": "Slow"}, content=slow())

    assert response.status_code == 202, response.text
