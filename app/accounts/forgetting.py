"""Mail with a link to another password, for somebody who asked on the sign-in page."""

from datetime import datetime
from uuid import UUID

from app.accounts import service
from app.accounts.errors import AccountDisabled
from app.accounts.models import User
from app.accounts.organisation.service import linked
from app.db import Database, unit_of_work
from app.journal.writing import ADDRESS
from app.languages import gettext as _
from app.mail import send_mail
from app.settings import Settings


def send_password_link(
    database: Database, settings: Settings, user_id: UUID, *, address: str, now: datetime
) -> bool:
    """Make a link and send it to the person's address; False where that failed. `address`: who asked.

    Who has no password, but an account of the organisation, gets word of that in its place: whoever reads
    their mail must not get a way in that the organisation cannot close. An admin's link still gives one.
    """
    try:
        with unit_of_work(database.write, lambda _job: None) as session:
            session.info[ADDRESS] = address
            user = session.get_one(User, user_id)
            is_theirs = user.password_hash is None and linked(session, user, settings) is not None
            secret = "" if is_theirs else service.make_password_link(session, user, by=None, now=now)[1]
    except AccountDisabled:  # meanwhile
        return False
    if is_theirs:
        return _say_by_whom(settings, user)
    text = _(
        "Somebody, probably you, asked for another password for Clarinet. "
        "This link works once, for a day:\n\n{url}\n\n"
        "If it was not you, do nothing: your password stays as it is."
    )
    return send_mail(
        settings,
        to=user.email,
        subject=_("Another password for Clarinet"),
        text=text.format(url=service.password_url(settings.public_url, secret)),
    )


def _say_by_whom(settings: Settings, user: User) -> bool:
    text = _(
        "Somebody, probably you, asked for another password for Clarinet. "
        "You have none here: you sign in with {name}.\n\n{url}\n\n"
        "An admin can give you a link to choose a password."
    )
    return send_mail(
        settings,
        to=user.email,
        subject=_("Signing in to Clarinet"),
        text=text.format(name=settings.organisation, url=settings.public_url.rstrip("/") + "/sign-in"),
    )
