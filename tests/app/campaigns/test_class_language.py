"""A campaign says the language of its classes, and questions follow it."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.texts import question_texts, yes_key
from app.campaigns.models import Campaign
from app.journal import service as journal
from app.languages import LANGUAGES, language_name, same_language, speaking
from tests.factories import make_campaign, make_rows_only_dataset

API = "/api/v1/campaigns"
HTML = {"accept": "text/html"}


def test_it_is_said_through_the_api_and_the_form(client: TestClient, session: Session, admin: User) -> None:
    dataset = make_rows_only_dataset(session, examples=4, class_names=("Katze", "Hund"))
    session.commit()
    body = {"name": "Tiere", "dataset_id": str(dataset.id), "class_language": "de"}

    made = client.post(API, json=body).json()
    assert made["class_language"] == "de"
    assert (
        client.patch(f"{API}/{made['id']}", json={"class_language": "de-AT"}).json()["class_language"]
        == "de-AT"
    )
    form = client.get(f"/campaigns/{made['id']}/edit", headers=HTML).text
    assert '<option value="de-AT" selected>German (Austria)</option>' in form
    typed = {
        "name": "Tiere",
        "dataset_id": str(dataset.id),
        "class_language": "ja",
        "classes": "猫\n犬",
    }
    assert client.post(f"/campaigns/{made['id']}/edit", data=typed, headers=HTML).status_code == 303

    session.expire_all()
    campaign = session.scalars(select(Campaign).where(Campaign.name == "Tiere")).one()
    assert campaign.class_language == "ja"
    lines = journal.entries(session, by=admin, campaign_id=campaign.id, limit=10)
    assert [line.details["class_language"] for line in lines] == ["ja", "de-AT", "de"]
    page = client.get(f"/campaigns/{campaign.id}", headers=HTML).text
    assert '<dd lang="ja">猫' in page
    assert "<dd>Japanese</dd>" in page


@pytest.mark.parametrize("tag", ["english", "e", "en_US", "en-", "x" * 40, "en\n", "de" + "-abc" * 9])
def test_another_text_is_refused(client: TestClient, session: Session, tag: str) -> None:
    campaign = make_campaign(session, state="draft")
    session.commit()

    answer = client.patch(f"{API}/{campaign.id}", json={"class_language": tag})

    if tag.strip() == "en":
        assert answer.json()["class_language"] == "en"
    else:
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "body/class_language"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("class_language", ["", "en", "en-GB", "de", "el"])
def test_an_article_stands_before_an_english_noun_on_an_english_page_alone(
    language: str, class_language: str
) -> None:
    with speaking(language):
        texts = question_texts(class_language)

    assert all("{name}" in str(text) for text in texts.values())
    has_article = texts["ask_a"] != texts["ask_an"]
    assert has_article == (language == "en" and class_language.startswith("en"))
    if language == "en" and not has_article:
        assert texts["ask_a"] == "Is this: {name}?"


def test_yes_has_the_letter_of_its_language() -> None:
    keys = {}
    for language in LANGUAGES:
        with speaking(language):
            keys[language] = yes_key()

    assert keys == {"en": "y", "de": "j", "es": "s", "fr": "o", "zh-Hans": "y"}


def test_languages_are_told_apart_by_their_first_part() -> None:
    assert same_language("pt-BR", "pt")
    assert not same_language("", "")
    assert not same_language("de", "da")
    assert [language_name(tag) for tag in ("el", "zh-Hans", "xx")] == ["Greek", "Chinese (Simplified)", "xx"]


def test_the_screen_says_the_language_of_names_and_descriptions(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    campaign.class_language = "el"
    campaign.classes[0].description = "λέει"
    session.commit()

    page = client.get(f"/annotate/{campaign.id}", headers=HTML | {"accept-language": "de"}).text

    assert '<strong data-class-name lang="el">' in page
    assert '<p lang="el">λέει</p>' in page
    assert 'data-yes-key="j"' in page
