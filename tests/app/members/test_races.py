"""Many at once, on real connections: one account for one id, as many as asked for, nothing after the end."""

from functools import partial
from uuid import uuid4

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Answer, AnswerValue, Lease
from app.annotation.service import SubmittedAnswer
from app.campaigns.models import Admits, Campaign
from app.clock import utc_now
from app.db import Database
from app.members import service
from tests import annotators
from tests.app.accounts.conftest import committed  # noqa: F401  # a fixture
from tests.app.accounts.test_races import admins, at_once
from tests.factories import make_campaign, make_user

pytestmark = [pytest.mark.long, pytest.mark.dialects]

MOST = 4
AT_ONCE = 8


def begin(session: Session, *, secret: str, worker_id: str) -> None:
    """Come by the link."""
    service.join(session, secret, worker_id, now=utc_now())


def test_one_id_makes_one_account_and_a_link_no_more_than_it_admits(
    committed: Database,  # noqa: F811
) -> None:
    with committed.write.begin() as session:
        campaign, admin = make_campaign(session), make_user(session, role="admin")
        _, secret = service.make_link(
            session, campaign, answers_needed=1, max_workers=MOST, by=admin, now=utc_now()
        )

    same = at_once(committed, [partial(begin, secret=secret, worker_id="same")] * AT_ONCE)
    others = at_once(
        committed, [partial(begin, secret=secret, worker_id=f"other-{n}") for n in range(AT_ONCE)]
    )

    assert same == [True] * AT_ONCE
    assert sum(others) == MOST - 1
    with committed.read() as session:
        assert session.scalar(select(func.count()).where(User.is_outside)) == MOST


def test_no_answer_lands_after_its_person_was_removed(committed: Database) -> None:  # noqa: F811
    for _ in range(MOST):
        with committed.write.begin() as session:
            campaign, admin = make_campaign(session, examples=AT_ONCE), make_user(session, role="admin")
            person = make_user(session)
            service.set_admission(session, campaign, Admits.INVITED, by=admin, now=utc_now())
            service.add_member(session, campaign, person.id, by=admin)
        with committed.write.begin() as session:
            held = annotators.lease(session, campaign, count=AT_ONCE - 1, by=person, now=utc_now())
        counted: list[int] = []

        def remove(
            session: Session,
            campaign_id: object = campaign.id,
            person: User = person,
            admin: User = admin,
            counted: list[int] = counted,
        ) -> None:
            service.remove_member(
                session, session.get_one(Campaign, campaign_id), person.id, by=admin, now=utc_now()
            )
            mine = select(func.count()).select_from(Answer).where(Answer.user_id == person.id)
            counted.append(session.scalar(mine) or 0)

        def answer(
            session: Session, question_id: int, campaign: Campaign = campaign, person: User = person
        ) -> None:
            given = SubmittedAnswer(question_id, AnswerValue.NO, 900, uuid4())
            annotators.submit(session, campaign, [given], by=person, now=utc_now())

        at_once(committed, [remove, *(partial(answer, question_id=item.id) for item in held)])

        with committed.read() as session:
            mine = select(func.count()).select_from(Answer).where(Answer.user_id == person.id)
            assert [session.scalar(mine)] == counted
            live = select(func.count()).where(Lease.user_id == person.id, Lease.expires_at > utc_now())
            assert session.scalar(live) == 0


def test_of_two_admins_who_erase_each_other_at_once_one_remains(committed: Database) -> None:  # noqa: F811
    for _ in range(MOST):
        one, other = admins(committed, 2)

        def erase(session: Session, by: User, whom: User) -> None:
            service.erase_person(session, whom.id, name=whom.name, by=by, now=utc_now())

        done = at_once(committed, [partial(erase, by=one, whom=other), partial(erase, by=other, whom=one)])

        with committed.read() as session:
            left = [user for user in (one, other) if session.get_one(User, user.id).erased_at is None]
            assert len(left) == 1
            assert session.get_one(User, left[0].id).is_admin
            assert sum(done) == 1
