"""File names in labels and answers, and pictures in class folders."""

import csv
import io
import zipfile

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.labels import service as labelling
from app.labels.errors import BadImport
from app.labels.exports.class_folders import folder_names
from app.labels.models import ImportedAnswer
from app.stores.folder import FolderStorage
from tests.app.labels.taking import bring
from tests.app.labels.test_exports import download
from tests.factories import answer, make_campaign, make_dataset, questions_of


class TestFilenames:
    @pytest.fixture
    def named(self, session: Session, storage: FolderStorage) -> Campaign:
        """A campaign over real pictures whose files had names, half of them answered with yes."""
        dataset = make_dataset(session, storage, class_names=["size: large", "CON"], train=6)
        for example in session.scalars(select(Example).where(Example.dataset_id == dataset.id)):
            example.filename = f"photos/{'abcdefgh'[example.position]}/IMG_{example.position}.HEIC"
        campaign = make_campaign(session, dataset=dataset)
        for question in questions_of(session, campaign)[:3]:
            answer(session, campaign, question.id, "yes")
        session.commit()
        return campaign

    def test_they_are_in_labels_and_answers(self, client: TestClient, named: Campaign) -> None:
        for kind in ("labels", "answers"):
            table = download(client, named, kind, format="csv").decode()
            with np.load(io.BytesIO(download(client, named, kind, format="npz"))) as arrays:
                names = [name.decode() for name in arrays["filenames"].tolist()]
            rows = list(csv.DictReader(io.StringIO(table)))
            assert len(rows) == 3
            assert [row["filename"] for row in rows] == names
            assert all(f"/IMG_{row['position']}.HEIC" in row["filename"] for row in rows)

    @pytest.mark.parametrize(
        "table",
        [
            "image,label\nIMG_5.HEIC,con\n",
            "Path,label\nf/IMG_5.HEIC,con\n",
            "id,label\nIMG_5,con\n",
            "image_id,class\nphotos/f/IMG_5,con\n",
            "filename,image,id,label\nIMG_5.HEIC,aGVsbG8=,17,con\n",
            "position,image,id,label\n5,aGVsbG8=,17,con\n",
        ],
    )
    def test_a_table_that_brought_the_images_tells_their_labels(
        self, session: Session, named: Campaign, admin: User, table: str
    ) -> None:
        bring(session, named, table, admin)

        [said] = session.scalars(select(ImportedAnswer)).all()
        assert session.get_one(Example, said.example_id).position == 5
        assert said.candidate_class == 1

    def test_an_id_of_several_files_is_refused(self, session: Session, named: Campaign, admin: User) -> None:
        for example in session.scalars(select(Example).where(Example.dataset_id == named.dataset_id)):
            example.filename = f"{example.position}/1.png"
        session.commit()

        with pytest.raises(
            BadImport, match="file '1', which several pictures here are called; write the folders"
        ):
            bring(session, named, "id,label\n1,con\n", admin)
        with pytest.raises(BadImport, match="columns image and path could both be the picture's file"):
            bring(session, named, "image,path,label\n1,1,con\n", admin)

    def test_what_was_handed_out_is_taken_back_by_file_name(
        self, session: Session, named: Campaign, admin: User
    ) -> None:
        labels_file = b"filename,label\nIMG_5.HEIC,con\nelsewhere/photos/e/img_4.heic,size: large\n"

        made = bring(session, named, labels_file, admin)

        said = session.scalars(select(ImportedAnswer).where(ImportedAnswer.import_id == made.id))
        by_id = {one.example_id: one.candidate_class for one in said}
        examples = {e.id: e.position for e in session.scalars(select(Example)) if e.id in by_id}
        assert {examples[id_]: class_ for id_, class_ in by_id.items()} == {5: 1, 4: 0}
        with pytest.raises(BadImport, match=r"the file 'IMG_9\.HEIC', which is none of this campaign's"):
            bring(session, named, b"filename,label\nIMG_9.HEIC,CON\n", admin)

    def test_pictures_come_in_class_folders_that_every_system_takes(
        self, client: TestClient, session: Session, named: Campaign
    ) -> None:
        answer_ = client.get(f"/api/v1/campaigns/{named.id}/labels/folders")

        assert answer_.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(answer_.content)) as archive:
            assert archive.testzip() is None
            names = archive.namelist()
        wanted = {0: "size_ large", 1: "CON_"}
        found = {row.position: wanted[row.class_] for row in labelling.labels(session, named)}
        assert names == [f"{folder}/{p:06d}-IMG_{p}.png" for p, folder in sorted(found.items())]
        assert folder_names(["a/b", "a:b", "...", "x"]) == ["a_b", "a_b (1)", "class 2", "x"]

    def test_nothing_that_an_annotator_gets_has_one(
        self, annotator_client: TestClient, named: Campaign
    ) -> None:
        leased = annotator_client.post(f"/api/v1/campaigns/{named.id}/questions", json={"count": 10})
        pages = [
            leased,
            annotator_client.get(f"/api/v1/campaigns/{named.id}"),
            annotator_client.get(f"/annotate/{named.id}", headers={"Accept": "text/html"}),
            *(annotator_client.get(q["image_url"]) for q in leased.json()["questions"]),
        ]

        assert leased.json()["questions"]
        for page in pages:
            assert page.status_code == 200
            assert b"HEIC" not in page.content + str(page.headers).encode() + str(page.url).encode()
        for path in ("examples", "examples?limit=1"):
            assert annotator_client.get(f"/api/v1/datasets/{named.dataset_id}/{path}").status_code == 403
