"""The client against the OpenAPI document: every address, field and type that it uses is there."""

import re
import types
from typing import (
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pytest

from app.contract import document_of
from app.main import create_app
from app.settings import Settings
from clarinet_client import operations
from clarinet_client.operations import Address, Download, Listing, Operation
from clarinet_client.shapes.datasets import Fault

PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
CALLS = {name: call for name, call in vars(operations).items() if isinstance(call, Address)}
# Takes a key, and is sent without: what it makes is a secret, which a repetition would not show again.
UNKEYED = {"MAKE_SIMULATED"}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the application says of its API; no database is asked."""
    settings = Settings(environment="test", data_dir=tmp_path_factory.mktemp("document"), _env_file=None)
    return document_of(create_app(settings, publish=lambda _job: None))


def misfits(wanted: Any, schema: Any, document: Any, *, sent: bool, where: str) -> list[str]:
    """Where a type of the client is not what the document says."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if get_origin(wanted) in {Union, types.UnionType}:
        one, _ = sorted(get_args(wanted), key=lambda part: part is types.NoneType)
        kinds = [part for part in schema.get("anyOf", []) if part.get("type") != "null"]
        if len(kinds) != 1 or len(schema["anyOf"]) != 2:
            return [f"{where}: may not be null"]
        return misfits(one, kinds[0], document, sent=sent, where=where)
    if is_typeddict(wanted):
        return _misfits_of_fields(wanted, schema, document, sent=sent, where=where)
    if get_origin(wanted) is Literal:
        known = schema.get("enum", [schema.get("const")])
        return [] if set(get_args(wanted)) == set(known) else [f"{where}: may be {known}"]
    if get_origin(wanted) is list and schema.get("type") == "array":
        return misfits(get_args(wanted)[0], schema["items"], document, sent=sent, where=f"{where}[]")
    kind = {dict: "object", list: "array"}.get(get_origin(wanted)) or PLAIN.get(wanted)
    return [] if wanted is Any or schema.get("type") == kind else [f"{where}: is {schema.get('type')}"]


def _misfits_of_fields(wanted: Any, schema: Any, document: Any, *, sent: bool, where: str) -> list[str]:
    known, found = schema.get("properties", {}), []
    needed = set(schema.get("required", []))
    for name, kind in get_type_hints(wanted).items():
        if name not in known:
            found.append(f"{where}.{name}: is not there")
            continue
        if not sent and name not in needed:
            found.append(f"{where}.{name}: may be missing")
        found += misfits(kind, known[name], document, sent=sent, where=f"{where}.{name}")
    if sent:
        missing = needed - set(wanted.__required_keys__) - {"file"}  # which a form has beside its texts
        found += [f"{where}.{name}: must be sent" for name in missing]
    return found


@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_as_the_document_says(name: str, document: Any) -> None:
    call = CALLS[name]
    described = document["paths"][f"/api/v1{call.path}"][call.method.lower()]
    said = described.get("parameters", [])
    reply = next(one for status, one in described["responses"].items() if status.startswith("2"))

    query = {one["name"] for one in said if one["in"] == "query"}
    assert {one["name"] for one in said if one["in"] == "path"} == set(re.findall(r"{(\w+)}", call.path))
    assert set(getattr(call, "query", ())) <= query
    if isinstance(call, Download):
        assert set(call.types) == set(reply["content"])
        assert call.by_link == ("307" in described["responses"])
        return
    takes_key = any(one["name"].lower() == "idempotency-key" for one in said)
    assert isinstance(call, Operation | Listing)
    assert call.is_keyed == (takes_key and name not in UNKEYED)
    given = reply.get("content", {}).get("application/json", {}).get("schema")
    if isinstance(call, Listing):
        page = document["components"]["schemas"][given["$ref"].rpartition("/")[2]]["properties"]
        assert "next" in page
        assert misfits(list[call.of], page["items"], document, sent=False, where="items") == []  # type: ignore[name-defined]
        return
    assert (call.gives is None) == (given is None)
    if given:
        assert misfits(call.gives, given, document, sent=False, where="answer") == []
    bodies = described.get("requestBody", {}).get("content", {})
    body = bodies.get("multipart/form-data") or bodies.get("application/json")
    if call.takes is not None:
        assert misfits(call.takes, body["schema"], document, sent=True, where="body") == []
    else:
        assert body is None or set(body["schema"].get("required", [])) <= {"file", "pictures"}


def test_what_does_not_fit_is_seen(document: Any) -> None:
    class Wrong(TypedDict):
        id: int
        name: str
        class_names: list[str]
        state: Literal["ready"]
        faults: list[Fault]
        colour: str

    class Body(TypedDict):
        name: NotRequired[str]

    dataset = {"$ref": "#/components/schemas/DatasetRead"}
    campaign = {"$ref": "#/components/schemas/CampaignCreate"}

    assert misfits(Wrong, dataset, document, sent=False, where="answer") == [
        "answer.id: is string",
        "answer.class_names: is None",
        "answer.state: may be ['importing', 'ready', 'failed']",
        "answer.colour: is not there",
    ]
    assert sorted(misfits(Body, campaign, document, sent=True, where="body")) == [
        "body.dataset_id: must be sent",
        "body.name: must be sent",
    ]
