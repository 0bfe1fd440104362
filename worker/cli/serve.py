"""The commands that stay: web process, workers, upkeep, and all of them together."""

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal
from uuid import UUID

import structlog
import typer

from app.accounts import service as accounts
from app.clock import utc_now
from app.db import Database, unit_of_work
from app.jobs import QUEUE_OF, TRAIN_TRIAL
from app.lines import print_lines
from app.logs import configure_logs
from app.proxies import warning_at_start
from app.settings import Settings
from worker.beats import Teller, silently
from worker.local.gpus import device_among, gpus_taken
from worker.local.starting import BadStart, alone_on, require_free_port
from worker.local.up import asked_to_end, bring_up_to_date, children, keep_up, settings_for
from worker.local.waiting import wait_for_database
from worker.local.watching import Watch

SWITCH_S = 0.001  # so long a thread may keep the interpreter from others (Python: 0.005)
GRACEFUL_S = 5  # uvicorn would wait for open event streams for ever

log = structlog.get_logger()


def first_admin_link(database: Database, settings: Settings) -> str | None:
    """A one-time link for the first admin, which ends earlier ones; None where somebody can administer."""
    with unit_of_work(database.write, lambda _: None) as session:
        secret = accounts.invite_first_admin(session, now=utc_now())
    return accounts.invitation_url(settings.public_url, secret) if secret else None


def tell_first_admin(database: Database, settings: Settings) -> None:
    """Where nobody can administer, say how somebody may. The log that machines keep learns no link."""
    if not settings.logs_json:
        if link := first_admin_link(database, settings):
            _print(
                f"Nobody can administer this installation yet. Open this link to become its admin:\n{link}"
            )
        return
    with database.read() as session:
        is_missing = not accounts.has_admin(session)
    if is_missing:
        log.warning("admin.missing", mend="clarinet user add EMAIL --admin --link")


def _print(words: str, *, err: bool = False) -> None:
    with suppress(OSError):  # nobody reads it, or its disk is full: the server can do without
        typer.echo(words, err=err)


def _say(words: str) -> None:
    _print(f"clarinet: {words}", err=True)


def _begin(settings: Settings) -> None:
    """Log as the settings say; where a machine reads it, what is printed is logged as well."""
    if settings.logs_json:
        print_lines()
    configure_logs(settings)


def _tie_to(parent: int | None) -> None:
    from worker.local.processes import die_with_parent

    if parent is not None:
        die_with_parent(parent)


def run_serve(
    *,
    host: str,
    port: int,
    migrate: bool,
    parent: int | None,
    answering: Literal["fast", "plain"] = "fast",
) -> None:
    """Serve until SIGTERM or Ctrl-C; `answering` as `create_app` has it."""
    import uvicorn
    from uvicorn.config import LOGGING_CONFIG

    from app.main import create_app
    from worker.local.patience import PatientHttp

    _tie_to(parent)
    settings = settings_for(host=host, port=port, data_dir=None)
    _begin(settings)
    require_free_port(host, port)
    wait_for_database(settings, needs_schema=not migrate, say=_say)
    if migrate:
        bring_up_to_date(settings)
    application = create_app(settings, answering=answering)
    tell_first_admin(application.state.database, settings)
    if warning := warning_at_start(settings, host):
        _print(f"Warning: {warning}", err=True)
    # What is here now stays until the end: looking for garbage among it stops all requests for a while.
    gc.collect()
    gc.freeze()
    # A batch takes one thread some milliseconds of Python; so long the answers of the database to the others
    # lie there, and the database has nothing to do.
    sys.setswitchinterval(SWITCH_S)
    uvicorn.run(
        application,
        host=host,
        port=port,
        http=PatientHttp,
        timeout_graceful_shutdown=GRACEFUL_S,
        access_log=False,  # the application logs its requests itself, without secrets
        log_level="warning",
        log_config=None if settings.logs_json else LOGGING_CONFIG,
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=settings.trusted_proxies,
    )


def run_jobs(queues: Sequence[str], *, concurrency: int, parent: int | None) -> None:
    """Take jobs until SIGTERM or Ctrl-C."""
    from worker.celery_app import QUEUES, run_worker

    _tie_to(parent)
    if teller := Teller.of_environment():
        teller.beat_on()
    names = [name.strip() for name in queues]
    unknown = [name for name in names if name not in QUEUES]
    if unknown:
        raise BadStart(f"There is no queue called {unknown[0]!r}; there are {', '.join(QUEUES)}.")
    settings = Settings()
    _begin(settings)
    with ExitStack() as stack:
        if QUEUE_OF[TRAIN_TRIAL] in names and settings.launcher == "local":
            taken = stack.enter_context(gpus_taken(settings.device, settings.gpus))
            if taken and concurrency > 1:
                raise BadStart(
                    f"Trainings of one worker would share its GPU: leave out --concurrency {concurrency} and "
                    "start one worker for each GPU."
                )
            settings = settings.model_copy(update={"device": device_among(settings.device, taken)})
        wait_for_database(settings, needs_schema=True, say=_say)
        run_worker(settings, queues=names, concurrency=concurrency)


def run_one_trial(trial_id: UUID) -> None:
    """Train one trial, if it still waits."""
    from worker.once import train_once

    settings = Settings()
    _begin(settings)
    wait_for_database(settings, needs_schema=True, say=_say)
    train_once(settings, trial_id)


def run_upkeep_process(*, parent: int | None) -> None:
    """Look after waiting and lost work until SIGTERM or Ctrl-C."""
    from worker.context import Context
    from worker.upkeep import run_upkeep

    _tie_to(parent)
    settings = Settings()
    _begin(settings)
    with asked_to_end() as ended:
        wait_for_database(settings, needs_schema=True, say=_say, ended=ended)
        teller = Teller.of_environment()
        run_upkeep(Context.of(settings), ended, beat=teller.beat if teller else silently)


def run_up(*, host: str, port: int, data_dir: Path | None) -> None:
    """Run everything until SIGTERM or Ctrl-C."""
    settings = settings_for(host=host, port=port, data_dir=data_dir)
    _begin(settings)
    require_free_port(host, port)
    with alone_on(settings.data_dir), asked_to_end() as ended:
        wait_for_database(settings, needs_schema=False, say=_say, ended=ended)
        if ended.is_set():
            return
        bring_up_to_date(settings)
        _print(f"Clarinet starts at {settings.public_url} (process {os.getpid()}). Ctrl-C ends it.")
        keep_up(children(settings, host=host, port=port), ended, Watch(host=host, port=port))
