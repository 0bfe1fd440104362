"""Rows for tests: plain functions with defaults for everything. They flush; tests commit."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Role, User
from app.annotation import service as annotation
from app.annotation.consensus import MAX_SLOTS
from app.annotation.models import AnswerValue, Lease, Question
from app.annotation.questions import add_questions
from app.campaigns import draws, openings
from app.campaigns import service as campaigns
from app.campaigns.classes import ClassDetails
from app.campaigns.models import Campaign, CampaignClass, CampaignState, Consensus
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets import versions
from app.datasets.intake.pictures import picture_of_pixels
from app.datasets.intake.shards import Incoming, ShardWriter, delete_index, read_records
from app.datasets.models import Dataset, DatasetState, DatasetVersion, Example, Split
from app.quality import service as quality
from app.runs import configs
from app.runs.labels import facts_of, freeze
from app.runs.models import Run, Trial, TrialState
from app.storage import Storage
from clarinet.files.label_table import COMPLEMENTARY, TRUE, Labels
from clarinet.recipes.choices import Looks
from tests import annotators

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
# Tests answer without a look. Any: some of the details of a campaign.
AT_ONCE: Any = {"least_card_ms": 0, "least_page_ms": 0, "least_picture_ms": 0}
PASSWORD = "correct horse battery"
_counter = itertools.count(1)


def number() -> int:
    """A number that no other row of this process has."""
    return next(_counter)


def make_user(session: Session, *, role: str = "annotator", password: str | None = None) -> User:
    """Somebody with an account; without a password, because hashing takes time."""
    n = number()
    return accounts.create_user(
        session,
        email=f"person{n}@example.org",
        name=f"Person {n}",
        role=Role(role),
        password=password,
        now=NOW,
    )


def make_token(session: Session, user: User) -> str:
    """A bearer token of this user; commits, so that clients can use it."""
    _, secret = accounts.create_token(session, user, "test", now=utc_now())
    session.commit()
    return secret


def make_dataset(
    session: Session,
    storage: Storage,
    *,
    name: str | None = None,
    class_names: Sequence[str] | None = ("cat", "dog"),
    train: int = 6,
    test: int = 2,
    size: int = 8,
    channels: int = 1,
    looks: Looks | None = "digits",
    by: User | None = None,
) -> Dataset:
    """A ready dataset of real tiny images; classes take turns, and a brighter image has a higher class.

    Without `class_names` no true class is known. The images are noise; their import is said to have found
    that they look like `looks`.
    """
    n = number()
    dataset = Dataset(
        name=name or f"Dataset {n}",
        state=DatasetState.READY,
        class_names=None if class_names is None else list(class_names),
        looks=looks,
        created_by_id=(by or make_user(session, role="admin")).id,
        created_at=NOW,
    )
    session.add(dataset)
    session.flush()
    prefix = datasets.prefix_of(dataset)
    noise = np.random.default_rng(n)
    shape = (size, size) if channels == 1 else (size, size, channels)
    with ShardWriter(storage, prefix) as shards:
        for position in range(train + test):
            true_class = None if class_names is None else position % len(class_names)
            light = 0 if class_names is None else 200 * (position % len(class_names)) // len(class_names)
            pixels = noise.integers(light, light + 50, shape, dtype=np.uint8)
            split = "train" if position < train else "test"
            shards.add(Incoming(split, true_class, picture_of_pixels(pixels)))
    for records in read_records(storage, prefix, chunk=1000):
        datasets.insert_examples(session, dataset.id, records, first_position=0)
    delete_index(storage, prefix)
    dataset.channels, dataset.digest, dataset.size_bytes = channels, shards.digest, shards.size_bytes
    dataset.train_count, dataset.test_count = train, test
    counts: Counter[tuple[str, int | None]] = Counter(
        ("train" if position < train else "test", position % len(class_names or "?"))
        for position in range(train + test)
    )
    for column, values in datasets.per_class(counts, class_names).items():
        setattr(dataset, column, values)
    session.add(versions.first_version(dataset, now=NOW))
    session.flush()
    return dataset


def make_labels(session: Session, storage: Storage, dataset: Dataset) -> Labels:
    """Faultless labels for the train split: one yes in K, as uniform questions give, and else a no."""
    images = datasets.stored_images(session, storage, dataset.id, Split.TRAIN)
    num_classes = len(dataset.class_names or ())
    drawn = np.random.default_rng(0).integers(0, num_classes, len(images.ids))
    return Labels(
        example_ids=np.asarray(images.ids, np.int64),
        positions=np.arange(len(images.ids)),
        kinds=np.where(drawn == images.true_classes, TRUE, COMPLEMENTARY).astype(np.uint8),
        classes=drawn.astype(np.int64),
        weights=np.ones(len(images.ids), np.float32),
        num_classes=num_classes,
    )


def make_run(
    session: Session,
    storage: Storage,
    *,
    seeds: Sequence[int] = (0,),
    state: str = "queued",
    method: str = "clarinet-plus",
    preset: str = "digits-quick",
    setting: str = "cc",
    train: int = 120,
    config: Mapping[str, object] | None = None,
    weights: Mapping[str, str] | None = None,
    target: Dataset | None = None,
    classes: Sequence[str] = ("cat", "dog"),
    queued_at: datetime = NOW,
) -> Run:
    """A run over real tiny images with faultless labels; it trains in about a second once torch is there."""
    source = make_dataset(session, storage, class_names=classes, train=train)
    target = target or make_dataset(session, storage, train=train, test=40)
    admin = make_user(session, role="admin")
    asked = [
        CampaignClass(position=position, name=name, example_ids=[]) for position, name in enumerate(classes)
    ]
    n = number()
    campaign = Campaign(
        name=f"Campaign {n}",
        dataset_id=source.id,
        state=CampaignState.OPEN,
        seed="00" * 32,
        created_by_id=admin.id,
        created_at=NOW,
        classes=asked,
    )
    session.add(campaign)
    session.flush()
    labels = make_labels(session, storage, source)
    quick = {"epochs": 2, "steps_per_epoch": 3, "batch_size": 16, "checkpoint_every": 1}
    run = Run(
        number=n,
        campaign_id=campaign.id,
        target_dataset_id=target.id,
        method=method,
        setting=setting,
        preset=preset,
        config=configs.config_for(
            method, setting, preset, quick | dict(config or {}), looks="digits", weights=weights or {}
        ),
        snapshot_digest=freeze(storage, labels),
        snapshot_facts=facts_of(labels, classes=list(classes), answers=train, simulated=0, unfinished=False),
        created_by_id=admin.id,
        created_at=NOW,
        trials=[Trial(seed=seed, state=TrialState(state), queued_at=queued_at) for seed in seeds],
    )
    session.add(run)
    session.flush()
    return run


def make_rows_only_dataset(session: Session, *, examples: int, class_names: Sequence[str]) -> Dataset:
    """A ready dataset whose images exist as rows alone: for tests that never look at a picture."""
    dataset = Dataset(
        name=f"Rows {number()}",
        state=DatasetState.READY,
        class_names=list(class_names),
        channels=1,
        looks="digits",
        train_count=examples,
        train_per_class=[len(range(label, examples, len(class_names))) for label in range(len(class_names))],
        test_per_class=[0] * len(class_names),
        digest="d" * 64,
        created_by_id=make_user(session, role="admin").id,
        created_at=NOW,
    )
    session.add(dataset)
    session.flush()
    session.add(versions.first_version(dataset, now=NOW))
    _add_rows(session, dataset, range(examples))
    return dataset


def grow_rows(session: Session, dataset: Dataset, examples: int) -> DatasetVersion:
    """Further images of such a dataset, as a new version; gives it."""
    start = dataset.image_count
    _add_rows(session, dataset, range(start, start + examples))
    dataset.train_count += examples
    dataset.digest = f"{dataset.train_count:064x}"
    last = versions.newest(session, dataset)
    grown = DatasetVersion(
        dataset_id=dataset.id,
        number=(last.number or 0) + 1,
        state=DatasetState.READY,
        first_position=start,
        **{name: getattr(dataset, name) for name in versions.HELD},
        created_by_id=dataset.created_by_id,
        created_at=NOW,
        published_at=NOW,
    )
    session.add(grown)
    session.flush()
    return grown


def _add_rows(session: Session, dataset: Dataset, positions: range) -> None:
    num_classes = len(dataset.class_names or ())
    rows = [
        {
            "dataset_id": dataset.id,
            "position": position,
            "split": Split.TRAIN,
            "true_class": position % num_classes,
            "shard": 0,
            "byte_offset": position,
            "byte_length": 1,
            "digest": f"{position:064x}",
            "media_type": "image/png",
            "width": 1,
            "height": 1,
        }
        for position in positions
    ]
    if rows:
        session.execute(insert(Example), rows)


def make_campaign(
    session: Session,
    *,
    dataset: Dataset | None = None,
    examples: int = 6,
    class_names: Sequence[str] = ("cat", "dog", "owl"),
    state: str = "open",
    confirm_yes: bool = False,
    overlap: int = 1,
    consensus: str = "majority",
    rounds: int = 1,
    seed: str = "00" * 32,
    name: str | None = None,
) -> Campaign:
    """A campaign; unless it is a draft, with all its questions drawn.

    Without a dataset it gets one of `examples` images that exist as rows alone.
    """
    dataset = dataset or make_rows_only_dataset(session, examples=examples, class_names=class_names)
    admin = session.get_one(User, dataset.created_by_id)
    names = dataset.class_names or class_names
    campaign = campaigns.create_campaign(
        session,
        campaigns.CampaignDetails(
            name=name or f"Campaign {number()}",
            dataset_id=dataset.id,
            classes=tuple(ClassDetails(name) for name in names),
            confirm_yes=confirm_yes,
            overlap=overlap,
            consensus=Consensus(consensus),
            rounds=rounds,
            **AT_ONCE,
        ),
        by=admin,
        now=NOW,
    )
    campaign.seed = seed
    if state == "draft":
        session.flush()
        return campaign
    campaign.opening_requested_at = NOW
    session.flush()
    claimed = openings.claim_opening(session, campaign.id, by="test", now=NOW)
    assert claimed is not None
    claim, opening = claimed
    places = openings.examples_to_label(session, dataset.id, end_position=opening.end_position)
    positions = np.array([position for position, _ in places], dtype=np.int64)
    drawn = draws.draw(seed, positions, num_classes=len(names), rounds=rounds)
    add_questions(
        session,
        campaign.id,
        drawn,
        example_ids=dict(places),
        probability=1 / len(names),
        overlap=overlap,
        start=0,
        stop=len(drawn),
    )
    per_class = np.bincount(drawn.classes, minlength=len(names)).tolist()
    openings.finish_opening(session, claim, opening, drawn_per_class=per_class, now=NOW)
    session.refresh(campaign)
    session.refresh(campaign, ["classes"])
    campaign.state = CampaignState(state)
    campaign.closed_at = NOW if state == "closed" else None
    session.flush()
    return campaign


def questions_of(session: Session, campaign: Campaign) -> list[Question]:
    """A campaign's questions in asking order."""
    query = select(Question).where(Question.campaign_id == campaign.id).order_by(Question.rank)
    return list(session.scalars(query))


def answer(
    session: Session,
    campaign: Campaign,
    question_id: int,
    value: str = "no",
    *,
    by: User | None = None,
    now: datetime = NOW,
    response_ms: int | None = 900,
) -> User:
    """Answer one question of an open campaign as `by`, or as somebody new; gives who it was."""
    user = by or make_user(session)
    held = session.scalar(select(Lease.id).where(Lease.question_id == question_id, Lease.user_id == user.id))
    if held is None:
        taken = set(session.scalars(select(Lease.slot).where(Lease.question_id == question_id)))
        slot = min(set(range(MAX_SLOTS)) - taken)
        session.add(
            Lease(question_id=question_id, slot=slot, user_id=user.id, expires_at=now + annotation.LEASE)
        )
        session.flush()
    given = annotation.SubmittedAnswer(question_id, AnswerValue(value), response_ms, uuid4())
    outcome = annotators.submit(session, campaign, [given], by=user, now=now)[0]
    assert outcome.status is annotation.Status.STORED, outcome.detail
    return user


def asked_again(session: Session, campaign: Campaign, *, count: int, by: User) -> int:
    """Ask one more person about the most doubtful questions; gives about how many."""
    question_ids = quality.most_doubtful(session, campaign, count=count)
    return quality.ask_again(session, campaign, question_ids, by=by, now=NOW)
