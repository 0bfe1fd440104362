"""Silence is no answer to a misspelling: what an address, a form or a body names must be known.

The API refuses every parameter and field that it does not know, and names the near one. Pages refuse fields
of forms alike. Of the parameters of their addresses they refuse what looks like one of their own, and ignore
the rest: links from elsewhere add their own (utm_source).
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar, get_args, get_origin

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import FormData, UploadFile

LIKENESS = 0.6  # of two names, as difflib has it
LIKENESS_ON_PAGES = 0.75  # what links add must not look like a slip
FEW = 12  # so many names are told where none is near
LONGEST_NAME = 40  # of an unknown one that is told back
API = "/api/"
Reader = TypeVar("Reader", bound=Callable[..., Any])
MISSPELT = "misspelt"  # type of such a fault, beside those of the validator
NO_BODY = "This address takes no body"
READS_BODY = "__reads_body__"
CSRF_FIELD = "csrf_token"
ONCE_FIELD = "once"  # in forms that make a thing once, however often they are sent; see app/idempotency.py
# How other APIs page, and how lists page here.
PAGING = {"page", "page_number", "offset", "skip", "start", "cursor", "next", "before"}
PAGE_NUMBERS = {"page", "page_number"}  # no list has pages by number, whatever address it has
PAGE_SIZE = {"per_page", "page_size", "size", "count"}


def no_such(name: str, known: Collection[str], *, what: str = "field") -> str:
    """A sentence about a name that is not known, with the one that it is near to or, of few, all."""
    shown = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    near = near_one(name, known)
    if near and name in PAGING:
        return f"Lists have no {shown!r} here: give what 'next' says as {near!r}."
    if near:
        return f"There is no {what} {shown!r} here. Did you mean {near!r}?"
    if not known:
        return f"There is no {what} {shown!r} here; none is taken."
    if len(known) <= FEW:
        return f"There is no {what} {shown!r} here. It may be {', '.join(sorted(known))}."
    return f"There is no {what} {shown!r} here."


def near_one(name: str, known: Collection[str], *, likeness: float = LIKENESS) -> str:
    """The known name that somebody meant, or nothing."""
    if name in PAGING and "after" in known:
        return "after"
    if name in PAGE_SIZE and "limit" in known:
        return "limit"
    small = {one.lower(): one for one in known}
    found = get_close_matches(name.lower().replace("-", "_"), small, n=1, cutoff=likeness)
    return small[found[0]] if found else ""


def refuse(part: str, faults: Iterable[tuple[str, str]]) -> None:
    """Raise what the framework raises about (name, sentence) pairs; nothing where there are none."""
    found = [{"type": MISSPELT, "loc": (part, _printable(name)), "msg": told} for name, told in faults]
    if found:
        raise RequestValidationError(found)


def _printable(name: str) -> str:
    """The same without halves of characters: JSON may write them, and no answer can."""
    return name.encode(errors="backslashreplace").decode()


def refuse_unknown_query(request: Request, known: Collection[str], *, several: Collection[str] = ()) -> None:
    """Refuse parameters of the address that are not known, and in the API those that are given twice.

    `several`: those that may be given more than once.
    """
    given = request.query_params
    if not given:
        return
    strict = request.scope["path"].startswith(API)
    faults = [
        (name, no_such(name, known, what="parameter"))
        for name in given
        if name not in known
        and (strict or name in PAGE_NUMBERS or near_one(name, known, likeness=LIKENESS_ON_PAGES))
    ]
    if strict:
        twice = [
            name for name in given if name in known and name not in several and len(given.getlist(name)) > 1
        ]
        faults += [(name, "This parameter is given more than once.") for name in twice]
    refuse("query", faults)


def refuse_unknown_fields(form: FormData, texts: Collection[str], *, files: Collection[str] = ()) -> None:
    """Refuse fields of a form that are not known; a field of a file is none of text, and the other way.

    One file is taken of each field, and of a form with files one text: the others would be lost in silence.
    """
    once = [*files, *texts] if files else []
    faults = [(name, "This field is given more than once.") for name in once if len(form.getlist(name)) > 1]
    for name, value in form.multi_items():
        is_file = isinstance(value, UploadFile)
        known = files if is_file else {*texts, CSRF_FIELD}
        is_left_empty = name in files and value == ""  # a field for a file, without one
        if name not in known and not is_left_empty:
            faults.append((name, no_such(name, files if is_file else texts, what=_kind(is_file=is_file))))
    refuse("body", dict(faults).items())


def _kind(*, is_file: bool) -> str:
    return "field for a file" if is_file else "field"


def reads_body(dependency: Reader) -> Reader:
    """Mark a dependency that reads the body as it comes, and refuses unknown fields itself."""
    setattr(dependency, READS_BODY, ())
    return dependency


def reads_body_or(*names: str) -> Callable[[Reader], Reader]:
    """The same where parameters of the address may go with a bare body."""

    def mark(dependency: Reader) -> Reader:
        setattr(dependency, READS_BODY, names)
        return dependency

    return mark


@dataclass(frozen=True, slots=True)
class Taken:
    """What a route takes: names of parameters of its address, and whether something looks into a body."""

    parameters: frozenset[str]
    body: bool
    several: frozenset[str] = frozenset()  # parameters that may be given more than once


_TAKEN: dict[Callable[..., object], Taken] = {}  # by endpoint; worked out at its first request


def taken_by(route: APIRoute) -> Taken:
    """What a route takes."""
    if route.endpoint not in _TAKEN:
        _TAKEN[route.endpoint] = _taken_by(route)
    return _TAKEN[route.endpoint]


def _taken_by(route: APIRoute) -> Taken:
    names: set[str] = set()
    several: set[str] = set()
    has_body = route.body_field is not None
    waiting = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        waiting += dependant.dependencies
        has_body = has_body or hasattr(dependant.call, READS_BODY)
        names |= set(getattr(dependant.call, READS_BODY, ()))
        for param in dependant.query_params:
            hint = param.field_info.annotation
            several |= {param.alias} if get_origin(hint) is list else set()
            models = list(_models_in(hint))
            names |= {name for model in models for name in model.model_fields} if models else {param.alias}
    for extra in (route.openapi_extra or {}).get("parameters", ()):
        if extra["in"] == "query":
            names.add(extra["name"])
    return Taken(frozenset(names), has_body, frozenset(several))


def refuse_twice(body: bytes) -> None:
    """Refuse JSON in which an object has a field twice: of the two, one would be lost in silence."""
    twice: dict[str, None] = {}

    def look(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice.update(dict.fromkeys(name for name, count in counts.items() if count > 1))
        return found

    try:
        json.loads(body, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return  # who reads it says what is wrong with it
    names = [name[:LONGEST_NAME] for name in twice]
    refuse("body", [(name, "This field is given more than once.") for name in names[:FEW]])


def refuse_fields(body: bytes) -> None:
    """Refuse what is sent where nothing is taken; an empty object is nothing."""
    try:
        given = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        given = None
    if isinstance(given, dict):
        refuse("body", [(name, no_such(name, ())) for name in given])
    else:
        raise RequestValidationError([{"type": MISSPELT, "loc": ("body",), "msg": NO_BODY}])


def query_of(*names: str) -> dict[str, Any]:
    """`openapi_extra` of a page that reads its parameters as they come."""
    return {"parameters": [{"name": name, "in": "query"} for name in names]}


def fields_at(hint: Any, place: Sequence[object]) -> frozenset[str]:  # a hint is of no type
    """Names of the fields that a body of this type may have at a place: a path of names and positions."""
    models = list(_models_in(hint))
    for step in place:
        if isinstance(step, str):
            fields = [model.model_fields[step] for model in models if step in model.model_fields]
            models = [found for field in fields for found in _models_in(field.annotation)]
    return frozenset(name for model in models for name in model.model_fields)


def worded(fault: Mapping[str, Any], hint: Any, place: Sequence[object]) -> str:
    """What a validator says about a place in a body of this type; of an unknown field, which one is near."""
    if hint is not None and fault.get("type") == "extra_forbidden" and place:
        return no_such(str(place[-1]), fields_at(hint, place[:-1]))
    return str(fault["msg"])


def _models_in(hint: Any) -> Iterator[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
    for part in get_args(hint):
        yield from _models_in(part)
