"""Datasets in a browser: the list, the form, the contact sheet, the watching fragment."""

import io
import re
from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns.dataset_pages import PICTURES_ON_A_SHEET
from app.datasets import pages
from app.datasets.models import Dataset, DatasetState
from app.jobs import Job
from app.stores.folder import FolderStorage
from clarinet.recipes.choices import Looks
from tests.app.datasets.files import picture, zip_of
from tests.factories import make_dataset

ZIP = zip_of({"cat/1.png": picture()})
HTML = {"Accept": "text/html"}
FRAGMENT = {**HTML, "HX-Request": "true"}
HOSTILE_NAME = "<script>alert(1)</script>"


def importing(session: Session, storage: FolderStorage, **values: object) -> Dataset:
    """A dataset whose import goes on."""
    dataset = make_dataset(session, storage)
    dataset.state = DatasetState.IMPORTING
    for name, value in values.items():
        setattr(dataset, name, value)
    session.commit()
    return dataset


class TestList:
    def test_an_empty_list_teaches(self, client: TestClient) -> None:
        page = client.get("/datasets", headers=HTML)

        assert page.status_code == 200
        assert "A dataset is a set of images" in page.text
        assert 'href="/datasets/new"' in page.text

    def test_cards_show_pictures_states_and_failures(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        ready = make_dataset(session, storage, name="Pets")
        importing(session, storage, progress=1200, progress_total=60_000)
        importing(session, storage, state=DatasetState.FAILED, failure='"x.zip" holds no files.')

        page = client.get("/datasets", headers=HTML).text

        assert page.count(f"/api/v1/datasets/{ready.id}/examples/") == 8
        assert re.search(r"1.200 of 60.000 images taken in", page)
        assert "&#34;x.zip&#34; holds no files." in page

    def test_pages(self, client: TestClient, session: Session, storage: FolderStorage) -> None:
        names = {make_dataset(session, storage, train=1, test=0).name for _ in range(pages.CARDS + 1)}
        session.commit()

        first = client.get("/datasets", headers=HTML).text
        link = re.search(r'rel="next" href="([^"]+)"', first)
        assert link
        second = client.get(link[1], headers=HTML).text

        shown = [set(re.findall(r"/datasets/[^/]+\">([^<]+)</a></h2>", html)) for html in (first, second)]
        assert (len(shown[0]), len(shown[1])) == (pages.CARDS, 1)
        assert shown[0] | shown[1] == names
        assert 'rel="next"' not in second
        assert "Back to the first page" in second


class TestForm:
    def test_a_file_is_taken_and_its_page_shown(
        self, client: TestClient, session: Session, published: list[Job]
    ) -> None:
        response = client.post(
            "/datasets/new", data={"name": "Pets"}, files={"file": ("pets.zip", ZIP)}, headers=HTML
        )

        dataset = session.query(Dataset).one()
        assert response.status_code == 303
        assert response.headers["location"].endswith(f"/datasets/{dataset.id}")
        assert published == [Job(jobs.IMPORT_DATASET, (str(dataset.id),))]

    @pytest.mark.parametrize(
        ("fields", "file", "message"),
        [
            ({"name": "Pets"}, None, "Please choose a file."),
            ({"name": "Pets"}, b"", "The file is empty"),
            ({"name": "Pets"}, b"\x89PNG", "neither a zip nor an npz"),
            ({"description": "kept"}, ZIP, "Please fill this in."),
            ({"name": "Taken"}, ZIP, "There is already a dataset called"),
        ],
    )
    def test_mistakes_are_said_next_to_their_field_and_nothing_is_kept(
        self,
        *,
        client: TestClient,
        session: Session,
        storage: FolderStorage,
        published: list[Job],
        fields: dict[str, str],
        file: bytes | None,
        message: str,
    ) -> None:
        make_dataset(session, storage, name="Taken")
        session.commit()
        files = {"file": ("" if file is None else "pets.zip", io.BytesIO(file or b""))}

        response = client.post("/datasets/new", data=fields, files=files, headers=HTML)

        assert response.status_code == 422
        assert re.search(rf'<p class="error" id="(file|name)-error">[^<]*{message}', response.text)
        assert all(value in response.text for value in fields.values())
        assert published == []
        assert not [path for path in storage.path("uploads").rglob("*") if path.is_file()]

    def test_a_browser_needs_the_token_of_the_page(
        self, anonymous: TestClient, session: Session, admin: User
    ) -> None:
        anonymous.cookies.set("clarinet", accounts.start_session(session, admin, now=datetime.now(UTC)))
        session.commit()
        form = anonymous.get("/datasets/new", headers=HTML)
        token = re.search(r'name="csrf_token" value="([^"]+)"', form.text)
        assert token

        def send(csrf_token: str) -> int:
            fields = {"name": "Pets", "csrf_token": csrf_token}
            return anonymous.post("/datasets/new", data=fields, files={"file": ("a.zip", ZIP)}).status_code

        assert send(token[1]) == 303
        assert send("forged") == 403

    def test_a_server_path_is_offered_only_where_there_are_roots(self, client: TestClient) -> None:
        assert 'name="path"' not in client.get("/datasets/new", headers=HTML).text


class TestShow:
    def test_a_contact_sheet_by_key_split_and_class(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        dataset = make_dataset(session, storage, train=PICTURES_ON_A_SHEET, test=2)
        session.commit()

        def positions(html: str) -> list[int]:
            return [int(found) for found in re.findall(r'alt="Image (\d+),', html)]

        first = client.get(f"/datasets/{dataset.id}", headers=HTML).text
        link = re.search(r'rel="next" href="([^"]+)"', first)
        assert link
        second = client.get(link[1].replace("&amp;", "&"), headers=HTML).text
        cats = client.get(f"/datasets/{dataset.id}?split=train&true_class=0", headers=HTML).text
        none = client.get(f"/datasets/{dataset.id}?split=test&true_class=1&after=9000", headers=HTML).text

        assert positions(first) == list(range(240))
        assert positions(second) == [240, 241]
        assert positions(cats) == list(range(0, 240, 2))
        assert positions(none) == []
        assert "No image is in this split and class." in none
        assert "Known for evaluation only" in first

    def test_an_import_is_watched_until_it_ends(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        dataset = importing(session, storage, progress=1200, progress_total=60_000)
        url = f"/datasets/{dataset.id}"

        page = client.get(url, headers=HTML).text
        fragment = client.get(url, headers=FRAGMENT).text
        assert fragment.strip() in page
        assert 'hx-trigger="every 1s"' in fragment
        assert 'value="1200"' in fragment
        dataset.state = DatasetState.READY
        session.commit()
        ended = client.get(url, headers=FRAGMENT).text

        assert "hx-trigger" not in ended
        assert ended.count("<img") == 8

    @pytest.mark.parametrize("claimed_by", [None, "worker"])
    def test_before_anything_is_known(
        self, client: TestClient, session: Session, storage: FolderStorage, claimed_by: str | None
    ) -> None:
        dataset = importing(session, storage, claimed_by=claimed_by)

        page = client.get(f"/datasets/{dataset.id}", headers=HTML).text

        assert ("waits for a worker" in page) == (claimed_by is None)

    def test_a_failure_in_words_with_what_to_do(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        failure = f'"{HOSTILE_NAME}" is not a PNG, JPEG, WebP, GIF, BMP, TIFF, AVIF or HEIF image.'
        dataset = importing(session, storage, state=DatasetState.FAILED, failure=failure)

        page = client.get(f"/datasets/{dataset.id}", headers=HTML).text

        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert HOSTILE_NAME not in page
        assert "Nothing of it was kept." in page
        assert "hx-trigger" not in page

    def test_files_that_were_not_taken_are_listed_and_the_others_can_go_on(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        faults = [{"file": HOSTILE_NAME, "why": "is broken"}, {"file": "b.png", "why": "lies too deep"}]
        dataset = importing(session, storage, state=DatasetState.FAILED, failure="2 files.", faults=faults)
        dataset.upload = {"data": "x", "mend": "skip_bad", "skip_bad": False, "encoding": ""}
        session.commit()

        page = client.get(f"/datasets/{dataset.id}", headers=HTML).text
        answer = client.post(
            f"/datasets/{dataset.id}/import",
            data={"skip_bad": "true"},
            headers=HTML,
            follow_redirects=False,
        )

        assert "2 files not taken in" in page
        assert HOSTILE_NAME not in page
        assert "Go on without them" in page
        assert answer.status_code == 303
        session.refresh(dataset)
        assert dataset.state is DatasetState.IMPORTING
        assert dataset.upload["skip_bad"]

    def test_one_file_that_was_not_taken_is_told_once(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        faults = [{"file": "b.png", "why": "is broken"}]
        failure = '"b.png" is broken. Nothing of it was kept.'
        dataset = importing(session, storage, state=DatasetState.FAILED, failure=failure, faults=faults)
        session.commit()

        assert client.get(f"/datasets/{dataset.id}", headers=HTML).text.count("is broken") == 1

    def test_names_are_text(self, client: TestClient, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage, name=HOSTILE_NAME, class_names=[HOSTILE_NAME, '" onload="x'])
        session.commit()

        page = client.get(f"/datasets/{dataset.id}", headers=HTML).text

        assert HOSTILE_NAME not in page
        assert '" onload=' not in page

    def test_images_that_are_not_the_published_ones_say_so_on_the_page_and_in_the_api(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        dataset = make_dataset(session, storage)
        dataset.made = "regenerated, <b>seed 0</b>"
        session.commit()

        page = client.get(f"/datasets/{dataset.id}", headers=HTML).text
        read = client.get(f"/api/v1/datasets/{dataset.id}").json()

        assert "Not the published images: regenerated, &lt;b&gt;seed 0&lt;/b&gt;." in page
        assert read["made"] == dataset.made

    @pytest.mark.parametrize(
        ("looks", "told"),
        [
            ("photographs", "<dd>photographs</dd><dd>grey; this chooses the recipe of a run</dd>"),
            (None, "<dd>\N{EN DASH}</dd><dd>grey; seen when a run first needs it</dd>"),
        ],
    )
    def test_what_the_images_look_like_is_said(
        self, *, looks: Looks | None, told: str, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        dataset = make_dataset(session, storage, looks=looks)
        session.commit()

        assert f"<dt>They look like</dt>{told}" in client.get(f"/datasets/{dataset.id}", headers=HTML).text
        assert client.get(f"/api/v1/datasets/{dataset.id}").json()["looks"] == looks

    def test_without_classes(self, client: TestClient, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage, class_names=None)
        session.commit()

        page = client.get(f"/datasets/{dataset.id}", headers=HTML)

        assert page.status_code == 200
        assert 'name="true_class"' not in page.text
        assert "class not known" in page.text

    def test_counts_by_class_are_those_kept_with_the_dataset(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        dataset = make_dataset(session, storage, class_names=["cat", "dog"], train=9, test=3)
        dataset.train_per_class, dataset.test_per_class = [4, 3], [1, 2]
        session.commit()

        page = client.get(f"/datasets/{dataset.id}", headers=HTML).text

        cell = r'</th><td class="number">(\d+)</td><td class="number">(\d+)</td>'
        found = re.findall(r'<tr><th scope="row">([^<]+)' + cell, page)
        assert found == [("cat", "4", "1"), ("dog", "3", "2"), ("not known", "2", "0")]


def test_deleting_goes_back_to_the_list(client: TestClient, session: Session, storage: FolderStorage) -> None:
    dataset = make_dataset(session, storage)
    session.commit()

    response = client.post(f"/datasets/{dataset.id}/delete", headers=HTML)

    assert (response.status_code, response.headers["location"]) == (303, "/datasets")
    assert client.get(f"/datasets/{dataset.id}", headers=HTML).status_code == 404


@pytest.mark.parametrize("path", ["", "/new", "/{id}"])
def test_annotators_see_no_pages(
    annotator_client: TestClient, session: Session, storage: FolderStorage, path: str
) -> None:
    dataset = make_dataset(session, storage)
    session.commit()

    assert annotator_client.get(f"/datasets{path.format(id=dataset.id)}", headers=HTML).status_code == 403
