"""JSON routes: what a trial's model says of each picture, and where it places some."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, status

from app.access import admin_only
from app.clock import utc_now
from app.datasets.pictures import image_addresses
from app.deps import CurrentUser, SessionDep, StorageDep
from app.mistakes import service, umaps
from app.mistakes.schemas import (
    FeatureMapRead,
    MapPointRead,
    TrialConfusionQuery,
    TrialConfusionRead,
    TrialMapQuery,
    TrialPredictionList,
    TrialPredictionRead,
    TrialPredictionsQuery,
    UmapRead,
)

router = APIRouter(tags=["mistakes"])


@router.get("/trials/{trial_id}/predictions")
@admin_only
def read_trial_predictions(
    *,
    request: Request,
    trial_id: UUID,
    asked: Annotated[TrialPredictionsQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> TrialPredictionList:
    """What a trial's model says of pictures: all of a kind, a cell of the confusion, or the mistakes."""
    seen = service.look(session, storage, trial_id, by=user)
    listing = seen.listing(asked.wanted(seen.first_group))
    found, following = service.page_of(session, seen, listing, after=asked.after, limit=asked.limit)
    addresses = {dataset_id: image_addresses(request, dataset_id) for dataset_id in seen.datasets}
    return TrialPredictionList(
        classes=seen.classes,
        count=len(listing.rows),
        prediction_id=seen.prediction.id if seen.prediction else None,
        items=[
            TrialPredictionRead.of(picture, addresses[picture.dataset_id](picture.example_id))
            for picture in found
        ],
        next=following,
    )


@router.get("/trials/{trial_id}/confusion")
@admin_only
def read_trial_confusion(
    trial_id: UUID,
    asked: Annotated[TrialConfusionQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> TrialConfusionRead:
    """How often a trial's model takes pictures of one class for another."""
    seen = service.look(session, storage, trial_id, by=user)
    among, classes = asked.among or seen.first_group, seen.classes
    return TrialConfusionRead(
        classes=classes,
        among=among,
        images=seen.groups.get(among, 0),
        counts=service.confusion_of(seen.kept, among, len(classes)),
        predicted=service.predicted_counts(seen.kept, among, len(classes)),
    )


@router.get("/trials/{trial_id}/map")
@admin_only
def read_trial_map(
    trial_id: UUID,
    asked: Annotated[TrialMapQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> FeatureMapRead:
    """Where a trial's model places up to 2,000 pictures of source and target."""
    seen = service.look(session, storage, trial_id, by=user)
    kept, rows = seen.kept, service.map_rows(seen)
    umap = umaps.shown(session, storage, seen, asked.layout)
    return FeatureMapRead(
        layout=asked.layout,
        classes=seen.classes,
        shares=kept.map_shares.tolist() if umap is None else [],
        points=[
            MapPointRead(
                example_id=int(kept.example_ids[row]),
                among=list(service.Among)[kept.among[row]],
                predicted_class=int(kept.classes[row, 0]),
                probability=float(kept.probabilities[row, 0]),
                place=place,
            )
            for row, place in zip(rows, (kept.map_places if umap is None else umap).tolist(), strict=True)
        ],
    )


@router.post("/trials/{trial_id}/map/umap", status_code=status.HTTP_202_ACCEPTED)
@admin_only
def ask_for_trial_umap(
    trial_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser
) -> UmapRead:
    """Let a worker compute the UMAP of a trial's map; asking twice is asking once, unless it failed."""
    seen = service.look(session, storage, trial_id, by=user)
    return UmapRead.of(umaps.ask_for_umap(session, seen, now=utc_now()))


@router.get("/trials/{trial_id}/map/umap")
@admin_only
def read_trial_umap(trial_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser) -> UmapRead:
    """Where the UMAP of a trial's map stands; its places are the map's, with `layout=umap`."""
    seen = service.look(session, storage, trial_id, by=user)
    return UmapRead.of(umaps.umap_of(session, seen))
