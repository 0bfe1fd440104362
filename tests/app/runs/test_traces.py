"""A launched run keeps the trace of its launch, and the message that goes out names it, too."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.datasets.models import Dataset
from app.jobs import Job
from app.main import create_app
from app.runs.models import Run
from app.tracing import spans
from tests.collector import collector

LAUNCH = "/api/v1/campaigns/{campaign_id}/runs"


def test_a_run_and_its_message_belong_to_the_request_that_launched_it(
    client: TestClient, session: Session, campaign: Campaign, target: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[Job] = []
    state = client.app.state  # type: ignore[attr-defined]  # of the application beneath
    on = state.settings.model_copy(update={"traces": True})
    with collector() as told:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", told.url)
        app = create_app(on, database=state.database, publish=published.append)
        with TestClient(app, headers=dict(client.headers)) as traced:
            body = {"target_dataset_id": str(target.id), "preset": "quick", "seeds": [5]}
            answer = traced.post(LAUNCH.format(campaign_id=campaign.id), json=body)
            [span] = told.wait_for(f"POST {LAUNCH}")
        spans.end()

    assert answer.status_code == 202, answer.text
    kept = session.scalars(select(Run.traceparent)).one()
    assert kept == f"00-{span.trace}-{span.id}-{(kept or '')[-2:]}"
    assert [job.traceparent for job in published] == [kept]
    assert "traceparent" not in answer.text
