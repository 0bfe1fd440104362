"""One dataset's page: a contact sheet, its versions, and the campaigns that ask about them."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access import admin_only
from app.campaigns.models import Campaign, FurtherDrawing
from app.datasets import naming, service, versions
from app.datasets.models import Dataset, DatasetState, Split
from app.datasets.pages import ENCODING_TITLES
from app.deps import CurrentUser, SessionDep
from app.pages import render
from app.uses import uses_of

router = APIRouter(include_in_schema=False)

PICTURES_ON_A_SHEET = 240


@dataclass(frozen=True, slots=True)
class AskingCampaign:
    """A campaign over a dataset, and the numbers of the versions about which it asks."""

    id: UUID
    name: str
    versions: range


@router.get("/datasets/{dataset_id}")
@admin_only
def show_dataset(
    *,
    request: Request,
    dataset_id: UUID,
    user: CurrentUser,
    session: SessionDep,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1)] = -1,
    split: Split | str = "",
    true_class: Annotated[str, Query(pattern=r"^\d{0,6}$")] = "",
) -> Response:
    """One dataset: how its import goes, or its pictures."""
    dataset = service.get_dataset(session, dataset_id, by=user)
    chosen = Split(split) if split in set(Split) else None
    label = int(true_class) if true_class else None
    query = service.examples_of(
        dataset.id, after=after, limit=PICTURES_ON_A_SHEET + 1, split=chosen, true_class=label
    )
    found = session.scalars(query).all() if dataset.state is DatasetState.READY else []
    shown = found[:PICTURES_ON_A_SHEET]
    return render(
        request,
        "datasets/show.html",
        fragment="datasets/_contents.html",
        dataset=dataset,
        examples=shown,
        next_after=shown[-1].position if len(found) > PICTURES_ON_A_SHEET else None,
        after=after,
        is_first=after < 0,
        split=chosen.value if chosen else "",
        true_class=true_class,
        class_rows=_class_rows(dataset),
        uses=uses_of(dataset),
        encodings=ENCODING_TITLES,
        versions=versions.versions_of(session, dataset.id),
        additions=versions.additions_of(session, dataset.id),
        campaigns=_campaigns(session, dataset.id),
        has_numbers=naming.has_numbered_classes(dataset),
    )


def _class_rows(dataset: Dataset) -> list[tuple[str, int, int]]:
    """(class name, train, test), in label order; last those whose class is not known."""
    train, test = dataset.train_per_class or [], dataset.test_per_class or []
    rows = list(zip(dataset.class_names or [], train, test, strict=False))  # none before it is ready
    unknown = dataset.train_count - sum(train), dataset.test_count - sum(test)
    return [*rows, ("not known", *unknown)] if any(unknown) else rows


def _campaigns(session: Session, dataset_id: UUID) -> list[AskingCampaign]:
    rows = session.execute(
        select(Campaign.id, Campaign.name, Campaign.dataset_version)
        .where(Campaign.dataset_id == dataset_id, Campaign.dataset_version.is_not(None))
        .order_by(Campaign.created_at)
    ).all()
    further = dict(
        session.execute(
            select(FurtherDrawing.campaign_id, FurtherDrawing.dataset_version)
            .where(
                FurtherDrawing.campaign_id.in_([row.id for row in rows]), FurtherDrawing.drawn_at.is_not(None)
            )
            .order_by(FurtherDrawing.number)  # the last one counts
        ).all()
    )
    return [
        AskingCampaign(row.id, row.name, range(1, further.get(row.id, row.dataset_version) + 1))
        for row in rows
    ]
