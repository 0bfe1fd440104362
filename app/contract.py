"""The OpenAPI document: what the framework reads off the routes, and what it cannot see of them.

Every problem is declared as the problem+json that it is; operations have the names that a person would give
them; programs sign in with a token, browsers with a cookie and the token of our pages.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from app.examples import EXAMPLES

PROBLEM_JSON = "application/problem+json"
WRITING = {"post", "put", "patch", "delete"}
# Statuses that operations answer with a problem, and why: all, those about a thing, streams, and writes.
ANYWHERE = {
    "401": "Nobody known is signed in.",
    "403": "This person may not do that.",
    "422": "Something is missing, misspelt or refused; `errors` says where.",
    "503": "More to do than the server can, or what it needs is away. Try again after `Retry-After` seconds.",
}
OF_THINGS = {
    "404": "There is no such thing, or none that this person may know of.",
    "409": "The thing is not in a state that allows this.",
}
OF_STREAMS = {"429": "As many streams are open as the server keeps."}
OF_PARTS = {"416": "The range begins behind the end of the file."}
OF_PASSWORDS = {"429": "Too many were wrong. Try again after `Retry-After` seconds."}
OF_PREDICTING = {"429": "As many pictures wait as may. Try again after `Retry-After` seconds."}
OF_BODIES = {
    "400": "The form cannot be taken apart.",
    "408": "The body did not arrive in time.",
    "413": "The body is larger than this address takes.",
    "415": "The body is of another type, or not in UTF-8.",
}
SIGNED_IN: list[dict[str, list[str]]] = [{"HTTPBearer": []}, {"SessionCookie": []}]
SIGNED_IN_TO_WRITE: list[dict[str, list[str]]] = [{"HTTPBearer": []}, {"SessionCookie": [], "CsrfToken": []}]
# Names of operations that do not follow from the function's own.
NAMES = {
    "show_me": "get_me",
    "invite": "create_invitation",
    "invite_several": "create_invitations",
    "mark_known": "mark_known_pictures",
    "leave_out": "leave_person_out",
    "count_again": "count_person_again",
    "decide": "create_decision",
    "take_back_decision": "undo_decision",
    "read_events": "follow_run",
    "example_image": "get_example_image",
    "campaign_picture": "get_campaign_picture",
    "set_price": "set_campaign_price",
    "ask_again": "ask_doubtful_questions_again",
    "list_tokens_of": "list_user_tokens",
    "list_made_by": "get_user_made",
    "end_sessions_of": "end_user_sessions",
    "make_password_link": "create_password_link",
    "turn_off_second_factor": "delete_second_factor",
    "set_admission": "set_campaign_admission",
    "add_member": "add_campaign_member",
    "remove_member": "remove_campaign_member",
    "add_group": "add_campaign_group",
    "remove_group": "remove_campaign_group",
    "make_worker_link": "create_worker_link",
    "make_group": "create_group",
    "add_person": "add_group_person",
    "remove_person": "remove_group_person",
}
LISTS = {
    "tokens",
    "users",
    "campaigns",
    "datasets",
    "examples",
    "imports",
    "runs",
    "metrics",
    "models",
    "model_names",
    "predictions",
    "trial_predictions",
    "evaluations",
    "journal",
    "worker_processes",
}


class Fault(BaseModel):
    """One thing that is wrong with a request, and where."""

    pointer: str = Field(examples=["body/name"])
    detail: str = Field(examples=["Please fill this in."])


class UsedBy(BaseModel):
    """A thing that uses what cannot be deleted or changed, or that has the name."""

    kind: str = Field(examples=["campaign"])
    id: UUID
    name: str
    url: str = Field(description="of its JSON", examples=["/api/v1/campaigns/0"])


class Problem(BaseModel):
    """Why a request was not carried out (RFC 9457). Some types add facts of their own."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="address of a page about it, or about:blank", examples=["/problems/not-allowed"]
    )
    title: str = Field(examples=["Not allowed"])
    status: int = Field(examples=[403])
    detail: str = Field(description="what is wrong and what to do, in the language that was asked for")
    instance: str = Field(description="path of the request", examples=["/api/v1/users"])
    errors: list[Fault] = Field(default=[], description="of a request that is not of the right shape")
    used_by: list[UsedBy] = Field(
        default=[], description="what stands in the way; of many the newest of each kind"
    )
    used_by_left_out: int = Field(default=0, description="how many more there are")


def operation_id(route: APIRoute) -> str:
    """What a person would call an operation: `list_campaigns`, `get_campaign`, `create_campaign`."""
    name = NAMES.get(route.name, route.name)
    verb, _, thing = name.partition("_")
    if verb != "read":
        return name
    return f"list_{thing}" if thing in LISTS else f"get_{thing}"


def install(app: FastAPI) -> None:
    """Let the application answer with our document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = document_of(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # as the framework's documentation has it


def document_of(app: FastAPI) -> dict[str, Any]:
    """The document."""
    made = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description="Errors are `application/problem+json`. Lists page by key: `next` goes into `after`.",
        routes=app.routes,
    )
    parts = made["components"]
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    parts["schemas"] |= problem.pop("$defs") | {"Problem": problem}
    for name in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(name, None)
    parts["securitySchemes"] |= {
        "SessionCookie": {
            "type": "apiKey",
            "in": "cookie",
            "name": "clarinet",
            "description": "Of a browser that has signed in; on https its name is __Host-clarinet.",
        },
        "CsrfToken": {
            "type": "apiKey",
            "in": "header",
            "name": "X-CSRF-Token",
            "description": "Of our pages; a write that rides on a cookie needs it.",
        },
    }
    _name_inline(parts["schemas"])
    for path, method, operation in operations_of(made):
        statuses = ANYWHERE | (OF_BODIES if method in WRITING else {})
        names_things = "{" in path or method in WRITING or "parameters" in operation
        statuses |= OF_THINGS if names_things else {}
        statuses |= OF_PASSWORDS if operation["operationId"] == "prove_myself" else {}
        statuses |= OF_PREDICTING if operation["operationId"] == "predict_pictures" else {}
        statuses |= OF_STREAMS if "text/event-stream" in str(operation["responses"]) else {}
        statuses |= OF_PARTS if "206" in operation["responses"] else {}
        operation["responses"] |= {status: _problem(why) for status, why in sorted(statuses.items())}
        operation["security"] = SIGNED_IN_TO_WRITE if method in WRITING else SIGNED_IN
        example = EXAMPLES.get(operation["operationId"])
        if example is not None and "requestBody" in operation:
            operation["requestBody"]["content"]["application/json"]["example"] = example
    return made


def _name_inline(schemas: dict[str, Any]) -> None:
    """Give choices and objects that may be null a name, which generators would make up: `LooksType0`."""
    for model, schema in list(schemas.items()):
        for field, about in schema.get("properties", {}).items():
            for place, one in enumerate(about.get("anyOf", ())):
                is_choice = "enum" in one
                if not is_choice and one.get("type") != "object":
                    continue
                words = [field] if is_choice else [model.removesuffix("Read").removesuffix("Create"), field]
                name = "".join(word[0].upper() + word[1:] for part in words for word in part.split("_"))
                named = one | {"title": name}
                if schemas.setdefault(name, named) == named:  # else it is the name of another
                    about["anyOf"][place] = {"$ref": f"#/components/schemas/{name}"}


def operations_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation, in the document's order."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _problem(why: str) -> dict[str, Any]:
    return {
        "description": why,
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
