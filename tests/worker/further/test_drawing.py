"""A campaign asks about images that joined its dataset: drawn apart, checked apart, seen all at once."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.annotation import questions
from app.annotation import service as annotation
from app.annotation.leasing import lease
from app.annotation.models import Answer, Question
from app.campaigns import drawings, draws
from app.campaigns import service as campaigns
from app.campaigns.errors import NothingFurther, WrongCampaignState
from app.campaigns.models import Campaign, FurtherDrawing
from app.clock import utc_now
from app.datasets.models import Dataset, DatasetVersion
from tests.factories import NOW, answer, grow_rows, make_user, questions_of
from tests.worker.further.asking import ask, audited
from worker import drawing
from worker.context import Context

HTML = {"accept": "text/html"}


def test_further_questions_follow_from_a_seed_of_their_own(
    context: Context, session: Session, grown: Campaign, admin: User
) -> None:
    assert drawings.further_images(session, grown) == 25
    before = [(q.id, q.rank, q.candidate_class) for q in questions_of(session, grown)]

    ask(session, grown, admin, context)

    assert (grown.question_count, drawings.further_images(session, grown)) == (90, 0)
    found = questions_of(session, grown)
    assert [(q.id, q.rank, q.candidate_class) for q in found[:40]] == before
    first, second = drawings.drawings_of(session, grown)
    assert second.seed != first.seed
    expected = draws.draw(second.seed, np.arange(20, 45), num_classes=3, rounds=2)
    assert [q.candidate_class for q in found[40:]] == expected.classes.tolist()
    assert [q.rank for q in found[40:]] == list(range(40, 90))
    assert all(q.is_waiting for q in found)
    assert [c.question_count for c in grown.classes] == np.bincount(
        [q.candidate_class for q in found], minlength=3
    ).tolist()
    version = session.scalars(select(DatasetVersion).order_by(DatasetVersion.number.desc())).first()
    assert version is not None
    assert second.commitment == draws.commitment(
        second.seed,
        dataset_digest=version.digest or "",
        examples=25,
        class_names=grown.class_names,
        rounds=2,
        first_position=20,
    )
    audit = audited(session, grown)
    assert audit.passed
    assert [(item.number, item.dataset_version, item.draws_match) for item in audit.drawings] == [
        (1, 1, True),
        (2, 2, True),
    ]


@pytest.mark.parametrize("number", [1, 2])
def test_a_changed_draw_of_either_drawing_is_found_and_named(
    context: Context, session: Session, grown: Campaign, admin: User, number: int
) -> None:
    ask(session, grown, admin, context)
    question = next(q for q in questions_of(session, grown)[7:] if q.drawing == number)
    question.candidate_class = (question.candidate_class + 1) % 3
    session.commit()

    audit = audited(session, grown)

    assert audit.passed is False
    assert {item.number: item.draws_match for item in audit.drawings} == {number: False, 3 - number: True}
    assert any(f"do not follow from the seed of drawing {number}." in alarm for alarm in audit.alarms)


def test_a_changed_seed_of_the_second_drawing_is_found(
    context: Context, session: Session, grown: Campaign, admin: User
) -> None:
    ask(session, grown, admin, context)
    session.scalars(select(FurtherDrawing)).one().seed = "ab" * 32
    session.commit()

    audit = audited(session, grown)

    assert [item.commitment_matches for item in audit.drawings] == [True, False]
    assert audit.passed is False


def test_people_answer_while_questions_are_drawn_and_see_them_all_at_once(
    context: Context, session: Session, grown: Campaign, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "CHUNK", 7)
    person = make_user(session)
    drawings.ask_further(session, grown, by=admin, now=NOW)
    session.commit()
    real, old = questions.add_questions, {q.id for q in questions_of(session, grown)}
    seen: list[int] = []

    def answered_between(work: Session, campaign_id: UUID, *details: Any, **further: Any) -> None:
        real(work, campaign_id, *details, **further)
        _, held = lease(work, campaign_id, count=3, by=person, now=utc_now())
        seen.extend(item.id for item in held.questions)

    with monkeypatch.context() as patch:
        patch.setattr(questions, "add_questions", answered_between)
        drawing.draw_further(context, grown.id)

    session.expire_all()
    assert seen
    assert set(seen) <= old  # what is not published is not handed out
    # Somebody answers all there is: each question once, none left.
    for question in questions_of(session, grown):
        answer(session, grown, question.id, "no", by=person, now=NOW)
    session.commit()
    counts = session.execute(select(func.count(), func.count(Answer.question_id.distinct()))).one()
    assert tuple(counts) == (90, 90)
    progress = annotation.progress(session, campaigns.any_campaign(session, grown.id), now=NOW)
    assert (progress.questions, progress.finished) == (90, 90)
    assert audited(session, grown).passed


def test_questions_that_move_back_before_and_after_still_pass(
    context: Context, session: Session, grown: Campaign, admin: User
) -> None:
    early, *_ = questions_of(session, grown)
    answer(session, grown, early.id, "unsure")  # goes behind the queue of 40
    session.commit()
    ask(session, grown, admin, context)
    assert grown.rank_step == 120  # the next multiple of 40 that holds all 90
    late = questions_of(session, grown)[-1]
    for question in (session.get_one(Question, early.id), late):
        answer(session, grown, question.id, "unsure")
    session.commit()

    audit = audited(session, grown)

    assert audit.passed
    session.get_one(Question, late.id).rank += 1  # which no move explains
    session.commit()
    assert audited(session, grown).passed is False


class Killed(BaseException):
    """The process died."""


def test_a_killed_drawing_shows_nothing_and_starts_again(
    context: Context, session: Session, grown: Campaign, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "CHUNK", 7)
    kept = questions_of(session, grown)[0]
    who = answer(session, grown, kept.id, "no")
    drawings.ask_further(session, grown, by=admin, now=NOW)
    session.commit()
    real = questions.add_questions

    def die_in_the_middle(*details: Any, **further: Any) -> None:
        if further["start"] >= 21:
            raise Killed
        real(*details, **further)

    with monkeypatch.context() as patch:
        patch.setattr(questions, "add_questions", die_in_the_middle)
        with pytest.raises(Killed):
            drawing.draw_further(context, grown.id)
    session.expire_all()
    assert (grown.question_count, drawings.drawings_of(session, grown)[-1].number) == (40, 1)
    assert audited(session, grown).passed

    pending = drawings.pending_drawing(session, grown)
    assert pending is not None
    pending.claimed_until = utc_now() - timedelta(seconds=1)
    session.commit()
    assert drawings.waiting_drawings(session, utc_now()) == [grown.id]
    drawing.draw_further(context, grown.id)

    session.expire_all()
    assert (grown.question_count, len(questions_of(session, grown))) == (90, 90)
    assert session.scalars(select(Answer.user_id)).all() == [who.id]
    assert audited(session, grown).passed


def test_closing_ends_a_drawing_and_leaves_nothing_of_it(
    context: Context, session: Session, grown: Campaign, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawings.ask_further(session, grown, by=admin, now=NOW)
    session.commit()
    real = drawings.finish_drawing

    def after_closing(work: Session, *details: Any, **further: Any) -> None:
        campaigns.close_campaign(work, campaigns.any_campaign(work, grown.id), by=admin, now=NOW)
        real(work, *details, **further)

    with monkeypatch.context() as patch:
        patch.setattr(drawings, "finish_drawing", after_closing)
        drawing.draw_further(context, grown.id)  # its transaction is rolled back
    session.expire_all()
    campaigns.close_campaign(session, grown, by=admin, now=NOW)
    session.commit()
    drawing.draw_further(context, grown.id)

    session.expire_all()
    assert (len(questions_of(session, grown)), drawings.pending_drawing(session, grown)) == (40, None)
    assert audited(session, grown).passed
    with pytest.raises(WrongCampaignState):
        drawings.ask_further(session, grown, by=admin, now=NOW)


def test_asking_twice_is_asking_once_and_nothing_further_is_refused(
    context: Context, session: Session, grown: Campaign, admin: User
) -> None:
    one = drawings.ask_further(session, grown, by=admin, now=NOW)
    assert drawings.ask_further(session, grown, by=admin, now=NOW).id == one.id
    session.commit()
    drawing.draw_further(context, grown.id)
    drawing.draw_further(context, grown.id)  # delivered twice
    session.expire_all()

    with pytest.raises(NothingFurther):
        drawings.ask_further(session, grown, by=admin, now=NOW)
    with pytest.raises(NotAllowed):
        drawings.ask_further(session, grown, by=make_user(session), now=NOW)
    assert grown.question_count == 90
    grow_rows(session, session.get_one(Dataset, grown.dataset_id), 5)
    ask(session, grown, admin, context)
    assert (grown.question_count, len(drawings.drawings_of(session, grown))) == (100, 3)
    assert audited(session, grown).passed


def test_a_drawing_that_always_dies_is_given_up_and_can_be_asked_for_again(
    context: Context, session: Session, grown: Campaign, admin: User
) -> None:
    drawings.ask_further(session, grown, by=admin, now=NOW).attempts = 3
    session.commit()
    drawings.give_up_drawings(session, NOW)
    session.commit()
    pending = drawings.pending_drawing(session, grown)
    assert pending is not None
    assert "did not end" in (pending.failure or "")

    ask(session, grown, admin, context)

    assert grown.question_count == 90


def test_pages_and_api(
    context: Context, client: TestClient, annotator_client: TestClient, grown: Campaign
) -> None:
    address = f"/api/v1/campaigns/{grown.id}"
    page = client.get(f"/campaigns/{grown.id}", headers=HTML).text
    assert "Ask about 25 further images" in page
    assert client.get(f"{address}/drawings").json()["further_images"] == 25
    assert annotator_client.post(f"{address}/further").status_code == 403
    assert annotator_client.get(f"{address}/drawings").status_code == 403

    asked, again = (client.post(f"{address}/further", headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (asked.status_code, asked.json()["items"][1]["drawn_at"]) == (202, None)
    assert (again.status_code, again.json()) == (202, asked.json())
    line, *_ = client.get("/api/v1/journal", params={"campaign_id": str(grown.id)}).json()["items"]
    assert (line["action"], line["details"]["drawing"]) == ("asked-further", 2)
    assert "wait for a worker" in client.get(f"/campaigns/{grown.id}", headers=HTML).text
    drawing.draw_further(context, grown.id)
    drawing.check_draws(context, grown.id)

    late = client.post(f"{address}/further", headers={"Idempotency-Key": "k"})
    assert late.status_code == 202  # what it asked for is there: nothing further is refused, or drawn
    told = client.get(f"{address}/drawings").json()
    assert [(item["number"], item["question_count"], item["seed"]) for item in told["items"]] == [
        (1, 40, None),
        (2, 50, None),
    ]
    page = client.get(f"/campaigns/{grown.id}/audit", headers=HTML).text
    assert "Drawing 2: 50 questions" in page
    assert told["items"][1]["commitment"] in page
    client.post(f"{address}/close")
    audit = client.get(f"{address}/audit", params={"recompute": True}).json()
    assert audit["passed"]
    assert all(len(item["seed"]) == 64 for item in audit["drawings"])
    assert str(grown.name) in client.get(f"/datasets/{grown.dataset_id}", headers=HTML).text
