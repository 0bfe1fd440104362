"""Which datasets can be source and target of a run, and the recipe that fits them."""

from collections.abc import Sequence

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets import versions
from app.datasets.errors import DatasetNotFound
from app.datasets.models import Dataset, Example
from app.runs import service
from app.runs.errors import NoSharedClass, OneClassAlone, TargetIsSource
from app.runs.models import Run
from app.runs.pairs import Pair, look_at_pair
from app.stores.folder import FolderStorage
from clarinet.recipes.choices import Looks
from tests.factories import NOW, make_campaign, make_dataset


def look(session: Session, storage: FolderStorage, campaign: Campaign, target: Dataset, by: User) -> Pair:
    return look_at_pair(session, storage, campaign, target.id, by=by)


def start_with(
    session: Session, labels: service.FrozenLabels, pair: Pair, by: User, **changes: object
) -> Run:
    usual: dict[str, object] = {
        "method": "clarinet-plus",
        "setting": "cc",
        "preset": None,
        "seeds": [0],
        "config": {},
    }
    return service.start_run(session, labels, pair, **usual | changes, by=by, now=NOW)  # type: ignore[arg-type]  # by name


def start(
    session: Session, storage: FolderStorage, campaign: Campaign, target: Dataset, by: User, **changes: object
) -> Run:
    setting = str(changes.get("setting", "cc"))
    labels = service.freeze_labels(session, campaign, setting=setting, by=by, storage=storage)
    return start_with(session, labels, look(session, storage, campaign, target, by), by, **changes)


class TestPair:
    @pytest.mark.parametrize(
        ("source", "target", "pair"),
        [
            ("digits", "digits", "digits"),
            ("digits", "photographs", "photographs"),
            ("photographs", "digits", "photographs"),
        ],
    )
    def test_photographs_on_one_side_are_enough(
        self,
        *,
        source: Looks,
        target: Looks,
        pair: Looks,
        session: Session,
        storage: FolderStorage,
        admin: User,
    ) -> None:
        campaign = make_campaign(session, dataset=make_dataset(session, storage, looks=source))
        other = make_dataset(session, storage, looks=target, channels=3)

        found = look(session, storage, campaign, other, admin)

        assert (found.looks, found.in_colour) == (pair, (False, True))

    def test_a_target_that_is_the_source_is_refused(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        source = make_dataset(session, storage, name="Pets")

        with pytest.raises(
            TargetIsSource, match=r'"Pets" has images that the campaign asks about: 6 of its 6 for training'
        ):
            look(session, storage, make_campaign(session, dataset=source), source, admin)

    def test_the_same_images_under_another_name_and_in_another_order_are_refused(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        source, target = (make_dataset(session, storage, train=4, test=2) for _ in range(2))
        campaign = make_campaign(session, dataset=source)
        assert look(session, storage, campaign, target, admin)
        _give_digests(session, source, "abcd")

        _give_digests(session, target, "dcba")

        with pytest.raises(TargetIsSource):
            look(session, storage, campaign, target, admin)

    @pytest.mark.parametrize(
        ("digests", "shared"),
        [
            ("abcz", 3),  # one exchanged
            ("abcdz", 4),  # one added
            ("abc", 3),  # one left out
            ("ab", 2),
            ("aaaz", 3),  # one of them again and again
            ("abyz", None),  # half of it
            ("vwxyz", None),
        ],
    )
    def test_a_target_of_which_most_images_are_the_sources_is_refused_with_their_number(
        self, *, digests: str, shared: int | None, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        """Test images do not count: those of both have the first letter."""
        source = make_dataset(session, storage, train=4, test=2)
        target = make_dataset(session, storage, train=len(digests), test=2)
        _give_digests(session, source, "abcdaa")
        _give_digests(session, target, digests + "aa")
        campaign = make_campaign(session, dataset=source)

        if shared is None:
            assert look(session, storage, campaign, target, admin)
            return
        told = rf"asks about: {shared} of its {len(digests)} for training, and at most half may be\."
        with pytest.raises(TargetIsSource, match=told):
            look(session, storage, campaign, target, admin)

    @pytest.mark.parametrize(
        ("known", "is_refused"),
        [
            (["Cat", "OWL"], False),
            (["oak", "elm"], True),
            (["0", "1"], False),
            (None, False),
        ],
    )
    def test_named_classes_without_one_in_common_are_refused(
        self,
        known: Sequence[str] | None,
        *,
        is_refused: bool,
        session: Session,
        storage: FolderStorage,
        admin: User,
    ) -> None:
        campaign = make_campaign(session, dataset=make_dataset(session, storage))
        target = make_dataset(session, storage, name="Trees", class_names=known)

        if not is_refused:
            assert look(session, storage, campaign, target, admin)
            return
        with pytest.raises(
            NoSharedClass, match='asks about cat, dog, and the target dataset "Trees" has oak, elm'
        ):
            look(session, storage, campaign, target, admin)

    def test_annotators_look_at_none(
        self, session: Session, storage: FolderStorage, campaign: Campaign, target: Dataset, annotator: User
    ) -> None:
        with pytest.raises(NotAllowed):
            look(session, storage, campaign, target, annotator)


class TestRecipe:
    @pytest.mark.parametrize(
        ("asked", "looks", "preset"),
        [
            (None, "digits", "digits"),
            (None, "photographs", "photographs"),
            ("default", "photographs", "photographs"),
            ("quick", "photographs", "photographs-quick"),
            ("digits", "photographs", "digits"),
        ],
    )
    def test_the_preset_that_fits_is_kept(
        self,
        *,
        asked: str | None,
        looks: Looks,
        preset: str,
        session: Session,
        storage: FolderStorage,
        campaign: Campaign,
        admin: User,
    ) -> None:
        target = make_dataset(session, storage, looks=looks)

        run = start(session, storage, campaign, target, admin, preset=asked)

        assert run.preset == run.config["preset"] == preset
        recipe = service.recipe_of(session, run)
        assert recipe is not None
        assert recipe.looks == looks
        assert recipe.sentence.startswith(f"{preset.removesuffix('-quick')}: ")
        assert bool(recipe.misfit) == (asked == "digits")

    def test_what_nobody_had_looked_at_is_kept_with_the_run(
        self, session: Session, storage: FolderStorage, campaign: Campaign, admin: User
    ) -> None:
        """The images of the tests are noise."""
        target = make_dataset(session, storage, looks=None)

        run = start(session, storage, campaign, target, admin)

        assert (target.looks, run.preset) == ("photographs", "photographs")

    def test_a_run_of_before_imports_looked_says_what_it_trains(
        self, session: Session, storage: FolderStorage, campaign: Campaign, target: Dataset, admin: User
    ) -> None:
        run = start(session, storage, campaign, target, admin, method="clarinet", preset="short")
        target.looks = versions.newest(session, target).looks = None
        session.flush()

        recipe = service.recipe_of(session, run)

        assert recipe is not None
        assert (recipe.looks, recipe.sentence, recipe.misfit) == (None, "digits: LeNet at 28 pixels", "")
        run.config = run.config | {"rotation": 20.0}  # which this version has no place for
        assert service.recipe_of(session, run) is None

    def test_labels_of_one_class_are_refused_with_its_name(
        self, session: Session, storage: FolderStorage, campaign: Campaign, target: Dataset, admin: User
    ) -> None:
        labels = service.freeze_labels(session, campaign, setting="cc", by=admin, storage=storage)
        labels.facts["complementary"] = [0, 60]
        pair = look(session, storage, campaign, target, admin)

        with pytest.raises(
            OneClassAlone, match=r"^Every complementary label names class dog; at least two .*\.$"
        ):
            start_with(session, labels, pair, admin, method="gac")

    def test_a_target_that_was_deleted_meanwhile_is_not_found(
        self, session: Session, storage: FolderStorage, campaign: Campaign, target: Dataset, admin: User
    ) -> None:
        labels = service.freeze_labels(session, campaign, setting="cc", by=admin, storage=storage)
        pair = look(session, storage, campaign, target, admin)
        session.delete(target)
        session.flush()

        with pytest.raises(DatasetNotFound):
            start_with(session, labels, pair, admin, method="gac")


def _give_digests(session: Session, dataset: Dataset, digests: str) -> None:
    for position, digest in enumerate(digests):
        session.execute(
            update(Example)
            .where(Example.dataset_id == dataset.id, Example.position == position)
            .values(digest=digest * 64)
        )
