"""One trace from the request to the result, over the queue, the worker and the process that trains."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from app import jobs
from app.clock import utc_now
from app.jobs import publisher
from app.runs.logs import log_key
from app.runs.models import TrialState
from app.tracing import spans
from tests.collector import Collector, Told, collector
from tests.factories import make_run
from tests.worker.conftest import PYTHON, folder_of, trial_of, wait_until
from tests.worker.test_celery import WORK
from worker.context import Context
from worker.local.processes import environment_of

LAUNCH = "POST /api/v1/runs"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that this process and those that it starts send to."""
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        yield found
        spans.end()


@pytest.fixture
def traced(context: Context, told: Collector) -> Context:
    """A context that tells, and publishes to a queue in a folder."""
    assert told
    settings = context.settings.model_copy(update={"traces": True, "log_format": "json"})
    spans.begin(settings, "web")
    return replace(context, settings=settings, publish=publisher(settings))


@pytest.fixture
def worker(traced: Context) -> Iterator[subprocess.Popen[bytes]]:
    """A real one for trainings."""
    process = subprocess.Popen([PYTHON, "-c", WORK], env=environment_of(traced.settings))
    yield process
    process.kill()
    process.wait()


def launched(context: Context, *, is_message_lost: bool = False) -> UUID:
    """As the request does that launches a run; gives its trial."""
    with spans.span(LAUNCH, kind="server"), context.unit_of_work() as session:
        run = make_run(session, context.storage, queued_at=utc_now())
        run.traceparent = spans.traceparent()
        if not is_message_lost:
            jobs.enqueue(session, jobs.TRAIN_TRIAL, run.trials[0].id)
    return run.trials[0].id


def child_of(parent: Told, name: str, told: Collector) -> Told:
    [child] = [span for span in told.named(name) if span.parent == parent.id]
    assert child.trace == parent.trace
    return child


@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx", "worker")
def test_launch_claim_training_and_result_are_one_trace(traced: Context, told: Collector) -> None:
    first = launched(traced)
    wait_until(lambda: trial_of(traced, first).state is TrialState.SUCCEEDED)
    told.wait_for("job runs.train")
    second = launched(traced, is_message_lost=True)
    with traced.unit_of_work() as session:
        jobs.enqueue(session, jobs.TRAIN_TRIAL, second)  # as upkeep does
    wait_until(lambda: trial_of(traced, second).state is TrialState.SUCCEEDED)
    told.wait_for("trial.supervise", count=2)

    launch, lost = told.wait_for(LAUNCH, count=2)
    job = child_of(launch, f"job {jobs.TRAIN_TRIAL}", told)
    assert len(told.named(job.name)) == 1  # upkeep's message is about nothing that is traced
    assert (job.service, job.facts) == ("clarinet-worker", {"clarinet.row": str(first)})
    assert any(span.parent == job.id for span in told.named("UPDATE trial"))  # the claim
    for trial_id, asked_by in ((first, job), (second, lost)):
        supervision = child_of(asked_by, "trial.supervise", told)
        assert supervision.facts["clarinet.trial"] == str(trial_id)
        child_of(supervision, "trial.settle", told)
        training = child_of(supervision, "trial.train", told)
        assert training.service == "clarinet-trainer"
        child_of(training, "trial.data", told)
        publishing = child_of(training, "trial.publish", told)
        assert any(span.parent == publishing.id for span in told.named("INSERT model"))
        log = folder_of(traced).path(log_key(trial_id)).read_text()
        lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
        assert {line["trace_id"] for line in lines} == {training.trace}


@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx", "worker")
def test_a_collector_that_hangs_keeps_no_training_from_its_end(traced: Context, told: Collector) -> None:
    told.hangs.set()

    trial_id = launched(traced)

    wait_until(lambda: trial_of(traced, trial_id).state is TrialState.SUCCEEDED)
    assert told.spans == []
