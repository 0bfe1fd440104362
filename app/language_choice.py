"""Who is spoken to in which language: for the length of a request, and from then on."""

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from app.access import public
from app.accounts.signing import own_path
from app.deps import FormDep, SettingsDep
from app.languages import LANGUAGES, choose, speaking
from app.spelling import refuse_unknown_fields

COOKIE = "language"
YEAR_S = 365 * 24 * 3600

router = APIRouter(include_in_schema=False)


class ChosenLanguage:
    """Let each request speak the language that its cookie names, or that its browser prefers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        with speaking(choose(cookie, headers.get("accept-language", ""))):
            await self.app(scope, receive, send)


@router.post("/language", name="choose_language")
@public
def choose_language(form: FormDep, settings: SettingsDep) -> Response:
    """Speak another language from now on, and go back to the page."""
    refuse_unknown_fields(form, ("language", "next"))
    response = RedirectResponse(own_path(str(form.get("next", ""))), 303)
    language = str(form.get("language", ""))
    if language in LANGUAGES:
        response.set_cookie(
            COOKIE, language, max_age=YEAR_S, secure=settings.is_secure, httponly=True, samesite="lax"
        )
    return response
