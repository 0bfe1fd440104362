"""Mail with a link to another password, for somebody who asked on the sign-in page."""

from datetime import datetime
from uuid import UUID

from app.accounts import service
from app.accounts.errors import AccountDisabled
from app.accounts.models import User
from app.db import Database, unit_of_work
from app.journal.writing import ADDRESS
from app.languages import gettext as _
from app.mail import send_mail
from app.settings import Settings


def send_password_link(
    database: Database, settings: Settings, user_id: UUID, *, address: str, now: datetime
) -> bool:
    """Make a link and send it to the person's address; False where that failed. `address`: who asked."""
    try:
        with unit_of_work(database.write, lambda _job: None) as session:
            session.info[ADDRESS] = address
            user = session.get_one(User, user_id)
            _link, secret = service.make_password_link(session, user, by=None, now=now)
    except AccountDisabled:  # meanwhile
        return False
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
