"""The last lines that the training processes of a run wrote."""

from uuid import UUID

from app.runs.models import Run
from app.runs.trials import LOG, trial_prefix
from app.storage import Storage

LOG_BYTES = 12_000


def log_key(trial_id: UUID) -> str:
    """Where the supervisor keeps the log of a trial."""
    return f"{trial_prefix(trial_id)}/{LOG}"


def tails(storage: Storage, run: Run) -> list[tuple[int, str]]:
    """Seed and last lines of each trial of a run; "" where nothing was written or the log is gone."""
    return [(trial.seed, _tail(storage, log_key(trial.id))) for trial in run.trials]


def _tail(storage: Storage, key: str) -> str:
    data = storage.tail(key, LOG_BYTES + 1)
    text = data.decode(errors="replace")
    # What was cut in the middle says nothing.
    return (text if len(data) <= LOG_BYTES else text.partition("\n")[2]).strip()
