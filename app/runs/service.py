"""Runs: start, cancel and read them. The life of a trial is in trials.py."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, selectinload

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import noting
from app.campaigns.models import Campaign, CampaignState
from app.claims import unclaimed
from app.datasets import service as datasets
from app.datasets import versions
from app.datasets.models import Dataset, DatasetVersion
from app.journal.models import Action
from app.labels import service as labelling
from app.runs import configs, queue
from app.runs.errors import (
    BadConfig,
    BadSeeds,
    CampaignNotOpened,
    OneClassAlone,
    RunIsOver,
    RunNotFound,
)
from app.runs.labels import Readiness, collect, freeze
from app.runs.models import DeletedRun, Metric, Run, Trial, TrialState, last_metric_of
from app.runs.pairs import Pair, remember_looks
from app.runs.scoring import measured, scoring_of, source_images
from app.runs.summary import Summary, summarise
from app.runs.weights import file_for
from app.runs.workers import weights_of_workers
from app.storage import Storage
from app.tracing.spans import traceparent
from clarinet.files.looks import looks_of_pair
from clarinet.recipes.choices import HUB
from clarinet.recipes.errors import DataError
from clarinet.recipes.learning import Losses
from clarinet.recipes.rules import check_named_classes

MAX_SEEDS = 20
LARGEST_SEED = 2**31 - 1  # what the column holds
# Two admins may start runs at once; each then takes the next number that is free.
NUMBER_TRIES = 5


@dataclass(frozen=True, slots=True)
class FrozenLabels:
    """The labels that a campaign had at one moment: the digest of their file, and what it holds."""

    campaign_id: UUID
    digest: str
    facts: dict[str, Any]


def freeze_labels(
    session: Session,
    campaign: Campaign,
    *,
    setting: str,
    imported: bool = False,
    uniform_only: bool = False,
    by: User,
    storage: Storage,
) -> FrozenLabels:
    """Store the labels a campaign has now. Takes seconds for many: give a session that only looks.

    `imported`: with its labels from elsewhere, whose questions were not drawn uniformly. `uniform_only`:
    without those of questions by a model's belief.

    A file that no run then uses is harmless; the same labels give the same file.

    Raises:
        NotAllowed: `by` is no admin.
        EvaluationGivesNoLabels: the campaign judges a model.
        CampaignNotOpened: nothing was asked yet.
        TooFewLabels: fewer complementary labels, over all classes together, than MIN_LABELS_PER_CLASS times
            the number of classes; for pc no true one.
    """
    accounts.require_admin(by)
    labelling.require_labels(campaign)
    if campaign.state is CampaignState.DRAFT:
        raise CampaignNotOpened
    labels, facts = collect(session, campaign, imported=imported, uniform_only=uniform_only)
    Readiness.of(facts).require(setting)
    return FrozenLabels(campaign.id, freeze(storage, labels), facts)


def start_run(
    session: Session,
    labels: FrozenLabels,
    pair: Pair,
    *,
    method: str,
    setting: str,
    preset: str | None,
    seeds: Sequence[int],
    config: Mapping[str, object],
    weights: Mapping[str, str | None] = MappingProxyType({}),
    note: str = "",
    processes: int = 1,
    download_weights: bool = False,
    sweep_id: UUID | None = None,
    by: User,
    now: datetime,
) -> Run:
    """Queue one trial per seed over frozen labels.

    Args:
        labels: what `freeze_labels` gave a moment ago.
        pair: what `look_at_pair` gave a moment ago; its looks choose the preset where none is named.
        preset: of the method; None, "default" and "quick" mean what fits the images.
        config: single hyper-parameters that replace the preset's.
        weights: what `weights_asked_for` gave of this config.
        note: at most NOTE characters beside the run.
        processes: of a worker that share each batch of a trial.
        download_weights: a worker may fetch trained weights that none has; without a network it then fails.
        sweep_id: shared by runs that are launched together.

    Raises:
        NotAllowed: `by` is no admin.
        DatasetNotFound: the target has been deleted meanwhile.
        OneClassAlone: the labels cannot tell classes apart.
        BadSeeds, BadConfig: refused values, in words.
    """
    accounts.require_admin(by)
    datasets.get_dataset(session, pair.target_id, by=by)
    _check_seeds(seeds)
    try:
        values = configs.config_for(method, setting, preset, config, looks=pair.looks, weights=weights)
    except configs.ConfigRefused as refused:
        raise BadConfig(refused.field, refused.message) from refused
    _check_classes(labels.facts, values)
    if not download_weights:
        _check_weights_are_there(session, values["network"], now=now)
    if values["losses"]["complementary_loss"] == "inverse" and labels.facts["imported"]:
        raise BadConfig(
            "complementary_loss",
            "The loss inverse needs the probability of each question, which nobody knows of labels from "
            "elsewhere; leave those out, or choose forward or scarce.",
        )
    _check_probabilities(labels.facts, values, setting=setting)
    if processes > 1 and values["network"]["kept_features"]:
        raise BadConfig(
            "processes",
            f"Preset {values['preset']} computes the features of each image once and keeps them, which one "
            "process does. Leave out processes, or choose a preset that takes steps of batches.",
        )
    run = Run(
        campaign_id=labels.campaign_id,
        target_dataset_id=pair.target_id,
        source_version=pair.source_version,
        target_version=pair.target_version,
        method=method,
        setting=setting,
        preset=values["preset"],
        config=values,
        snapshot_digest=labels.digest,
        snapshot_facts=labels.facts | {"dataset_version": pair.source_version},
        created_by_id=by.id,
        created_at=now,
        note=note,
        processes=processes,
        tags=[],
        sweep_id=sweep_id,
        traceparent=traceparent(),
        trials=[Trial(seed=seed, queued_at=now) for seed in sorted(seeds)],
    )
    _add_numbered(session, run)
    remember_looks(session, pair)
    facts = {"run": run.number, "method": method, "setting": setting, "snapshot": labels.digest}
    facts |= {"note": note} if note else {}
    _journal(session, Action.RUN_STARTED, run, by=by, facts=facts)
    for trial in run.trials:
        jobs.enqueue(session, jobs.TRAIN_TRIAL, trial.id)
    return run


def _check_weights_are_there(session: Session, network: Mapping[str, Any], *, now: datetime) -> None:
    """Refuse a download that nobody asked for: where workers have no network, its run would fail."""
    at_hand = weights_of_workers(session, now=now) if network["pretrained"] == HUB else None
    if at_hand is None or file_for(network["architecture"], at_hand):
        return
    raise BadConfig(
        "download_weights",
        f"No worker that is there has the trained weights of {network['architecture']}, and where workers "
        "have no network the run cannot train. Put a file of them into the server's folder of trained "
        f"weights and name it as pretrained, or choose the preset {configs.UNTRAINED}, which needs none and "
        "reaches far less. Where workers have a network, let them download the weights (download_weights).",
    )


def _check_probabilities(facts: Mapping[str, Any], values: Mapping[str, Any], *, setting: str) -> None:
    """Refuse losses that take classes for drawn alike where a model's belief drew some."""
    if not facts.get("by_belief"):
        return
    loss = values["losses"]["complementary_loss"]
    if loss == "inverse" or (loss == "bounded" and setting == "pc"):
        return
    raise BadConfig(
        "complementary_loss",
        f"{facts['by_belief']:,} of the labels come from questions by a model's belief. Of the losses only "
        "inverse takes their probabilities, and bounded needs none where true labels train as well (PC). "
        "Choose one of these, or train on the labels of uniform questions alone.",
    )


def cancel_run(session: Session, run: Run, *, by: User, now: datetime) -> None:
    """Ask for the end of a run: what waits ends here, what trains is ended by its supervisor in seconds.

    Asking twice is asking once.

    Raises:
        NotAllowed: `by` is no admin.
        RunIsOver: nothing of it waits or trains.
    """
    accounts.require_admin(by)
    if run.is_finished:
        raise RunIsOver(run.number, run.state)
    if run.cancel_requested_at is None:
        run.cancel_requested_at = now
        _journal(session, Action.RUN_CANCELLED, run, by=by, facts={"run": run.number})
    session.execute(
        update(Trial)
        .where(Trial.run_id == run.id, Trial.state == TrialState.QUEUED, unclaimed(Trial, now))
        .values(state=TrialState.CANCELLED, finished_at=now, claimed_until=None, claimed_by=None),
        execution_options={"synchronize_session": False},
    )
    session.flush()
    for trial in run.trials:
        session.refresh(trial)


def lock_run(session: Session, run: Run) -> None:
    """Read a run and its trials again and hold them: whoever lets trials try again or deletes them, waits.

    Raises:
        RunNotFound: somebody has deleted it meanwhile.
    """
    session.scalar(select(Run.id).where(Run.id == run.id).with_for_update())
    session.scalars(select(Trial.id).where(Trial.run_id == run.id).order_by(Trial.id).with_for_update()).all()
    again = select(Run).where(Run.id == run.id).options(selectinload(Run.trials))
    if session.scalar(again.execution_options(populate_existing=True)) is None:
        raise RunNotFound


def get_run(session: Session, run_id: UUID, *, by: User) -> Run:
    """A run with its trials.

    Raises:
        NotAllowed: `by` is no admin.
        RunNotFound: there is none.
    """
    accounts.require_admin(by)
    run = session.scalar(select(Run).where(Run.id == run_id).options(selectinload(Run.trials)))
    if run is None:
        raise RunNotFound
    return run


def summaries(session: Session, runs: Sequence[Run], *, now: datetime) -> dict[UUID, Summary]:
    """The figures of runs whose trials are loaded, by run id; it looks into no trial's `result`."""
    latest = latest_metrics(runs)
    places = queue.places(session, runs, now=now)
    scored = scoring_of(session, runs)
    people = measured(session, scored)
    pictures = source_images(session, runs)
    found = {}
    for run in runs:
        images, unscored = scored[run.id]
        found[run.id] = summarise(
            run,
            {trial.id: latest[trial.id] for trial in run.trials if trial.id in latest},
            scored=images,
            unscored=unscored,
            people=people.get(run.id),
            source_images=pictures.get(run.id),
            places=places,
            now=now,
        )
    return found


def names_of(session: Session, runs: Sequence[Run]) -> dict[UUID, str]:
    """Names of the campaigns and datasets of runs, by their ids."""
    campaign_ids = {run.campaign_id for run in runs}
    dataset_ids = {id_ for run in runs for id_ in (run.source_dataset_id, run.target_dataset_id)}
    rows = session.execute(
        select(Campaign.id, Campaign.name)
        .where(Campaign.id.in_(campaign_ids))
        .union_all(select(Dataset.id, Dataset.name).where(Dataset.id.in_(dataset_ids)))
    )
    return dict(rows.all())


def made_of(session: Session, run: Run) -> list[tuple[str, str]]:
    """Name and making of the run's datasets whose images are not the published ones."""
    ids = [run.target_dataset_id, run.source_dataset_id]
    both = select(Dataset.name, Dataset.made).where(Dataset.id.in_(ids))
    return [(name, made) for name, made in session.execute(both.order_by(Dataset.name)) if made]


def recipe_of(session: Session, run: Run) -> configs.Recipe | None:
    """What a run trains, in words; None where this version cannot read its configuration."""
    both = versions_used(session, run)
    seen = [version.looks for version in both if version.looks is not None]
    looks = looks_of_pair(*seen) if len(seen) == len(both) else None
    return configs.recipe_of(run.config, looks, (both[0].in_colour, both[1].in_colour))


def versions_used(session: Session, run: Run) -> tuple[DatasetVersion, DatasetVersion]:
    """What a run trains on, of its source and of its target."""
    source_id = session.scalars(select(Campaign.dataset_id).where(Campaign.id == run.campaign_id)).one()
    return (
        versions.version(session, source_id, run.source_version),
        versions.version(session, run.target_dataset_id, run.target_version),
    )


def metrics_of(session: Session, run: Run) -> list[Metric]:
    """What all trials of a run have reported, by trial and epoch."""
    query = select(Metric).where(Metric.trial_id.in_([trial.id for trial in run.trials]))
    return list(session.scalars(query.order_by(Metric.trial_id, Metric.epoch)))


def latest_metrics(runs: Iterable[Run]) -> dict[UUID, Metric]:
    """The last metric of each trial of runs whose trials are loaded, by trial id."""
    found = {trial.id: last_metric_of(trial) for run in runs for trial in run.trials}
    return {trial_id: metric for trial_id, metric in found.items() if metric is not None}


def _journal(session: Session, action: Action, run: Run, *, by: User, facts: Mapping[str, object]) -> None:
    noting.note(session, action, session.get_one(Campaign, run.campaign_id), by=by, details=facts)


def _check_classes(facts: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Refuse labels that training would refuse: they all name one class."""
    named = {
        kind: [name for name, count in zip(facts["classes"], facts[kind], strict=True) if count]
        for kind in ("complementary", "true")
    }
    true = named["true"] if config["setting"] == "pc" else []
    try:
        check_named_classes(Losses(**config["losses"]), named["complementary"], true)
    except DataError as refused:
        words = str(refused)
        raise OneClassAlone(f"{words[:1].upper()}{words[1:]}.") from refused


def _check_seeds(seeds: Sequence[int]) -> None:
    if not 1 <= len(seeds) <= MAX_SEEDS:
        raise BadSeeds(f"A run takes 1 to {MAX_SEEDS} seeds, not {len(seeds)}.", most=MAX_SEEDS)
    if len(set(seeds)) < len(seeds):
        raise BadSeeds("Each seed can be given once; the same seed would train the same model again.")
    for seed in seeds:
        if not 0 <= seed <= LARGEST_SEED:
            raise BadSeeds(f"A seed is a whole number from 0 to {LARGEST_SEED}, not {seed}.")


def _add_numbered(session: Session, run: Run) -> None:
    for attempt in range(NUMBER_TRIES):
        taken = [session.scalar(select(func.max(number))) or 0 for number in (Run.number, DeletedRun.number)]
        run.number = max(taken) + 1
        try:
            with session.begin_nested():
                session.add(run)
                session.flush()  # takes the number; the jobs need the trials' ids
        except IntegrityError:
            if attempt == NUMBER_TRIES - 1:
                raise
        else:
            return
