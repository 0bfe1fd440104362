"""Jinja environment, and rendering a page or the fragment of it that htmx asked for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode
from uuid import uuid4

import jinja2
from fastapi import Request, status
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import escape
from pydantic import BaseModel, ValidationError
from starlette.datastructures import URL, FormData
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates
from starlette.types import Scope

import frontend
from app.accounts.callers import masked
from app.clock import utc_now
from app.confused import MOST_IN_MATRIX, most_confused
from app.errors import Use
from app.languages import (
    LANGUAGES,
    SOURCE,
    current_language,
    day_in_words,
    gettext,
    language_name,
    ngettext,
    speaking,
)
from app.organisation_settings import OrganisationSettings
from app.spelling import CSRF_FIELD, LONGEST_NAME, ONCE_FIELD, worded

FRONTEND = Path(frontend.__file__).parent
# Annotators meet these; every other page is for admins and speaks English.
TRANSLATED = (
    "annotation/",
    "accounts/sign_in.html",
    "accounts/accept_invitation.html",
    "accounts/account.html",
    "accounts/second_factor.html",
    "accounts/second_step.html",
    "accounts/forgotten.html",
    "accounts/choose_password.html",
    "accounts/organisation_go.html",
    "members/join.html",
    "members/code.html",
    "members/_code.html",
    "error.html",
    "_error.html",
)
KEPT = (200, 206, 304)  # statuses of a file that is there
Schema = TypeVar("Schema", bound=BaseModel)


def _context(request: Request) -> dict[str, Any]:
    token = getattr(request.state, "csrf_token", "")
    settings: OrganisationSettings = request.app.state.settings
    return {
        "current_user": getattr(request.state, "user", None),
        "csrf_token": masked(token) if token else "",
        "now": utc_now(),
        "language": current_language(),
        "organisation": settings.organisation,  # "": nobody signs in by one
        "has_passwords": settings.password_sign_in,
    }


def static_version() -> str:
    """Changes when the bytes or the name of a static file do, and only then."""
    found = sha256()
    for file in sorted((FRONTEND / "static").rglob("*")):
        if file.is_file():
            found.update(
                str(file.relative_to(FRONTEND)).encode() + b"\0" + sha256(file.read_bytes()).digest()
            )
    return found.hexdigest()[:VERSION_DIGITS]


VERSION_DIGITS = 12
VERSION = static_version()


def asset(path: str) -> str:
    """The address of a static file as it is now; what it imports relatively is of the same version."""
    return f"/static/{VERSION}/{path}"


@jinja2.pass_context
def url_for(context: Mapping[str, Any], name: str, /, **path: Any) -> URL:
    """The path of a route. Which path has that name is looked up once: a list asks a hundred times.

    It names no host: who asks chooses what they call us, and might hand the page on.
    """
    return _address(context["request"], name, **path)


def _address(request: Request, name: str, **path: Any) -> URL:
    texts = {key: str(value) for key, value in path.items()}
    if not all(text and "/" not in text for text in texts.values()):
        return _here(request, request.app.url_path_for(name, **path))
    path_ = path_pattern(request, name, *texts).format_map(texts)
    return _here(request, path_)


def _here(request: Request, path: str) -> URL:
    """A path as browsers ask for it, below what a proxy puts in front."""
    return URL(request.scope.get("root_path", "").rstrip("/") + path)


def path_pattern(request: Request, name: str, /, *parameters: str) -> str:
    """The path of a route with {parameter} for each; looking it up takes a fifth of a millisecond, once."""
    patterns: dict[tuple[str, ...], str] = request.app.state.patterns
    key = name, *parameters
    if key not in patterns:
        patterns[key] = request.app.url_path_for(name, **{each: f"{{{each}}}" for each in parameters})
    return patterns[key]


def as_id(text: object) -> str:
    """An id of an element that is a selector as it stands: htmx looks for `#` and the id."""
    return "-".join(["id", *re.findall(r"[A-Za-z0-9]+", str(text))])


environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FRONTEND / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    extensions=["jinja2.ext.i18n"],
)
environment.policies["ext.i18n.trimmed"] = True
environment.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]  # by the extension
environment.globals["asset"] = asset
environment.globals["new_key"] = lambda: uuid4().hex
environment.globals["url_for"] = url_for
environment.filters["as_id"] = as_id
environment.filters["day_in_words"] = day_in_words
environment.filters["most_confused"] = most_confused
environment.globals["most_in_matrix"] = MOST_IN_MATRIX
environment.globals["language_name"] = language_name
templates = Jinja2Templates(env=environment, context_processors=[_context])


class VersionedFiles(StaticFiles):
    """Static files, which browsers keep for a year if the address names their version, and else check."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, with how long it may be kept."""
        first, _, rest = path.partition("/")
        is_version = re.fullmatch(rf"[0-9a-f]{{{VERSION_DIGITS}}}", first) is not None
        response = await super().get_response(rest if is_version else path, scope)
        # A page of another version, before or behind this server, gets our file; it must not keep it.
        is_ours = first == VERSION and response.status_code in KEPT
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_ours else "no-cache"
        return response


def wants_fragment(request: Request) -> bool:
    """Whether htmx asked for a part; a restored history entry must get the whole page."""
    headers = request.headers
    return "hx-request" in headers and "hx-history-restore-request" not in headers


def wants_page(request: Request) -> bool:
    """Whether a browser asked, and not a program."""
    return not request.scope["path"].startswith("/api/") and "text/html" in request.headers.get("accept", "")


def render(
    request: Request, page: str, *, fragment: str | None = None, status: int = 200, **context: object
) -> HTMLResponse:
    """The whole page, or only its fragment when htmx asked for it."""
    name = fragment if fragment and wants_fragment(request) else page
    chosen = getattr(request.state, "chosen_language", None)  # of whom a page for managers speaks English to
    is_translated = chosen is None and name.startswith(TRANSLATED)
    chosen = chosen or current_language()
    also_in = "" if is_translated or chosen == SOURCE else LANGUAGES[chosen]
    with speaking(current_language() if is_translated else SOURCE):
        return templates.TemplateResponse(
            request,
            name,
            context | {"languages": LANGUAGES if is_translated else {}, "also_in": also_in},
            status_code=status,
            headers={"Vary": "HX-Request", "Cache-Control": "no-store"},
        )


def without_none(**values: object) -> dict[str, object]:
    """Those that are given: what a list is limited to, for the address of its next page."""
    return {name: value for name, value in values.items() if value is not None}


def see_other(request: Request, name: str, *, place: str = "", **path: Any) -> RedirectResponse:
    """To the page of a route after a form was sent: a reload must not send it again.

    `place`: the id of what is to be in sight.
    """
    address = request.app.url_path_for(name, **path) + (f"#{place}" if place else "")
    return RedirectResponse(address, status.HTTP_303_SEE_OTHER)


def address_of(request: Request, verb: str, use: Use) -> str:
    """Of a thing's page ("show") or of its JSON ("read"): routes are named alike."""
    return str(request.app.url_path_for(f"{verb}_{use.kind}", **{f"{use.kind}_id": str(use.id)}))


def with_query(
    request: Request, name: str, *, path: Mapping[str, str] | None = None, **values: object
) -> URL:
    """The address of a route with values in its query, lists as several of the same name."""
    return _address(request, name, **(path or {})).replace(query=urlencode(values, doseq=True))


def read_form(form: FormData, schema: type[Schema]) -> tuple[Schema | None, dict[str, str]]:
    """Check a form against a schema; gives the result, or a message by field ("" for the whole form).

    Empty fields count as absent, so that defaults hold; a name that is given several times becomes a list.
    """
    values: dict[str, object] = {}
    for name in form:
        given = [value for value in form.getlist(name) if value != ""]
        if name not in (CSRF_FIELD, ONCE_FIELD) and given:
            values[name] = given[0] if len(given) == 1 else given
    try:
        return schema.model_validate(values), {}
    except ValidationError as error:
        return None, {
            str(item["loc"][0]) if item["loc"] else "": as_sentence(worded(item, schema, item["loc"]))
            for item in error.errors()
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the summary above a refused form says.

    Args:
        sentences: what is wrong with the form as a whole, or with a field that it does not show.
        beside: how many fields have their reason beside them; `first` is the topmost one's id.
    """

    sentences: list[str]
    beside: int
    first: str


def refusal_of(fields: str, errors: Mapping[str, str]) -> Refusal | None:
    """What to say above the HTML of a form's fields about its errors by field; None where there are none."""
    if not errors:
        return None
    ids = {name: _id_of(fields, name) for name in errors if name}
    shown = sorted((fields.find(f' id="{found}"'), found) for found in ids.values() if found)
    sentences = [
        f"{name[:LONGEST_NAME]}: {detail}" if name else detail
        for name, detail in errors.items()
        if not ids.get(name)
    ]
    return Refusal(sentences, beside=len(shown), first=shown[0][1] if shown else "")


def _id_of(fields: str, name: str) -> str:
    """The id of the input of a name: the name, or another where a page has two such inputs; "" for none."""
    known = str(escape(name))
    if f' id="{known}"' in fields:
        return known
    found = re.search(rf' id="([^"]+)" name="{re.escape(known)}"', fields)
    return found[1] if found else ""


environment.globals["refusal_of"] = refusal_of


def as_sentence(message: str) -> str:
    """A validator's message as a sentence."""
    message = re.sub(r"^(Value error|Assertion failed), ", "", message)
    if message == "Field required":
        message = gettext("Please fill this in")
    elif too_long := re.fullmatch(r"String should have at most (\d+) characters?", message):
        message = gettext("At most {count} characters fit here").format(count=too_long[1])
    return message[:1].upper() + message[1:] + ("" if message.endswith((".", "?", "。")) else ".")
