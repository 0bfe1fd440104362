"""What files say of an image against each other is told: folder and table, twins, names that are there."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.datasets.models import Example
from app.labels.errors import BadImport
from tests.app.datasets.files import picture, zip_of
from tests.app.labels.taking import bring
from tests.cases.taking import taken
from tests.factories import make_campaign
from tests.worker.intake.conftest import Grow, Ready


def files(**pictures: int) -> dict[str, bytes]:
    """Pictures by path, `__` for a slash; the same number is the same picture."""
    return {f"{path.replace('__', '/')}.png": picture(shade=seed) for path, seed in pictures.items()}


def test_folder_and_table_are_told_image_by_image_even_if_the_table_lacks_a_folders_class(
    tmp_path: Path,
) -> None:
    sent = files(cat__1=1, cat__2=2, dog__3=3) | {
        "t.csv": b"filename,class\ncat/1.png,dog\ncat/2.png,dog\ndog/3.png,dog\n"
    }

    result = taken(tmp_path, zip_of(sent))

    why = "lies in the folder of 'cat' and is 'dog' by line {} of t.csv; the table counts"
    assert result["contradictions"] == [
        {"file": "cat/1.png", "why": why.format(2)},
        {"file": "cat/2.png", "why": why.format(3)},
    ]
    assert "2 images are given another class by t.csv than by the folder" in " ".join(result["notes"])
    assert result["class_names"] == ["dog"]


def test_folders_that_mean_something_else_contradict_nothing(tmp_path: Path) -> None:
    sent = files(monday__1=1, sunday__2=2) | {
        "t.csv": b"filename,class\nmonday/1.png,dog\nsunday/2.png,cat\n"
    }

    assert taken(tmp_path, zip_of(sent))["contradictions"] == []


@pytest.mark.parametrize(
    ("header", "rows", "names"),
    [
        ("owl,dog,cat", ["0,1,0", "0,0,1"], ["owl", "dog", "cat"]),
        ("cat,dog,eel", ["0,1,0", "0,1,0"], ["cat", "dog", "eel"]),
    ],
)
def test_a_column_that_nobody_is_of_is_a_class(
    tmp_path: Path, header: str, rows: list[str], names: list[str]
) -> None:
    table = "\n".join([f"filename,{header}", *(f"{n}.png,{row}" for n, row in enumerate(rows, 1))])

    result = taken(tmp_path, zip_of(files(**{"1": 1, "2": 2})), table=table.encode())

    assert result["class_names"] == names
    by_place = [names[result["records"][f"{n}.png"].true_class] for n in (1, 2)]
    assert by_place == [header.split(",")[row.split(",").index("1")] for row in rows]


def test_the_same_picture_under_two_classes_keeps_both_and_is_told(client: TestClient, ready: Ready) -> None:
    dataset = ready(zip_of(files(train__cat__1=1, train__dog__2=1, train__dog__3=3, test__dog__4=3)))

    assert dataset.train_per_class == [1, 2]
    assert dataset.notes[-1].startswith("2 images are the same as another one of another class; each keeps")
    (told,) = client.get(f"/api/v1/datasets/{dataset.id}").json()["contradictions"]
    same = "is of the class 'dog' and the same picture as “train/cat/1.png” of 'cat'; both keep their class"
    assert told == {"file": "train/dog/2.png", "why": same}
    page = client.get(f"/datasets/{dataset.id}", headers={"Accept": "text/html"}).text
    assert "<summary>1 contradiction</summary>" in page


def test_each_further_one_of_the_same_pictures_is_told(client: TestClient, ready: Ready) -> None:
    dataset = ready(zip_of(files(train__cat__1=1, train__dog__2=1, train__eel__3=3, test__cat__4=1)))

    assert dataset.notes[-1].startswith("3 images are the same as another one of another class")
    told = client.get(f"/api/v1/datasets/{dataset.id}").json()["contradictions"]
    assert [(one["file"], one["why"].partition(";")[0]) for one in told] == [
        (
            "train/dog/2.png",
            "is of the class 'dog' and the same picture as “train/cat/1.png” of 'cat'",
        ),
        (
            "test/cat/4.png",
            "is of the class 'cat' and the same picture as “train/dog/2.png” of 'dog'",
        ),
    ]


def test_images_that_join_are_compared_with_those_that_are_there(
    ready: Ready, grow: Grow, session: Session
) -> None:
    dataset = ready(zip_of(files(train__cat__1=1, train__dog__2=2)))

    left = grow(dataset, zip_of(files(train__dog__1=1, train__dog__9=9)))
    kept = grow(dataset, zip_of(files(train__dog__one=1)), skip_known=False)
    other = grow(dataset, zip_of(files(train__cat__1=7, train__dog__3=8)))

    assert left.contradictions == [
        {"file": "train/dog/1.png", "why": "came as 'dog' and is in the dataset as 'cat', which counts"}
    ]
    assert "1 image of these came under another class; the dataset's counts." in left.notes
    assert [one["file"] for one in kept.contradictions] == ["train/dog/one.png"]
    assert other.contradictions == [
        {"file": "train/cat/1.png", "why": "is another picture than one that is there under the same name"}
    ]
    session.refresh(dataset)
    assert dataset.train_per_class == [2, 4]


def test_a_name_of_several_pictures_finds_none_of_them(
    ready: Ready, grow: Grow, session: Session, admin: User
) -> None:
    dataset = ready(zip_of(files(train__cat__1=1, train__dog__2=2)))
    grow(dataset, zip_of(files(train__cat__1=7, train__dog__5=8)))
    campaign = make_campaign(session, dataset=dataset, class_names=("cat", "dog"))
    session.commit()

    with pytest.raises(BadImport, match=r"the file 'cat/1.png', which several pictures here are called"):
        bring(session, campaign, "filename,class\ncat/1.png,cat\n", admin)

    made = bring(session, campaign, "filename,class\ndog/5.png,dog\n", admin)
    assert made.yes == 1
    assert session.scalar(select(Example.filename).where(Example.position == 3)) == "train/dog/5.png"
