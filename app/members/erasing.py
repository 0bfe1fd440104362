"""Erasing a person with what this package knows of them."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns.models import CampaignMember, GroupPerson
from app.members.models import OutsideWorker, WorkerVisit
from app.request_keys import IdempotencyKey


def erase_person(session: Session, user_id: UUID, *, name: str, by: User | None, now: datetime) -> User:
    """As `accounts.erase_account`; memberships, keys of requests and the platform's id go, too.

    Answers stay, under the pseudonym that is the person's name from now on.

    Raises:
        UserNotFound, AccountErased, NotAllowed, LastAdmin, NameDiffers: nothing was changed.
    """
    user = accounts.erase_account(session, user_id, name=name, by=by, now=now)
    for table in (CampaignMember, GroupPerson, OutsideWorker, WorkerVisit, IdempotencyKey):
        session.execute(delete(table).where(table.user_id == user_id))
    return user
