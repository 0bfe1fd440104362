"""HTML routes: who is told of what happens."""

from collections.abc import Mapping
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.accounts.models import User
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, SessionDep, SettingsDep
from app.idempotency import FormOnceDep
from app.notices import schemas, service
from app.notices.addresses import shortened
from app.notices.errors import AddressNotAllowed, NoMailServer
from app.notices.models import Event
from app.pages import read_form, render, see_other
from app.settings import Settings

router = APIRouter(include_in_schema=False)

EVENTS = [
    (schemas.Told.RUN_ENDED, "A run has ended"),
    (
        schemas.Told.CAMPAIGN_NEARLY_DONE,
        "A campaign is nearly done: 95 % of its questions need no more answers",
    ),
    (schemas.Told.PERSON_PAUSED, "A person is paused"),
]
NOTHING_CHOSEN = "Choose at least one event."


@router.get("/subscriptions")
@admin_only
def show_subscriptions(
    request: Request, user: CurrentUser, session: SessionDep, settings: SettingsDep
) -> HTMLResponse:
    """Who is told of what, and whether it arrived."""
    return _page(request, session, settings, user)


@router.post("/subscriptions")
@admin_only
def subscribe_from_page(
    *,
    request: Request,
    form: FormDep,
    once: FormOnceDep,
    user: CurrentUser,
    session: SessionDep,
    settings: SettingsDep,
) -> Response:
    """Subscribe; the answer shows the secret, this once."""
    given, errors = read_form(form, schemas.SubscriptionForm)
    if given is not None:
        try:
            if not given.events:
                errors = {"": NOTHING_CHOSEN}
            elif given.to is schemas.To.WEBHOOK and given.url is None:
                errors = {"url": "Please fill this in."}
            else:
                once.begin_form(session)
                row = service.subscribe(
                    session,
                    settings,
                    url=given.url if given.to is schemas.To.WEBHOOK else None,
                    events=[Event(event) for event in given.events],
                    by=user,
                    now=utc_now(),
                )
                if row.secret is None:
                    return see_other(request, "show_subscriptions")
                return _page(request, session, settings, user, status=201, secret=row.secret)
        except AddressNotAllowed as error:
            errors = {"url": error.detail}
        except NoMailServer as error:
            errors = {"": error.detail}
    asked = {"to": form.get("to", ""), "url": form.get("url", ""), "events": form.getlist("events")}
    return _page(request, session, settings, user, status=422, form=asked, errors=errors)


@router.post("/subscriptions/{subscription_id}/test")
@admin_only
def try_subscription_out(
    request: Request, subscription_id: UUID, user: CurrentUser, session: SessionDep, settings: SettingsDep
) -> Response:
    """Send a notice that says that an admin asked for it."""
    service.try_out(session, settings, subscription_id, by=user, now=utc_now())
    return see_other(request, "show_subscriptions")


@router.post("/subscriptions/{subscription_id}/delete")
@admin_only
def end_subscription_from_page(
    request: Request, subscription_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Tell nobody more."""
    service.end_subscription(session, subscription_id, by=user)
    return see_other(request, "show_subscriptions")


def _page(
    request: Request,
    session: Session,
    settings: Settings,
    user: User,
    *,
    status: int = 200,
    secret: str = "",
    form: Mapping[str, object] | None = None,
    errors: dict[str, str] | None = None,
) -> HTMLResponse:
    return render(
        request,
        "notices/subscriptions.html",
        status=status,
        subscriptions=[
            (one, one.url and shortened(one.url), service.why_ended(one))
            for one in service.list_subscriptions(session, by=user)
        ],
        latest=service.latest_notices(session),
        events=EVENTS,
        hosts=settings.webhook_hosts,
        sends_mail=settings.sends_mail,
        secret=secret,
        form=form or {"to": "", "url": "", "events": [str(event) for event, _ in EVENTS]},
        errors=errors or {},
    )
