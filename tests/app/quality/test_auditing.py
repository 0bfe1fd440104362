"""What the audit says of people's answers."""

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.campaigns.models import CampaignState
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

    found = quality.audit(session, campaign, now=NOW, has_seed=True).yes_by_true_class

    assert found == tuple(
        tuple(sum(told[y, k]) / len(told[y, k]) if (y, k) in told else None for k in range(3))
        for y in range(3)
    )


def test_second_answers_do_not_count_as_what_people_see(session: Session) -> None:
    campaign = make_campaign(session, examples=60, confirm_yes=True)
    questions = questions_of(session, campaign)
    for question in questions:
        answer(session, campaign, question.id, "yes")
    first = quality.audit(session, campaign, now=NOW, has_seed=True).yes_by_true_class

    for question in questions:
        answer(session, campaign, question.id, "no")

    found = quality.audit(session, campaign, now=NOW, has_seed=True).yes_by_true_class
    assert found == first
    assert {share for row in found or () for share in row} <= {1.0, None}


def test_without_true_classes_there_is_nothing_to_compare(session: Session) -> None:
    campaign = make_campaign(session)
    session.get_one(Dataset, campaign.dataset_id).class_names = None

    assert quality.audit(session, campaign, now=NOW, has_seed=True).yes_by_true_class is None


def test_a_yes_rate_that_is_not_one_in_k_raises_an_alarm(session: Session) -> None:
    campaign = make_campaign(session, examples=60)
    person = make_user(session)
    for number, question in enumerate(questions_of(session, campaign)):
        answer(session, campaign, question.id, "yes" if number % 3 == 0 else "no", by=person)
    assert quality.audit(session, campaign, now=NOW, has_seed=True).alarms == ()

    other = make_campaign(session, examples=60)
    for question in questions_of(session, other):
        answer(session, other, question.id, "no", by=person)

    found = quality.audit(session, other, now=NOW, recompute=True, has_seed=True)
    assert found.yes_p_value is not None
    assert found.yes_p_value < 1e-6
    assert found.alarms[0].startswith("0.0 % of the first answers are yes, and 33.3 % were expected")
    assert found.passed, "the draws are what was promised"


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

    campaign.state = CampaignState.CLOSED  # before that, annotators are told nothing of answers
    session.commit()
    for one, is_named in ((client, True), (annotator_client, False)):
        page = one.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text
        assert "Can't tell” concentrates" in page or "far more often" in page
        assert ("Slow Susan" in page) == is_named
        assert "Susan" not in one.get(f"/api/v1/campaigns/{campaign.id}/audit").text
