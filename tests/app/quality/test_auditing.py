"""What the audit says of people's answers."""

from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.service import KnownPicture
from app.campaigns import service as campaigns
from app.datasets.models import Dataset, Example
from app.quality import service as quality
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

HTML = {"accept": "text/html"}


def test_shows_how_often_people_say_yes_in_images_of_each_true_class(session: Session) -> None:
    campaign = make_campaign(session, examples=60)
    told: dict[tuple[int, int], list[bool]] = {}
    for number, question in enumerate(questions_of(session, campaign)):
        says_yes = number % 4 == 0
        answer(session, campaign, question.id, "yes" if says_yes else "no")
        true_class = session.get_one(Example, question.example_id).true_class or 0
        told.setdefault((true_class, question.candidate_class), []).append(says_yes)

    found = quality.audit(session, campaign, now=NOW).yes_by_true_class

    assert found == tuple(
        tuple(sum(told[y, k]) / len(told[y, k]) if (y, k) in told else None for k in range(3))
        for y in range(3)
    )


def test_without_true_classes_there_is_nothing_to_compare(session: Session) -> None:
    campaign = make_campaign(session)
    session.get_one(Dataset, campaign.dataset_id).class_names = None

    assert quality.audit(session, campaign, now=NOW).yes_by_true_class is None


def test_a_yes_rate_that_is_not_one_in_k_raises_an_alarm(session: Session) -> None:
    campaign = make_campaign(session, examples=60)
    person = make_user(session)
    for number, question in enumerate(questions_of(session, campaign)):
        answer(session, campaign, question.id, "yes" if number % 3 == 0 else "no", by=person)
    assert quality.audit(session, campaign, now=NOW).alarms == ()

    other = make_campaign(session, examples=60)
    for question in questions_of(session, other):
        answer(session, other, question.id, "no", by=person)

    found = quality.audit(session, other, now=NOW, recompute=True)
    assert found.yes_p_value < 1e-6
    assert found.alarms[0].startswith("0.0 % of the first answers are yes, and 33.3 % were expected")
    assert found.passed, "the draws are what was promised"


def test_does_not_tell_annotators_which_answers_were_to_gold(
    client: TestClient, annotator_client: TestClient, session: Session, admin: User
) -> None:
    campaign = make_campaign(session, examples=120)
    questions = questions_of(session, campaign)
    service.mark_known(session, campaign, [KnownPicture(questions[0].example_id, 0)], by=admin)
    for number, question in enumerate(questions[:111]):
        answer(session, campaign, question.id, "yes" if number % 3 == 0 else "no")
    session.commit()

    def told(reader: TestClient) -> dict[str, Any]:
        found: dict[str, Any] = reader.get(f"/api/v1/campaigns/{campaign.id}/audit").json()
        return found

    def figures(reader: TestClient) -> list[float]:
        found = told(reader)
        rates = [item[name] for item in found["classes"] for name in ("yes_rate", "unsure_rate")]
        return [found["yes_rate"], found["yes_p_value"], found["unsure_by_class"]["p_value"], *rates]

    assert any(figure != round(figure, 2) for figure in figures(client))
    assert all(figure == round(figure, 2) for figure in figures(annotator_client))
    assert all(item["answered"] % 10 == 0 for item in told(annotator_client)["classes"])
    page = annotator_client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text
    assert f"{100 * round(37 / 111, 2):.1f} %" in page
    campaigns.close_campaign(session, campaign, by=admin, now=NOW)
    session.commit()
    assert figures(client) == figures(annotator_client)


def test_names_nobody_to_those_who_only_answer(
    client: TestClient, annotator_client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session, examples=200)
    quick, slow = make_user(session), make_user(session)
    quick.name, slow.name = "Quick Quentin", "Slow Susan"
    for number, question in enumerate(questions_of(session, campaign)):
        by = quick if number % 2 else slow
        skips = by is slow and question.candidate_class == 1
        answer(session, campaign, question.id, "unsure" if skips else "no", by=by)
    session.commit()

    for one, is_named in ((client, True), (annotator_client, False)):
        page = one.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text
        assert "Can't tell” concentrates" in page or "far more often" in page
        assert ("Slow Susan" in page) == is_named
        assert "Susan" not in one.get(f"/api/v1/campaigns/{campaign.id}/audit").text
