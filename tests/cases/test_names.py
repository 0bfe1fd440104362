"""Class names that look alike or have signs in them, by the API and by the form; misspelt fields."""

import html
import re
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.stores.folder import FolderStorage
from tests.app.datasets.files import picture, zip_of
from tests.factories import make_dataset


@pytest.mark.parametrize(
    "names", [["Cat", "cat"], ["cat", "cat\u200b"], ["caf\u00e9", "cafe\u0301"], ["cat", "cat "]]
)
def test_names_that_people_cannot_tell_apart_are_refused(
    client: TestClient, session: Session, storage: FolderStorage, names: list[str]
) -> None:
    dataset = make_dataset(session, storage)
    session.commit()
    body = {"name": "a", "dataset_id": str(dataset.id), "classes": [{"name": name} for name in names]}

    refused = client.post("/api/v1/campaigns", json=body)

    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/invalid-classes")


@pytest.mark.parametrize(
    "names", [["size: large", "size: small"], ["other", "size: large"], ["None", "NaN", "true"]]
)
def test_a_draft_that_is_saved_unchanged_is_unchanged(
    client: TestClient, session: Session, storage: FolderStorage, names: list[str]
) -> None:
    dataset = make_dataset(session, storage, class_names=names)
    session.commit()
    made = client.post("/api/v1/campaigns", json={"name": "a", "dataset_id": str(dataset.id)}).json()
    page = {"Accept": "text/html"}
    edit = f"/campaigns/{made['id']}/edit"

    shown = client.get(edit, headers=page).text
    (typed,) = re.findall(r'<textarea[^>]*name="classes"[^>]*>(.*?)</textarea>', shown, re.DOTALL)
    values = {"name": "a", "dataset_id": str(dataset.id), "classes": html.unescape(typed).strip()}
    saved = client.post(edit, data=values, headers=page)

    assert saved.status_code == 303, saved.text
    again = client.get(f"/api/v1/campaigns/{made['id']}").json()
    assert [one["name"] for one in again["classes"]] == names
    assert {one["description"] for one in again["classes"]} == {""}


def test_a_misspelt_field_or_parameter_is_told(client: TestClient) -> None:
    files = {
        "file": ("a.zip", zip_of({"1.png": picture()})),
        "table": ("t.csv", b"filename,class\n1.png,cat\n"),
    }

    table = client.post("/api/v1/datasets", data={"name": "a"}, files=files)
    text = client.post("/api/v1/datasets", data={"name": "a", "tabel": "x"}, files={"file": files["file"]})
    twice = client.post("/api/v1/datasets", data={"name": "a"}, files=[("file", files["file"])] * 2)

    assert [one.status_code for one in (table, text, twice)] == [422, 422, 422]
    assert "There is no field for a file 'table' here. It may be csv, file." in table.text
    assert "There is no field 'tabel' here." in text.text
    assert "This field is given more than once." in twice.text
    for query in ("runs?campaign", "journal?campain"):
        assert client.get(f"/api/v1/{query}={uuid4()}").status_code == 422
