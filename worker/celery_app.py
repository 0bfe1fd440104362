"""create_celery(): the queue's settings, each with its reason, and the tasks by name."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog
from billiard.util import get_logger
from celery import Celery, bootsteps, signals
from celery.apps import worker as worker_app
from celery.worker import state
from kombu.entity import Exchange, Queue

from app import jobs
from app.lines import end_lines
from app.logs import configure_logs
from app.settings import Settings
from app.tracing import spans
from worker.context import ProcessContext
from worker.heartbeat import Heartbeat

if TYPE_CHECKING:
    from app.tracing.exporting import Part

# Where the function of each job lives. It is imported when the first such job arrives: a worker of one queue
# does not load what only the other one needs.
TASKS = {
    jobs.IMPORT_DATASET: ("worker.intake", "import_dataset"),
    jobs.IMPORT_LABELS: ("worker.label_intake", "import_labels"),
    jobs.ADD_IMAGES: ("worker.intake", "add_images"),
    jobs.OPEN_CAMPAIGN: ("worker.drawing", "open_campaign"),
    jobs.DRAW_FURTHER: ("worker.drawing", "draw_further"),
    jobs.CHECK_DRAWS: ("worker.drawing", "check_draws"),
    jobs.KEEP_FIGURES: ("worker.precomputing", "keep_figures"),
    jobs.TRAIN_TRIAL: ("worker.launching", "launch_trial"),
    jobs.PREDICT_DATASET: ("worker.predicting", "predict_dataset"),
    jobs.MAKE_UMAP: ("worker.umapping", "make_umap"),
    jobs.SEND_NOTICE: ("worker.notifying", "send_notice"),
    jobs.MEASURE_DISK: ("worker.adding_up", "measure_disk"),
}
QUEUES = tuple(dict.fromkeys(jobs.QUEUE_OF.values()))

log = structlog.get_logger()


def create_celery(settings: Settings) -> Celery:
    """The Celery application of a worker process."""
    configure_logs(settings)
    if settings.logs_json:
        _log_as_we_do()
    celery = Celery("clarinet", set_as_current=False)
    celery.conf.update(
        jobs.broker_options(settings),
        task_queues=[_queue(name) for name in QUEUES],
        task_routes={name: {"queue": queue} for name, queue in jobs.QUEUE_OF.items()},
        # Results are rows; a result backend would be a second truth.
        task_ignore_result=True,
        # Acknowledge early: late acks are neither exactly-once nor crash-safe (a visibility timeout shorter
        # than a training starts it again beside the first). The row owns recovery, upkeep sends again.
        task_acks_late=False,
        task_reject_on_worker_lost=False,
        # No time limit: Celery would kill the supervisor and not its training. The supervisor enforces the
        # run's own limit.
        task_time_limit=None,
        task_soft_time_limit=None,
        # Take one message at a time; a second one would wait here, behind hours of training, while another
        # worker is idle.
        worker_prefetch_multiplier=1,
        # With early acks even a multiplier of 1 reserves one message beyond the running task. Only the Redis
        # transport can do without; elsewhere the setting would warn at each start.
        worker_disable_prefetch=settings.broker_url.startswith(("redis://", "rediss://")),
        # Forked pool children share our stop flag. Celery has the kernel kill them with their parent (a test
        # holds it to that), so no supervisor outlives its worker. Torch is never loaded here.
        worker_pool="prefork",
        worker_pool_start_method="fork",
        # A broker that goes away says nothing about the training; its row does.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # A cold shutdown gives supervisors the time in which a trainer writes its checkpoint.
        worker_soft_shutdown_timeout=30,
        # Wait for a broker that starts later than we do, and for one that comes back, without an end.
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Nobody remote-controls our workers: cancelling goes through the row, and revoke(terminate=True)
        # kills a pool process that may be busy with something else by then.
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        # Our own structured logs, not Celery's format around them.
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    contexts = ProcessContext(settings)
    for name, (module, function) in TASKS.items():
        celery.task(name=name, shared=False, bind=True)(_task(contexts, name, module, function))
    celery.steps["consumer"].add(_heartbeat_step(contexts))
    celery.contexts = contexts
    return celery


def _queue(name: str) -> Queue:
    """A queue behind an exchange of its own, as the sender declares it; the default one joins them all."""
    return Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]  # kombu


def _task(contexts: ProcessContext, name: str, module: str, function: str) -> Callable[..., None]:
    """The edge of the process: ids in (of most jobs one), nothing out, one log line when something unforeseen
    is raised.
    """

    def run(task: Any, *row_ids: str) -> None:
        structlog.contextvars.clear_contextvars()
        row_id = next(iter(row_ids), None)
        structlog.contextvars.bind_contextvars(job=name, row_id=row_id)
        work: Callable[..., None] = getattr(import_module(module), function)
        spans.begin(contexts.settings, "worker")
        with _traced(name, row_id, task.request.get(spans.HEADER)) as part:
            try:
                work(contexts(), *(UUID(row_id) for row_id in row_ids))
            except Exception as error:
                # Whatever it was, the row is unclaimed or its lease runs out, and upkeep hands it on.
                log.exception("job.failed")
                if part is not None:
                    part.fail(type(error).__name__)
            finally:
                structlog.contextvars.clear_contextvars()
        if contexts.is_stopping():
            spans.end()  # this process is killed soon

    return run


def _traced(name: str, row_id: str | None, asked_by: str | None) -> AbstractContextManager["Part | None"]:
    """A span for a job. None for training that upkeep asks for again and again: who trains tells of it."""
    if asked_by is None and name == jobs.TRAIN_TRIAL:
        return spans.NOTHING
    return spans.span(f"job {name}", asked_by=asked_by, kind="consumer", statements=True, row=row_id)


def _log_as_we_do() -> None:
    """Celery keeps its handlers and formats to itself; what it writes without a logger goes through ours."""

    def on_setup(**_: Any) -> None:
        get_logger().propagate = True  # billiard's, which has no handler

    signals.setup_logging.connect(on_setup, weak=False)
    # Written past every stream, in the handler of a signal.
    worker_app.safe_say = lambda said, _file=None: log.info("celery.said", said=said)


def _tell_lost(sender: Any = None, args: Sequence[str] = (), exception: object = None, **_: Any) -> None:
    """Celery's own line does not say whose process of its pool was killed."""
    row_id = next(iter(args or ()), None)
    log.error("job.lost", job=getattr(sender, "name", ""), row_id=row_id, error=repr(exception))


def _heartbeat_step(contexts: ProcessContext) -> type[bootsteps.StartStopStep]:
    """Beat while this worker consumes: a live process that lost its broker must not look alive."""

    class HeartbeatStep(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery ships no types
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def __init__(self, consumer: Any, **options: Any) -> None:
            super().__init__(consumer, **options)
            self.heartbeat: Heartbeat | None = None

        def start(self, consumer: Any) -> None:
            queues = sorted(queue.name for queue in consumer.task_consumer.queues)
            self.heartbeat = Heartbeat(contexts(), consumer.hostname, queues)
            self.heartbeat.start()

        def stop(self, consumer: Any) -> None:  # noqa: ARG002 - Celery's signature
            if self.heartbeat:
                self.heartbeat.stop()
                self.heartbeat = None

    return HeartbeatStep


def _leave() -> None:
    """End this process as soon as no job is in it.

    Celery alone takes some 4 s more: its broker and the threads of its pool are asked in turn. A message that
    arrives meanwhile is lost as with any worker that is killed: its row waits, and upkeep sends it again.
    """
    while state.reserved_requests or state.active_requests:
        time.sleep(0.05)
    end_lines()
    os._exit(0)


def run_worker(
    settings: Settings, *, queues: Sequence[str] = QUEUES, concurrency: int = 1, name: str = ""
) -> None:
    """Work off queues in this process until SIGTERM or SIGINT; then trainings are checkpointed and handed on.

    Args:
        settings: as everywhere.
        queues: names out of QUEUES; give "gpu" a process of its own per GPU.
        concurrency: how many jobs at a time.
        name: of this worker on its host; empty: made from its queues.
    """
    spans.require(settings)
    celery = create_celery(settings)

    def hand_back(**_: Any) -> None:
        celery.contexts.stop()
        Thread(target=_leave, daemon=True).start()

    signals.worker_shutting_down.connect(hand_back, weak=False)
    signals.task_failure.connect(_tell_lost, weak=False)
    celery.worker_main(
        [
            "--quiet",
            "worker",
            f"--queues={','.join(queues)}",
            f"--concurrency={concurrency}",
            f"--hostname={name or '-'.join(queues)}-{os.getpid()}@%h",
            "--loglevel=WARNING",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )
