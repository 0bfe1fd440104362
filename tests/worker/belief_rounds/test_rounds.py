"""A further round by a model's belief: asked for, drawn by it, recomputed, hidden from people."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Purpose
from app.campaigns.believed import KeptBeliefs
from app.campaigns.by_belief import kept_beliefs
from app.campaigns.drawings import drawings_of, pending_drawing
from app.campaigns.models import Campaign, DrawingBeliefs
from app.claims import MAX_ATTEMPTS
from app.datasets.models import Dataset
from app.quality import service as quality
from app.quality.models import DrawCheck
from app.registry.models import Model
from app.runs.models import Run
from app.storage import StorageAway
from app.stores.folder import FolderStorage
from tests.factories import NOW, grow_rows, make_campaign, make_dataset, questions_of
from tests.worker import refusing
from tests.worker.belief_rounds.asking import CLASSES, HTML, audited, draw, of_round, truth
from worker.context import Context
from worker.drawing import draw_further


def test_images_without_a_yes_are_asked_about_again_by_what_the_model_believes(
    context: Context, session: Session, campaign: Campaign, model: Model, admin: User
) -> None:
    first = questions_of(session, campaign)
    denied = {q.example_id: q.candidate_class for q in first if truth(session, q) != q.candidate_class}

    draw(session, context, model, campaign, admin)

    found = of_round(session, campaign)
    assert sorted(q.example_id for q in found) == sorted(denied)
    assert all(q.candidate_class != denied[q.example_id] for q in found)
    assert all(q.is_waiting and q.purpose is Purpose.LABELLING and q.round == 1 for q in found)
    assert [q.rank for q in found] == list(range(len(first), len(first) + len(found)))
    assert len({q.probability for q in found}) > 1
    assert all(0.2 / 3 - 1e-9 <= q.probability <= 1 - 2 * 0.2 / 3 + 1e-9 for q in found)
    assert campaign.question_count == len(first) + len(found)
    assert campaign.believed_count == len(found)
    assert campaign.believed_yes == pytest.approx(sum(q.probability for q in found))
    drawing = drawings_of(session, campaign)[1]
    assert drawing.belief is not None
    kept = kept_beliefs(session, drawing.belief.drawing_id)
    assert kept is not None
    assert len(kept[0]) == len(found)


def test_the_audit_draws_it_again_and_finds_what_was_changed(session: Session, asked_again: Campaign) -> None:
    audit = audited(session, asked_again)
    law = audit.drawings[1].law
    assert audit.passed is True
    assert law is not None
    assert (law.by_belief_of, law.floor_percent, law.round) == ("run 1, seed 0", 20, 1)
    assert audit.uniformity is not None
    assert audit.uniformity.degrees == 3  # of the first drawing alone
    assert audit.yes_p_value is None

    question = of_round(session, asked_again)[0]
    known = {
        q.candidate_class for q in questions_of(session, asked_again) if q.example_id == question.example_id
    }
    before = question.candidate_class
    question.candidate_class = next(class_ for class_ in range(4) if class_ not in known)
    session.commit()
    assert [item.draws_match for item in audited(session, asked_again).drawings] == [True, False]

    question.candidate_class = before
    kept = session.scalars(select(DrawingBeliefs)).one()
    read = KeptBeliefs.from_bytes(kept.data)
    read.beliefs[0] = 9
    kept.data = read.as_bytes()
    session.commit()
    assert [item.draws_match for item in audited(session, asked_again).drawings] == [True, False]


def test_people_are_told_nothing_of_it_before_the_end(
    client: TestClient, annotator_client: TestClient, asked_again: Campaign
) -> None:
    here = f"/campaigns/{asked_again.id}"

    leased = annotator_client.post(f"/api/v1{here}/questions", json={"count": 5}).json()
    seen = annotator_client.get(f"/api/v1{here}/audit").json()["drawings"]
    told = client.get(f"/api/v1{here}/audit").json()["drawings"]
    pages = [someone.get(f"{here}/audit", headers=HTML).text for someone in (annotator_client, client)]

    assert len(leased["questions"]) > 0
    assert all("probability" not in question and "round" not in question for question in leased["questions"])
    hidden = ("law", "first_position", "end_position", "dataset_version", "dataset_digest", "question_count")
    assert [seen[1][name] for name in hidden] == [None] * len(hidden)
    assert all(told[1][name] is not None for name in hidden)
    assert seen[0] == told[0]
    assert told[1]["law"]["by_belief_of"] == "run 1, seed 0"
    assert "belief" not in pages[0]
    assert "told once the campaign is closed" in pages[0]
    assert "by the belief of run 1, seed 0" in pages[1]
    assert "do not recommend" in pages[1]
    assert told[1]["dataset_digest"] in pages[1]
    assert pages[0].count(told[1]["dataset_digest"]) == 1  # of the first drawing alone
    assert "p / P" in pages[1]


def test_people_see_the_draws_of_the_first_drawing_alone(
    session: Session, client: TestClient, annotator_client: TestClient, asked_again: Campaign
) -> None:
    first = [question for question in questions_of(session, asked_again) if question.drawing == 1]
    by_class = [sum(question.candidate_class == class_ for question in first) for class_ in range(4)]
    quality.keep_check(session, quality.check_draws(session, asked_again, now=NOW))
    session.commit()
    here = f"/api/v1/campaigns/{asked_again.id}/audit"

    seen, told = annotator_client.get(here).json(), client.get(here).json()

    assert [item["drawn"] for item in seen["classes"]] == by_class
    assert sum(item["drawn"] for item in told["classes"]) > len(first)
    assert seen["uniformity"] is not None
    whole = annotator_client.get(here.removesuffix("/audit")).json()
    assert [item["question_count"] for item in whole["classes"]] == [None] * 4
    assert whole["question_count"] is None, "more than there are pictures tells of a round by belief"
    check = session.get_one(DrawCheck, asked_again.id)
    check.drawings = [{"number": 1}, {"number": 2}]  # as an earlier release kept it
    session.commit()
    before = annotator_client.get(here).json()
    assert [item["drawn"] for item in before["classes"]] == [None] * 4
    assert before["uniformity"] is None


def test_an_admin_asks_on_the_models_page_or_by_the_api(
    context: Context, client: TestClient, campaign: Campaign, model: Model
) -> None:
    page = client.get(f"/models/{model.id}", headers=HTML).text
    bad = client.post(f"/models/{model.id}/rounds", data={"floor_percent": "0"}, headers=HTML)
    asked = client.post(f"/api/v1/models/{model.id}/rounds", json={"floor_percent": 50})
    again = client.post(f"/api/v1/models/{model.id}/rounds", json={"floor_percent": 50})
    other = client.post(f"/api/v1/models/{model.id}/rounds", json={})
    further = client.post(f"/api/v1/campaigns/{campaign.id}/further")
    waiting = client.get(f"/campaigns/{campaign.id}", headers=HTML).text
    draw_further(context, campaign.id)
    drawn = client.get(f"/api/v1/campaigns/{campaign.id}/drawings").json()["items"]

    assert "We do not recommend it." in page
    assert "any other loss is refused unless “Only the labels of uniform questions” is ticked" in page
    assert bad.status_code == 422
    assert asked.status_code == again.status_code == 202, asked.text
    assert len(again.json()["items"]) == 2
    for refused in (other, further):
        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/another-drawing-waits")
        assert "with a floor of 50 % is being drawn" in refused.json()["detail"]
    assert "by the belief of run" in waiting
    assert (drawn[1]["floor_percent"], drawn[1]["drawn_at"] is not None) == (50, True)
    assert drawn[1]["by_belief_of"].startswith("run ")


def test_a_round_waits_for_questions_about_images_that_joined(
    context: Context, session: Session, client: TestClient, campaign: Campaign, model: Model
) -> None:
    grow_rows(session, session.get_one(Dataset, campaign.dataset_id), 3)
    session.commit()
    assert client.post(f"/api/v1/campaigns/{campaign.id}/further").status_code == 202

    refused = client.post(f"/api/v1/models/{model.id}/rounds", json={})
    draw_further(context, campaign.id)

    assert refused.status_code == 409
    assert "about images that joined is being drawn" in refused.json()["detail"]
    assert client.post(f"/api/v1/models/{model.id}/rounds", json={}).status_code == 202


def test_what_cannot_be_drawn_is_said_and_may_be_asked_anew(
    context: Context, session: Session, client: TestClient, model: Model, admin: User
) -> None:
    storage = context.storage
    unanswered = make_campaign(session, dataset=make_dataset(session, storage, class_names=CLASSES))
    session.get_one(Run, model.run_id).campaign_id = unanswered.id
    session.commit()

    draw(session, context, model, unanswered, admin)
    pending = pending_drawing(session, unanswered)
    said = client.get(f"/campaigns/{unanswered.id}", headers=HTML).text
    again = client.post(f"/api/v1/models/{model.id}/rounds", json={})
    two = make_campaign(session, class_names=("cat", "dog"))
    session.get_one(Run, model.run_id).campaign_id = two.id
    session.commit()
    refused = client.post(f"/api/v1/models/{model.id}/rounds", json={})

    assert pending is not None
    assert "No image has answers of no alone" in (pending.failure or "")
    assert "was not drawn" in said
    assert again.status_code == 202
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/not-by-belief")


def test_a_round_waits_uncounted_while_the_storage_is_away(
    context: Context,
    session: Session,
    campaign: Campaign,
    model: Model,
    admin: User,
) -> None:
    def away(*_: object, **__: object) -> bytes:
        raise StorageAway("it does not answer")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FolderStorage, "read_as_written", away)
        draw(session, context, model, campaign, admin)
    pending = pending_drawing(session, campaign)
    assert pending is not None
    assert (pending.failure, pending.attempts, pending.drawn_at) == (None, 0, None)

    draw_further(context, campaign.id)
    session.expire_all()
    assert pending_drawing(session, campaign) is None
    assert of_round(session, campaign)


def test_no_yes_rate_is_expected_of_a_campaign_with_such_a_round(
    session: Session, client: TestClient, asked_again: Campaign
) -> None:
    asked_again.confirm_yes = True
    asked_again.price = 0.5
    session.commit()
    here = f"/campaigns/{asked_again.id}"

    far = client.get(f"/api/v1{here}/progress").json()
    pages = [client.get(path, headers=HTML).text for path in (here, f"{here}/audit")]

    assert (far["expected_yes_rate"], far["seconds_left"], far["cost"]["to_go"]) == (None, None, None)
    assert far["cost"]["so_far"] == pytest.approx(12)
    assert not any(" expected" in page for page in pages)


def test_a_store_that_refuses_fails_a_round_after_three_attempts_in_words(
    context: Context, session: Session, campaign: Campaign, model: Model, admin: User
) -> None:
    draw(session, refusing.refused(context), model, campaign, admin)
    pending = pending_drawing(session, campaign)
    assert pending is not None
    assert (pending.failure, pending.attempts) == (None, 1)

    for _ in range(MAX_ATTEMPTS - 1):
        draw_further(refusing.refused(context), campaign.id)

    session.expire_all()
    failed = pending_drawing(session, campaign)
    assert failed is not None
    assert failed.failure == refusing.SENTENCE
