"""One of the other processes of a run in several: it trains its part, and writes nothing."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog

from app.db import connect
from app.logs import configure_logs
from app.runs import trials
from app.settings import Settings
from app.stores.chosen import storage_of
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import Interrupted
from clarinet.run.memory import keep_freed_memory
from clarinet.run.training import train_in_steps
from clarinet.run.turns import finished
from worker.outages import PATIENCE_S
from worker.trainer.exits import Exit
from worker.trainer.faults import exit_for
from worker.trainer.given import Given
from worker.trainer.others import Place, device_of_part, joined_here, share_cores
from worker.trainer.training import device_of, from_checkpoint_or_anew, weights_folder
from worker.trainer.trial_data import load

# A process that lost a peer waits so long with its end, which says nothing, for that of the one that tells.
BEHIND_S = 1.0


def train_part(given: Given, place: Place, *, should_stop: Callable[[], bool]) -> Exit:
    """Train beside the first process, which has the claim, the checkpoint and the last word."""
    settings = Settings()
    configure_logs(settings)
    structlog.contextvars.bind_contextvars(rank=place.rank)
    keep_freed_memory()
    share_cores(place, settings.trainer_threads)
    database = connect(settings.sqlalchemy_url)
    try:
        with database.read.begin() as session:
            trial = trials.load_trial(session, given.trial_id)
            config = TrainConfig.from_dict(trial.run.config | {"seed": trial.seed})
            # The first one waits for us meanwhile, and beats no more.
            storage = storage_of(settings).patiently(PATIENCE_S, beat=given.teller.beat)
            loaded = load(session, storage, trial.run, config, beat=given.teller.beat)
        device = device_of_part(device_of(settings.device), place)
        with tempfile.TemporaryDirectory() as folder, joined_here(place, device) as group:
            nowhere = Path(folder) / "checkpoint"  # the first one's counts
            once = partial(
                train_in_steps,
                config,
                loaded.data,
                device=device,
                on_part=given.teller.beat,  # of the parts of all the slowest counts
                checkpoint=nowhere,
                should_stop=should_stop,
                weights_folder=weights_folder(settings.weights_dir, config),
                group=group,
            )
            finished(from_checkpoint_or_anew(once, nowhere))
    except Interrupted:
        return Exit.ENDED  # which the first one tells
    except Exception as error:  # as in the first one, which ends as this one does
        code = exit_for(error, given)
        if code is Exit.UNFORESEEN:
            time.sleep(BEHIND_S)
        return code
    finally:
        database.dispose()
    return Exit.ENDED
