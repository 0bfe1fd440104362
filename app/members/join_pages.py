"""HTML routes of outside workers: how they begin, and their completion code."""

from fastapi import APIRouter, Request, status
from fastapi.responses import HTMLResponse, Response

from app.access import public, signed_in
from app.accounts.signing import go_on_signed_in
from app.addresses import address_of
from app.annotation.deps import ScreenDep
from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, SettingsDep
from app.members import schemas, service
from app.members.errors import NoPlaceLeft, NothingLeft, NotWelcome, WorkerIdNeeded, how_to_return
from app.pages import read_form, render

router = APIRouter(include_in_schema=False)


@router.get("/join/{secret}")
@public
def show_join(
    *,
    request: Request,
    secret: str,
    session: SessionDep,
    PROLIFIC_PID: str = "",  # noqa: N803  # as the platforms write them
    workerId: str = "",  # noqa: N803
    worker_id: str = "",
) -> Response:
    """What is asked for, and a button: opening the page makes nothing, as programs look at links, too."""
    _, campaign = service.find_link(session, secret)
    worker = service.worker_id_of([PROLIFIC_PID, workerId, worker_id]) or ""
    return _page(request, secret, campaign, worker)


@router.post("/join/{secret}")
@public
def join(
    *,
    request: Request,
    secret: str,
    form: FormDep,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Begin, or go on where the same id was before."""
    request.app.state.sign_in_limit.count_join(address=address_of(request))
    given, errors = read_form(form, schemas.JoinForm)
    if given is not None:
        try:
            user, link = service.join(session, secret, given.worker, now=utc_now())
        except WorkerIdNeeded as error:
            errors = {"worker": error.detail}
        except (NoPlaceLeft, NothingLeft, NotWelcome) as error:
            errors = {"": error.detail}
        else:
            target = request.app.url_path_for("annotate", campaign_id=str(link.campaign_id))
            return go_on_signed_in(request, session, settings, user, str(target))
    with reading.begin() as looking:
        _, campaign = service.find_link(looking, secret)
    return _page(request, secret, campaign, str(form.get("worker", "")), errors)


def _page(
    request: Request, secret: str, campaign: Campaign, worker: str, errors: dict[str, str] | None = None
) -> HTMLResponse:
    return render(
        request,
        "members/join.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        secret=secret,
        campaign=campaign,
        worker=worker,
        errors=errors or {},
    )


@router.get("/annotate/{campaign_id}/code")
@signed_in
def show_code(request: Request, campaign: ScreenDep, user: CurrentUser, session: SessionDep) -> Response:
    """An outside worker's completion code, once they have answered enough; until then it asks again."""
    found = service.completions(session, campaign, user)
    if not found:
        raise CampaignNotFound
    return render(
        request,
        "members/code.html",
        fragment="members/_code.html",
        campaign=campaign,
        earlier=[one.code for one in found[:-1]],
        completion=found[-1],
        ending=service.ending(session, campaign, user.id, found[-1]),
        how_to_return=how_to_return(),
    )
