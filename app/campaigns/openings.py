"""Opening a campaign in the background: what waits for a worker, what is drawn from, and the end of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from app import claims
from app.campaigns.draws import commitment
from app.campaigns.models import Campaign, CampaignClass, CampaignState
from app.campaigns.sampling import sample_commitment
from app.campaigns.service import any_campaign
from app.claims import MAX_ATTEMPTS, Claim
from app.datasets import versions
from app.datasets.models import Dataset, Example, Split

_REQUESTED_AT = func.coalesce(Campaign.opening_requested_at, Campaign.asking_requested_at)


@dataclass(frozen=True, slots=True)
class Opening:
    """What a claimed opening draws from."""

    campaign_id: UUID
    seed: str
    class_names: tuple[str, ...]
    rounds: int
    overlap: int
    dataset_id: UUID
    dataset_version: int
    dataset_digest: str
    end_position: int  # of the images of that version
    skip_twins: bool
    sample: tuple[str, int] | None  # of an evaluation: seed and size
    strata: list[list[int]] | None  # of its sample, where it has some


def waiting_openings(session: Session, now: datetime) -> list[UUID]:
    """Campaigns whose opening was asked for and that no worker holds."""
    query = select(Campaign.id).where(*_is_waiting(), claims.unclaimed(Campaign, now))
    return list(session.scalars(query.order_by(_REQUESTED_AT)))


def give_up_openings(session: Session, now: datetime) -> None:
    """Turn openings whose last worker went silent as well back into drafts, with a sentence."""
    claims.give_up(
        session,
        Campaign,
        Campaign.state == CampaignState.DRAFT,
        _REQUESTED_AT.is_not(None),
        now=now,
        opening_requested_at=None,
        asking_requested_at=None,
        opening_failure=f"Drawing the questions was tried {MAX_ATTEMPTS} times and did not end. "
        "The worker's log says why; then open the campaign again.",
    )


def _is_waiting() -> tuple[ColumnElement[bool], ...]:
    return (
        Campaign.state == CampaignState.DRAFT,
        _REQUESTED_AT.is_not(None),
        Campaign.attempts < MAX_ATTEMPTS,
    )


def claim_opening(
    session: Session, campaign_id: UUID, *, by: str, now: datetime
) -> tuple[Claim, Opening] | None:
    """Take an opening for the worker `by`; None if nobody asked for it or somebody else has it."""
    claim = claims.claim(session, Campaign, campaign_id, *_is_waiting(), by=by, now=now)
    if claim is None:
        return None
    campaign = any_campaign(session, campaign_id)
    dataset = session.get_one(Dataset, campaign.dataset_id)
    version = (
        versions.version(session, dataset.id, campaign.dataset_version)
        if campaign.dataset_version is not None  # an evaluation's predictions are of one version
        else versions.newest(session, dataset)
    )
    assert version.number is not None  # it is published
    opening = Opening(
        campaign_id=campaign_id,
        seed=campaign.seed,
        class_names=tuple(campaign.class_names),
        rounds=campaign.rounds,
        overlap=campaign.overlap,
        dataset_id=dataset.id,
        dataset_version=version.number,
        dataset_digest=version.digest or "",
        end_position=version.image_count,
        skip_twins=campaign.skip_twins,
        sample=None
        if campaign.sample_seed is None or campaign.sample_size is None
        else (campaign.sample_seed, campaign.sample_size),
        strata=campaign.sample_strata,
    )
    return claim, opening


def examples_to_label(
    session: Session,
    dataset_id: UUID,
    *,
    first_position: int = 0,
    end_position: int,
    skip_twins: bool = False,
) -> list[tuple[int, int]]:
    """(position, id) of the images at these positions that a campaign asks about, by position.

    `skip_twins`: of images that are the same only the first, which may lie before these.
    """
    train = (
        Example.dataset_id == dataset_id,
        Example.split == Split.TRAIN,
        Example.position < end_position,
    )
    query = select(Example.position, Example.id).where(*train, Example.position >= first_position)
    if skip_twins:
        firsts = select(func.min(Example.position)).where(*train).group_by(Example.digest)
        query = query.where(Example.position.in_(firsts))
    rows = session.execute(query.order_by(Example.position))
    return [(position, example_id) for position, example_id in rows]


def finish_opening(
    session: Session,
    claim: Claim,
    opening: Opening,
    *,
    drawn_per_class: Sequence[int],
    evaluated: int = 0,
    now: datetime,
) -> None:
    """Open the campaign: its questions are all there.

    Args:
        claim, opening: what `claim_opening` gave.
        drawn_per_class: K counts.
        evaluated: how many of an evaluation's questions are about predictions.

    Raises:
        ClaimLost: somebody else opens it, or has opened it; nothing was changed.
    """
    count = sum(drawn_per_class)
    claims.release(
        session,
        claim,
        state=CampaignState.OPEN,
        opened_at=now,
        question_count=count,
        rank_step=count,
        dataset_version=opening.dataset_version,
        dataset_digest=opening.dataset_digest,
        commitment=_commitment(opening, count=count, evaluated=evaluated),
    )
    for position, drawn in enumerate(drawn_per_class):
        session.execute(
            update(CampaignClass)
            .where(CampaignClass.campaign_id == claim.id, CampaignClass.position == position)
            .values(question_count=drawn)
        )


def _commitment(opening: Opening, *, count: int, evaluated: int) -> str:
    about: dict[str, Any] = {"dataset_digest": opening.dataset_digest, "class_names": opening.class_names}
    if opening.sample is None:
        return commitment(opening.seed, **about, examples=count // opening.rounds, rounds=opening.rounds)
    seed, size = opening.sample
    return sample_commitment(
        opening.seed,
        **about,
        sample_seed=seed,
        sample_size=size,
        strata=opening.strata,
        asked=evaluated,
        drawn=count - evaluated,
    )
