"""What a trial trains on: labels with their images, and test images by the campaign's classes."""

import numpy as np
import pytest
import torch
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.claims import claim
from app.datasets import service
from app.datasets.growing import Packed, publish, take_shards
from app.datasets.intake.pictures import picture_of_pixels
from app.datasets.intake.shards import Incoming, ShardWriter, read_records, shard_key
from app.datasets.models import Dataset, DatasetVersion, Example, Split
from app.datasets.there import There
from app.runs.labels import freeze
from app.runs.models import Run
from app.storage import Storage
from clarinet.data.training_data import TrainData
from clarinet.files.label_table import COMPLEMENTARY, Labels
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import DataError
from clarinet.recipes.methods import config_for
from clarinet.recipes.scoring import ScoredOn
from clarinet.run.training import TrainResult, train
from tests.clarinet.factories import in_memory
from tests.factories import NOW, make_dataset, make_labels, make_run
from worker.context import Context
from worker.trainer.trial_data import TrialData, load

pytestmark = pytest.mark.long


def test_questions_are_told_as_uniform_unless_labels_from_elsewhere_are_among_them(
    context: Context, loaded: tuple[Run, TrialData]
) -> None:
    run, own = loaded
    assert own.data.probabilities is not None
    count = len(own.data.complementary)
    assert own.data.probabilities.tolist() == pytest.approx([1 / own.data.num_classes] * count)

    with context.unit_of_work() as session:
        found = session.get_one(Run, run.id)
        found.snapshot_facts = found.snapshot_facts | {"imported": 3}
        assert load(session, context.storage, found, config_for("clarinet")).data.probabilities is None


def test_images_that_join_after_the_launch_do_not_enter_a_run(context: Context) -> None:
    config = config_for("clarinet")
    with context.unit_of_work() as session:
        run = make_run(session, context.storage)
        before = load(session, context.storage, run, config)
        source_id = session.scalars(select(Campaign.dataset_id).where(Campaign.id == run.campaign_id)).one()
        for dataset_id in (source_id, run.target_dataset_id):
            grow(session, context.storage, session.get_one(Dataset, dataset_id))

    with context.reading() as session:
        run = session.get_one(Run, run.id)
        after = load(session, context.storage, run, config)
        target = session.get_one(Dataset, run.target_dataset_id)

        assert (target.train_count, target.test_count, target.channels) == (130, 44, 3)
        assert (run.source_version, run.target_version) == (1, 1)
        assert after.datasets["target"]["version"] == 1
        assert after.datasets["target"]["digest"] != target.digest
        for name in ("source_images", "target_images", "target_test_images"):
            one, other = getattr(before.data, name), getattr(after.data, name)
            assert torch.equal(one, other), name  # grey as before, too
        run.target_version = 2
        assert len(load(session, context.storage, run, config).data.target_images) == 130


def grow(session: Session, storage: Storage, dataset: Dataset) -> None:
    """Ten further training images and four test images in colour join a dataset."""
    addition = DatasetVersion(
        dataset_id=dataset.id, created_by_id=dataset.created_by_id, created_at=NOW, upload={}
    )
    session.add(addition)
    session.flush()
    claimed = claim(session, DatasetVersion, addition.id, by="test", now=NOW)
    assert claimed is not None
    prefix = service.import_prefix(claimed)
    noise = np.random.default_rng(1)
    with ShardWriter(storage, prefix) as shards:
        for place in range(14):
            pixels = noise.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            split = "train" if place < 10 else "test"
            shards.add(Incoming(split, place % 2, picture_of_pixels(pixels)))
    first_shard, keys = take_shards(session, claimed, shards.shards, now=NOW)
    for shard, key in enumerate(keys):
        storage.move(shard_key(prefix, shard), key)
    there = There(read_records(storage, prefix, chunk=5))
    there.look(session, dataset.id)
    packed = Packed(
        first_shard=first_shard,
        chunks=read_records(storage, prefix, chunk=5),
        there=there,
        class_names=["cat", "dog"],
        channels=3,
        looks="digits",
        said={"made": None, "notes": [], "faults": [], "contradictions": []},
    )
    assert publish(session, claimed, packed, now=NOW) == 14


class TestLoad:
    def test_every_label_comes_with_its_image(self, loaded: tuple[Run, TrialData]) -> None:
        data: TrainData = loaded[1].data

        assert data.probabilities is not None
        assert bool((data.probabilities == 0.5).all())
        assert data.example is not None
        assert sorted(data.example.tolist()) == list(range(120))
        labelled = (data.complementary >= 0).int() + (data.true >= 0).int()
        assert labelled.eq(1).all()
        # In the factory's images a brighter one has a higher class.
        assert isinstance(data.source_images, torch.Tensor)
        bright = (data.source_images.flatten(1).float().mean(1) > 75)[data.example]
        true = data.true >= 0
        torch.testing.assert_close(data.true[true], bright[true].long())
        torch.testing.assert_close(data.complementary[~true], (~bright[~true]).long())

    def test_an_image_with_two_complementary_labels_is_kept_once(self, context: Context) -> None:
        with context.unit_of_work() as session:
            run = make_run(session, context.storage, train=4)
            source = session.get_one(Campaign, run.campaign_id).dataset_id
            labels = make_labels(session, context.storage, session.get_one(Dataset, source))
            assert labels.example_ids is not None
            assert labels.positions is not None
            double = Labels(
                example_ids=labels.example_ids[[2, 2]],
                positions=labels.positions[[2, 2]],
                kinds=labels.kinds[[2, 2]] * 0 + COMPLEMENTARY,
                classes=np.array([0, 1]),
                weights=labels.weights[[2, 2]],
                num_classes=2,
            )
            run.snapshot_digest = freeze(context.storage, double)
            data = load(session, context.storage, run, config_for("clarinet")).data

        assert len(data.source_images) == 4
        assert data.complementary.tolist() == [0, 1]
        assert data.example is not None
        assert data.example.tolist() == [2, 2]
        assert not data.true.ge(0).any()

    def test_true_classes_of_the_target_are_mapped_by_name(self, context: Context) -> None:
        with context.unit_of_work() as session:
            swapped = make_dataset(
                session, context.storage, class_names=("dog", "owl", "cat"), train=3, test=6
            )
            run = make_run(session, context.storage, train=4, target=swapped)
            trial_data = load(session, context.storage, run, config_for("clarinet"))

        labels = trial_data.data.target_test_labels
        assert labels is not None
        # Positions 3 to 8 take turns: dog, owl, cat; the campaign knows cat (0) and dog (1), and no owl.
        assert labels.tolist() == [1, 0, 1, 0]
        assert trial_data.scored == ScoredOn(split="test", images=4, of=6)

    def test_a_class_is_the_same_however_its_name_is_written(self, context: Context) -> None:
        """In the library as well: see tests/clarinet/test_names.py."""
        with context.unit_of_work() as session:
            spelt = make_dataset(session, context.storage, class_names=("DOG ", "Cat\u200b"), train=2, test=4)
            run = make_run(session, context.storage, train=4, target=spelt)
            trial_data = load(session, context.storage, run, config_for("clarinet"))

        labels = trial_data.data.target_test_labels
        assert labels is not None
        assert labels.tolist() == [1, 0, 1, 0]

    def test_a_target_without_known_classes_is_not_scored(self, context: Context) -> None:
        with context.unit_of_work() as session:
            plain = make_dataset(session, context.storage, class_names=None, train=3, test=2)
            run = make_run(session, context.storage, train=4, target=plain)
            trial_data = load(session, context.storage, run, config_for("clarinet"))

        assert trial_data.data.target_test_images is None
        assert trial_data.scored.images == 0

    @pytest.mark.parametrize("test", [0, 2])
    def test_without_a_test_image_that_scores_those_that_train_do(self, context: Context, test: int) -> None:
        with context.unit_of_work() as session:
            target = make_dataset(
                session, context.storage, class_names=("dog", "owl", "cat"), train=4, test=test
            )
            session.execute(update(Example).where(Example.position == 0).values(true_class=None))
            owls = Example.dataset_id == target.id, Example.split == Split.TEST
            session.execute(update(Example).where(*owls).values(true_class=1))
            run = make_run(session, context.storage, train=4, target=target)
            loaded = load(session, context.storage, run, config_for("clarinet"))

        assert loaded.data.target_test_images is None
        assert loaded.data.target_labels is not None
        # Dog, which is not known here, owl, which nobody was asked about, cat and dog; the campaign counts
        # cat and dog.
        assert loaded.data.target_labels.tolist() == [-1, -1, 0, 1]
        assert loaded.scored == ScoredOn(split="train", images=2, of=4)

    @pytest.mark.long
    def test_a_run_ends_with_the_same_bits_without_the_classes_that_scored_it(self, context: Context) -> None:
        def trained(*, known: bool) -> TrainResult:
            with context.unit_of_work() as session:
                target = session.get_one(Dataset, target_id)
                target.class_names = ["cat", "dog"] if known else None
                if not known:
                    target.train_per_class = target.test_per_class = []
                wanted = None if not known else Example.position % 2
                of_target = Example.dataset_id == target_id
                session.execute(update(Example).where(of_target).values(true_class=wanted))
                run = session.get_one(Run, run_id)
                config = TrainConfig.from_dict(run.config | {"seed": 0})
                return train(config, load(session, context.storage, run, config).data)

        with context.unit_of_work() as session:
            target = make_dataset(session, context.storage, train=120, test=0)
            target_id, run_id = target.id, make_run(session, context.storage, target=target).id
        scored, unscored = trained(known=True), trained(known=False)

        assert scored.scored_on == ScoredOn(split="train", images=120, of=120)
        assert scored.target_accuracy is not None
        assert unscored.target_accuracy is None
        for name, values in scored.model.state_dict().items():
            assert torch.equal(values, unscored.model.state_dict()[name])

    def test_labels_of_other_images_are_refused(self, context: Context) -> None:
        with context.unit_of_work() as session:
            run = make_run(session, context.storage, train=4)
            other = make_labels(session, context.storage, make_dataset(session, context.storage, train=4))
            run.snapshot_digest = freeze(context.storage, other)
            with pytest.raises(DataError, match="does not have"):
                load(session, context.storage, run, config_for("clarinet"))

    @pytest.mark.long
    def test_images_that_would_fill_the_memory_are_read_while_it_trains_and_end_alike(
        self, context: Context, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def trained(session: Session, run: Run) -> tuple[TrialData, TrainResult]:
            config = TrainConfig.from_dict(run.config | {"seed": 0})
            loaded = load(session, context.storage, run, config)
            return loaded, train(config, loaded.data)

        with context.unit_of_work() as session:
            target = make_dataset(
                session, context.storage, class_names=("dog", "owl", "cat"), train=120, test=9
            )
            run = make_run(session, context.storage, target=target)
            _, resident = trained(session, run)
            monkeypatch.setattr("worker.trainer.trial_data.RESIDENT_BYTES", 100)
            loaded, streamed = trained(session, run)

        for images in (
            loaded.data.source_images,
            loaded.data.target_images,
            loaded.data.target_test_images,
        ):
            assert hasattr(images, "read")
        assert loaded.scored.images == 6
        assert streamed.target_accuracy == resident.target_accuracy
        for name, values in resident.model.state_dict().items():
            assert torch.equal(values, streamed.model.state_dict()[name])

    def test_large_images_that_would_fill_the_memory_are_read_in_the_size_of_the_trial(
        self, context: Context, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with context.unit_of_work() as session:
            target = make_dataset(session, context.storage, train=5, size=40)
            run = make_run(session, context.storage, train=4, target=target)
            own = load(
                session, context.storage, run, config_for("clarinet", image_size=20)
            ).data.target_images
            monkeypatch.setattr("worker.trainer.trial_data.RESIDENT_BYTES", 5 * 30 * 30)
            less = load(
                session, context.storage, run, config_for("clarinet", image_size=20)
            ).data.target_images

        assert in_memory(own).shape == (5, 40, 40)
        assert in_memory(less).shape == (5, 20, 20)
