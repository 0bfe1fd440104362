"""JSON route of what a training may take."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from app.access import admin_only
from app.campaigns import service as campaigns
from app.clock import utc_now
from app.datasets import service as datasets
from app.deps import CurrentUser, SessionDep, StorageDep
from app.runs import configs
from app.runs.errors import BadConfig
from app.runs.expecting import expected
from app.runs.expecting_schemas import EstimateList, EstimateQuery, EstimateRead
from clarinet.files.looks import looks_of_pair

router = APIRouter(tags=["runs"])


@router.get("/campaigns/{campaign_id}/estimate")
@admin_only
def read_estimate(
    campaign_id: UUID,
    asked: Annotated[EstimateQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> EstimateList:
    """How long a seed trained and how much memory it took, in earlier trainings of the same recipe."""
    campaign = campaigns.find_campaign(session, campaign_id, by=user)
    both = [
        datasets.get_dataset(session, id_, by=user) for id_ in (campaign.dataset_id, asked.target_dataset_id)
    ]
    looks = looks_of_pair(*(datasets.looks_of(session, storage, dataset) for dataset in both))
    try:
        config = configs.config_for(asked.method, asked.setting, asked.preset, {}, looks=looks)
    except configs.ConfigRefused as refused:
        raise BadConfig(refused.field, refused.message) from refused
    found = expected(session, source_id=both[0].id, target_id=both[1].id, config=config, now=utc_now())
    return EstimateList(items=[EstimateRead.of(each) for each in found])
