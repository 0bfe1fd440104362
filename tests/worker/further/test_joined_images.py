"""Images that join while a campaign asks: which are asked about, and what is said and settled of them."""

from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.errors import UnknownPicture
from app.annotation.leasing import lease
from app.annotation.models import AnswerValue, Purpose, Question
from app.campaigns import drawings
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.datasets import versions
from app.datasets.errors import ExampleNotFound
from app.datasets.models import Dataset, Example
from app.quality import service as quality
from app.quality.errors import QuestionNotFound
from tests.factories import NOW, make_user
from tests.worker.further.asking import ask, audited
from worker import drawing
from worker.context import Context


def test_the_same_picture_is_not_asked_about_again_where_twins_are_skipped(
    context: Context, session: Session, grown: Campaign, admin: User
) -> None:
    grown.skip_twins = True
    positions = Example.dataset_id == grown.dataset_id
    one, other = session.scalars(
        select(Example).where(positions, Example.position.in_([3, 30])).order_by(Example.position)
    )
    other.digest = one.digest
    session.commit()

    assert drawings.further_images(session, grown) == 24
    ask(session, grown, admin, context)

    assert grown.question_count == 40 + 48
    assert audited(session, grown).passed


def test_pictures_that_are_not_asked_about_yet_are_no_known_ones_and_nobody_settles_them(
    context: Context, session: Session, grown: Campaign, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = select(Example.id).where(Example.dataset_id == grown.dataset_id, Example.position >= 20)
    known = [annotation.KnownPicture(id_, 0) for id_ in session.scalars(later.limit(1))]
    with pytest.raises(UnknownPicture):
        annotation.mark_known(session, grown, known, by=admin)
    session.refresh(grown, ["classes"])
    some = annotation.some_known(session, grown, per_class=100)
    assert (len(some), {item.example_id for item in some} & set(session.scalars(later))) == (20, set())
    drawings.ask_further(session, grown, by=admin, now=NOW)
    session.commit()
    real = drawings.finish_drawing

    def before_they_are_seen(work: Session, *details: Any, **further: Any) -> None:
        campaign = campaigns.any_campaign(work, grown.id)
        hidden = work.scalars(select(Question).where(Question.drawing == 2)).first()
        assert hidden is not None
        with pytest.raises(ExampleNotFound):
            quality.review_picture(work, campaign, hidden.example_id, kept=False, by=admin, now=NOW)
        with pytest.raises(QuestionNotFound):
            quality.decide(work, campaign, hidden.id, AnswerValue.NO, by=admin, now=NOW)
        real(work, *details, **further)

    monkeypatch.setattr(drawings, "finish_drawing", before_they_are_seen)
    drawing.draw_further(context, grown.id)

    session.expire_all()
    session.refresh(grown, ["classes"])
    assert grown.question_count == 90
    annotation.mark_known(session, grown, known, by=admin)


def test_a_known_picture_stands_behind_one_that_joined_when_it_did(
    context: Context, session: Session, grown: Campaign, admin: User
) -> None:
    grown.gold_share = 0.5  # one behind each other question
    ask(session, grown, admin, context)
    known = annotation.some_known(session, grown, per_class=100)
    annotation.mark_known(session, grown, known, by=admin)
    session.commit()

    _, leased = lease(session, grown.id, count=20, by=make_user(session), now=NOW)
    grown.gold_share = 0.0
    session.commit()
    lease(session, grown.id, count=40, by=make_user(session), now=NOW)  # what is left of the first drawing
    grown.gold_share = 0.5
    session.commit()
    _, later = lease(session, grown.id, count=8, by=make_user(session), now=NOW)

    rows = [session.get_one(Question, item.id) for item in [*leased.questions, *later.questions]]
    pairs = [(host, gold) for host, gold in pairwise(rows) if gold.purpose is Purpose.GOLD]
    for _, gold in pairs:
        joined_first = session.get_one(Example, gold.example_id).position < 20
        assert joined_first == (gold.drawing == 1)
    assert {gold.drawing for host, gold in pairs if host.drawing == 2} == {2}


def test_images_of_a_class_that_the_campaign_lacks_are_told_of(session: Session, grown: Campaign) -> None:
    newest = versions.newest(session, session.get_one(Dataset, grown.dataset_id))
    start = versions.version(session, grown.dataset_id, grown.dataset_version or 0)
    assert drawings.further_strangers(session, grown) == ""

    newest.class_names = [*grown.class_names, "walrus"]
    newest.train_per_class = [*(start.train_per_class or [0] * len(grown.class_names)), 4]

    assert drawings.further_strangers(session, grown) == (
        "4 of 25 further images are of walrus, which is no class of this campaign: every question about them "
        "deserves a no"
    )
