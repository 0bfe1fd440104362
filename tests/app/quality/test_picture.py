"""One picture of a dataset: what is known of it, what people said, and the way to those beside it."""

import re
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import AnswerValue
from app.datasets.models import Dataset, Example
from app.quality import service as quality
from app.stores.folder import FolderStorage
from tests.factories import NOW, answer, make_campaign, make_dataset, make_token, make_user, questions_of

HTML = {"accept": "text/html"}
pytestmark = pytest.mark.dialects


@pytest.fixture
def dataset(session: Session, storage: FolderStorage) -> Dataset:
    """Six training images and two test images of cats and dogs, by turns."""
    return make_dataset(session, storage, class_names=("cat", "dog"), train=6, test=2)


@pytest.fixture
def page(client: TestClient) -> Callable[..., str]:
    """A page's text, by its address."""

    def read(path: str, status: int = 200, token: str = "") -> str:
        headers = HTML | ({"Authorization": f"Bearer {token}"} if token else {})
        answered = client.get(path, headers=headers)
        assert answered.status_code == status
        return answered.text.replace("http://testserver", "")

    return read


def pictures(session: Session, dataset: Dataset) -> list[Example]:
    return list(
        session.scalars(select(Example).where(Example.dataset_id == dataset.id).order_by(Example.position))
    )


def test_each_picture_of_the_sheet_opens_with_all_that_is_known(
    session: Session, dataset: Dataset, page: Callable[..., str]
) -> None:
    one = pictures(session, dataset)[1]
    one.filename = "dogs/rex.png"
    session.commit()

    sheet = page(f"/datasets/{dataset.id}")
    assert len(re.findall(rf'href="/datasets/{dataset.id}/pictures/\d+', sheet)) == 8
    shown = page(f"/datasets/{dataset.id}/pictures/{one.id}")

    for term, value in (
        ("Position", "1"),
        ("Split", "training"),
        ("True class", "dog"),
        ("File", "dogs/rex.png"),
        ("SHA-256", f"<code>{one.digest}</code>"),
    ):
        assert f"<dt>{term}</dt><dd>{value}</dd>" in shown
    assert "No campaign asks about it." in shown


def test_arrows_lead_through_what_the_sheet_shows_and_back(
    session: Session, dataset: Dataset, page: Callable[..., str]
) -> None:
    cats = [one for one in pictures(session, dataset) if one.true_class == 0 and one.split == "train"]
    session.commit()
    among = "after=-1&amp;split=train&amp;true_class=0"
    here = f"/datasets/{dataset.id}/pictures"

    first, middle, last = (
        page(f"{here}/{one.id}?{among.replace('&amp;', '&')}") for one in (cats[0], cats[1], cats[-1])
    )

    assert f'href="{here}/{cats[0].id}?{among}" data-key="ArrowLeft"' in middle
    assert f'href="{here}/{cats[2].id}?{among}" data-key="ArrowRight"' in middle
    assert f'href="/datasets/{dataset.id}?{among}#image-{cats[1].id}" data-key="Escape"' in middle
    assert f'id="image-{cats[1].id}"' in page(f"/datasets/{dataset.id}?{among.replace('&amp;', '&')}")
    assert "ArrowLeft" not in first
    assert "ArrowRight" not in last


def test_it_tells_what_people_said_in_which_campaign(
    session: Session, dataset: Dataset, admin: User, page: Callable[..., str]
) -> None:
    asked, other = (make_campaign(session, dataset=dataset, confirm_yes=True) for _ in range(2))
    question = questions_of(session, asked)[0]
    for value in ("yes", "unsure", "no", "yes", "no"):
        answer(session, asked, question.id, value)
    quality.decide(session, asked, question.id, AnswerValue.YES, by=admin, now=NOW)
    session.commit()

    shown = page(f"/datasets/{dataset.id}/pictures/{question.example_id}")

    table = shown.partition("What people said</h2>")[2].partition("</table>")[0]
    rows = [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
    ]
    class_name = asked.class_names[question.candidate_class]
    assert [asked.name, f"{class_name}?", "2", "2", "1", "0", "yes"] in rows
    assert sorted(row[0] for row in rows[1:]) == sorted([asked.name, other.name])
    assert f'href="/campaigns/{asked.id}/examples/{question.example_id}"' in table
    history = page(f"/campaigns/{asked.id}/examples/{question.example_id}")
    assert f'href="/datasets/{dataset.id}/pictures/{question.example_id}"' in history


def test_reviewers_see_it_once_a_campaign_was_opened_and_never_the_true_class(
    session: Session, dataset: Dataset, page: Callable[..., str]
) -> None:
    one = pictures(session, dataset)[1]
    token = make_token(session, make_user(session, role="reviewer"))
    make_campaign(session, dataset=dataset, state="draft")
    session.commit()
    path = f"/datasets/{dataset.id}/pictures/{one.id}"

    page(path, 404, token)
    make_campaign(session, dataset=dataset)
    session.commit()
    shown = page(f"{path}?true_class=1", token=token)

    assert one.digest in shown
    assert "True class" not in shown
    assert f"/pictures/{pictures(session, dataset)[2].id}?after=-1&amp;split=&amp;true_class=" in shown
    assert f'href="/datasets/{dataset.id}?' not in shown


def test_annotators_never_reach_it(annotator_client: TestClient, session: Session, dataset: Dataset) -> None:
    make_campaign(session, dataset=dataset)
    one = pictures(session, dataset)[0]
    session.commit()
    path = f"/datasets/{dataset.id}/pictures/{one.id}"

    assert annotator_client.get(path, headers=HTML).status_code == 403


def test_a_picture_of_another_dataset_is_none_of_this(
    session: Session, storage: FolderStorage, dataset: Dataset, page: Callable[..., str]
) -> None:
    other = make_dataset(session, storage)
    elsewhere = pictures(session, other)[0]
    session.commit()

    page(f"/datasets/{other.id}/pictures/{elsewhere.id}")
    page(f"/datasets/{dataset.id}/pictures/{elsewhere.id}", 404)
