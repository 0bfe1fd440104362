"""Task: have a trial trained, here or as a job of a cluster. Imports no torch.

A job trains as a worker does: it claims the trial, holds its lease and writes its end. So the row says how it
is, and the cluster is told what to start and no more. A message that comes again starts no second job while
one of that name is there; and of two the second finds the trial claimed. Jobs that end without a claim are
counted: each of them is followed later than the one before it, and the trial fails after some.
"""

import subprocess
from string import Template
from uuid import UUID

import structlog

from app.clock import utc_now
from app.runs import trials
from app.runs.models import Trial
from app.settings import Settings
from worker.context import Context
from worker.local.processes import environment_of
from worker.supervisor import train_trial

COMMAND_S = 60.0
CREATE = ("kubectl", "create", "-f", "-")
THERE = "AlreadyExists"  # in the words of kubectl

log = structlog.get_logger()


class NotLaunched(Exception):
    """The cluster did not take a job; the message comes again."""


def launch_trial(context: Context, trial_id: UUID) -> None:
    """Train what is next in the queue, or hand this trial to the cluster that the settings name.

    Raises:
        NotLaunched: the cluster's program is not there, or refuses the job.
    """
    settings = context.settings
    if settings.launcher == "local":
        train_trial(context, trial_id)
        return
    with context.reading() as session:
        if not trials.is_free(session, trial_id, now=utc_now()):
            log.info("trial.not_free", trial_id=str(trial_id))
            return
        trial = trials.load_trial(session, trial_id)
        if not trials.may_launch(trial, now=utc_now()):
            log.info("trial.launch_rests", trial_id=str(trial_id), launches=trial.launches)
            return
        name, job = job_of(settings, trial, trial.run.processes)
    try:
        taken = _by_kubernetes(job) if settings.launcher == "kubernetes" else _by_slurm(settings, name, job)
    except NotLaunched as refusal:
        with context.unit_of_work() as session:
            trials.note_not_launched(session, trial_id, reason=f"{refusal}.", now=utc_now())
        raise
    if taken:
        with context.unit_of_work() as session:
            trials.note_launch(session, trial_id, now=utc_now())
    log.info("trial.launched" if taken else "trial.launched_before", trial_id=str(trial_id), job=name)


def job_of(settings: Settings, trial: Trial, processes: int) -> tuple[str, str]:
    """A job's name, another one for each attempt, and its description for the cluster."""
    assert settings.launcher_template is not None  # the settings see to it
    name = f"clarinet-{trial.id}-{trial.claim_number + 1}"
    template = Template(settings.launcher_template.read_text())
    # safe: shells have names of their own.
    return name, template.safe_substitute(JOB=name, TRIAL=str(trial.id), PROCESSES=str(processes))


def _by_kubernetes(job: str) -> bool:
    """Whether the job is new."""
    done = _run(CREATE, job)
    if done.returncode and THERE in done.stderr:
        return False
    _require(done)
    return True


def _by_slurm(settings: Settings, name: str, job: str) -> bool:
    """Whether the job is new; it gets the settings of this worker, but starts its training itself."""
    there = _run(("squeue", "--noheader", "--format=%i", f"--name={name}"))
    _require(there)
    if there.stdout.strip():
        return False
    own = settings.model_copy(update={"launcher": "local", "launcher_template": None})
    _require(_run(("sbatch", "--parsable", f"--job-name={name}"), job, environment_of(own)))
    return True


def _run(
    command: tuple[str, ...], told: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=told,
            env=environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotLaunched(f"{command[0]} could not be asked to start a trial: {error}") from error


def _require(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise NotLaunched(f"{done.args[0]} refused a trial: {done.stderr.strip() or done.returncode}")
