"""The OpenAPI document is true: what it says is what the server does, and clients made from it work."""

import json
import re
import time
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import ValidationError
from schemathesis.checks import CHECKS
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from sqlalchemy.orm import Session

from app.annotation.schemas import AnswersInput, LeaseRequest
from app.contract import PROBLEM_JSON, document_of, operations_of
from app.problems import problem_types, status_of
from app.runs.schemas import RunCreate
from app.stores.folder import FolderStorage
from tests.factories import make_campaign, make_dataset, make_run

BUDGET_S = 25.0  # of one core, for each database
CHECKED = (
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "not_a_server_error",
)


def test_operations_have_names_that_a_person_would_choose(app: FastAPI) -> None:
    ids = [operation["operationId"] for _, _, operation in operations_of(document_of(app))]

    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", name) for name in ids)
    assert {"list_campaigns", "get_campaign", "create_campaign", "start_run", "get_me", "follow_run"} <= set(
        ids
    )


def test_no_two_shapes_share_a_name(app: FastAPI) -> None:
    """The framework would tell them apart by their modules' paths, which generated clients trip over."""
    assert [name for name in document_of(app)["components"]["schemas"] if "__" in name] == []


def test_every_problem_is_declared_as_what_it_is(app: FastAPI) -> None:
    for path, _, operation in operations_of(document_of(app)):
        for status, response in operation["responses"].items():
            if status >= "400":
                assert list(response["content"]) == [PROBLEM_JSON], (path, status)
            elif status not in {"204", "304", "307"}:
                assert response["content"], (path, status)
                for media_type, content in response["content"].items():
                    assert content["schema"], (path, media_type)

    told = {status for _, _, one in operations_of(document_of(app)) for status in one["responses"]}
    assert {str(status_of(kind.__new__(kind))) for kind in problem_types().values()} <= told


def test_what_a_body_may_hold_has_a_bound(app: FastAPI) -> None:
    """Each thing that is wrong is an error of its own: without bounds 2 MB of JSON become hundreds of MB."""
    document = document_of(app)
    waiting = [
        (one["operationId"], content["schema"])
        for _, _, one in operations_of(document)
        for content in one.get("requestBody", {}).get("content", {}).values()
    ]
    seen: set[str] = set()
    while waiting:
        where, schema = waiting.pop()
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name not in seen:
                seen.add(name)
                waiting.append((name, document["components"]["schemas"][name]))
            continue
        if schema.get("type") == "array":
            assert "maxItems" in schema, where
            waiting.append((where, schema["items"]))
        if schema.get("additionalProperties"):
            assert "maxProperties" in schema, where
        inner = [*schema.get("properties", {}).items(), *((where, one) for one in schema.get("anyOf", ()))]
        waiting += [(f"{where}/{name}", one) for name, one in inner]

    assert len(seen) > 15


@pytest.mark.parametrize(
    "extra",
    [
        {f"k{number}": 1 for number in range(20_000)},
        {"config": {f"k{number}": None for number in range(20_000)}},
        {"seeds": ["x"] * 20_000},
    ],
    ids=["fields", "config", "seeds"],
)
def test_thousands_of_things_that_are_wrong_are_not_looked_at(extra: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as refused:
        RunCreate.model_validate({"target_dataset_id": str(uuid4()), **extra})

    assert refused.value.error_count() <= 1001


def test_downloads_and_streams_say_what_they_are(app: FastAPI) -> None:
    found = {
        one["operationId"]: one["responses"]["200"]["content"]
        for _, _, one in operations_of(document_of(app))
        if "200" in one["responses"]
    }

    assert {"text/csv", "application/json", "application/vnd.apache.parquet"} <= set(found["download_labels"])
    assert list(found["follow_run"]) == ["text/event-stream"]
    assert set(found["get_example_image"]) == {"image/png", "image/jpeg"}
    assert list(found["download_model"]) == ["application/zip"]


def test_examples_fit_their_schemas(app: FastAPI) -> None:
    import jsonschema_rs

    document = document_of(app)
    seen = 0
    for path, method, operation in operations_of(document):
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body is None:
            continue
        seen += 1
        assert "example" in body, (method, path)
        jsonschema_rs.validator_for(body["schema"] | {"components": document["components"]}).validate(
            body["example"]
        )

    assert seen > 12
    AnswersInput.model_validate_json(json.dumps(_example(document, "submit_answers")))
    LeaseRequest.model_validate(_example(document, "lease_questions"))


def _example(document: dict, name: str) -> object:  # type: ignore[type-arg]  # JSON
    (found,) = [one for _, _, one in operations_of(document) if one["operationId"] == name]
    return found["requestBody"]["content"]["application/json"]["example"]


@pytest.mark.long
def test_no_status_and_no_shape_is_undocumented(
    app: FastAPI, client: TestClient, session: Session, storage: FolderStorage
) -> None:
    """Requests that schemathesis makes of the document, with ids of what is there; at most BUDGET_S."""
    dataset, campaign, run = (
        make_dataset(session, storage),
        make_campaign(session),
        make_run(session, storage),
    )
    session.commit()
    there = {"campaign_id": campaign.id, "dataset_id": dataset.id, "run_id": run.id}
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
    checks: list[Any] = list(CHECKS.get_by_names(list(CHECKED)))  # each has a type of its own
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    faults: list[str] = []
    # What the document says of a request is the same on each database; of rows, one request tells.
    each = 3 if session.get_bind().dialect.name == "sqlite" else 1
    ends, asked = time.process_time() + BUDGET_S, set()

    for operation in sorted(operations, key=lambda one: one.label):
        if operation.path.endswith("/events"):
            continue  # a stream has no end

        @settings(
            max_examples=each,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: schemathesis.Case[Any]) -> None:
            if time.process_time() > ends:
                return
            case.path_parameters = (case.path_parameters or {}) | {
                name: str(value) for name, value in there.items() if name in (case.path_parameters or {})
            }
            headers = {"Authorization": client.headers["authorization"]}
            response = case.call(headers=headers)
            try:
                case.validate_response(response, checks=checks, headers=headers)
            except FailureGroup as group:
                faults.extend(f"{operation.label}: {one}" for one in group.exceptions)  # noqa: B023
            asked.add(operation.label)  # noqa: B023  # called at once

        ask()

    assert not faults, "\n".join(faults)
    assert len(asked) > 0.8 * len(operations)
