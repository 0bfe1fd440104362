"""A campaign's images and a target's: whether a run can use them together, and what they look like."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, aliased

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets import service as datasets
from app.datasets import versions
from app.datasets.models import Dataset, DatasetState, DatasetVersion, Example, Split
from app.runs.errors import NoSharedClass, TargetIsSource, TargetNotReady, TargetWithoutImages
from app.storage import Storage
from clarinet.files.looks import looks_of_pair
from clarinet.files.names import share_no_class
from clarinet.recipes.choices import Looks
from clarinet.recipes.overlap import Overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Source and target of a run, looked at.

    Args:
        target_id: of the target.
        source_version, target_version: the newest of each, which the run then trains on.
        looks_by_id: what each of both datasets looks like.
        in_colour: whether source and target are.
    """

    target_id: UUID
    source_version: int
    target_version: int
    looks_by_id: dict[UUID, Looks]
    in_colour: tuple[bool, bool]

    @property
    def looks(self) -> Looks:
        """Photographs in one of both make it a pair of photographs."""
        return looks_of_pair(*self.looks_by_id.values())


def look_at_pair(
    session: Session, storage: Storage, campaign: Campaign, target_id: UUID, *, by: User
) -> Pair:
    """Judge a target for a campaign, which has its classes.

    It may read pictures, which takes a second: give a session that only looks.

    Raises:
        NotAllowed: `by` is no admin.
        DatasetNotFound: there is no such target.
        TargetNotReady, TargetWithoutImages: there is nothing to adapt to.
        TargetIsSource: most of its images are those that people were asked about.
        NoSharedClass: none of its named classes is one of the campaign's.
    """
    target = datasets.get_dataset(session, target_id, by=by)
    source = datasets.get_dataset(session, campaign.dataset_id, by=by)
    if target.state is not DatasetState.READY:
        raise TargetNotReady(target.name, target.state)
    if not target.train_count:
        raise TargetWithoutImages(target.name)
    overlap = _overlap(session, source, target)
    if overlap.is_too_large:
        raise TargetIsSource(target.name, overlap)
    asked = [item.name for item in campaign.classes]
    if share_no_class(asked, target.class_names or []):
        raise NoSharedClass(target.name, asked, target.class_names or [])
    looks = {dataset.id: datasets.looks_of(session, storage, dataset) for dataset in (source, target)}
    return Pair(
        target_id=target.id,
        source_version=versions.newest(session, source).number or 1,
        target_version=versions.newest(session, target).number or 1,
        looks_by_id=looks,
        in_colour=(source.in_colour, target.in_colour),
    )


def remember_looks(session: Session, pair: Pair) -> None:
    """Keep what was seen of datasets that nobody had looked at, those of before imports looked."""
    for dataset_id, looks in pair.looks_by_id.items():
        dataset = session.get(Dataset, dataset_id)
        if dataset is not None and dataset.looks is None:
            dataset.looks = looks
        session.execute(
            update(DatasetVersion)
            .where(DatasetVersion.dataset_id == dataset_id, DatasetVersion.looks.is_(None))
            .values(looks=looks)
        )


def _overlap(session: Session, source: Dataset, target: Dataset) -> Overlap:
    """How many of the target's training images the source trains on, whatever their order and names."""
    if source.id == target.id:
        return Overlap(target.train_count, target.train_count)
    ours = aliased(Example)
    known = select(ours.digest).where(ours.dataset_id == source.id, ours.split == Split.TRAIN)
    theirs = (Example.dataset_id == target.id, Example.split == Split.TRAIN, Example.digest.in_(known))
    return Overlap(session.scalars(select(func.count()).where(*theirs)).one(), target.train_count)
