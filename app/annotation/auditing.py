"""Checking a campaign: were its classes drawn as promised, and do the answers look right?"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.annotation import chi_square
from app.annotation.models import Purpose, Question
from app.annotation.progress import Progress, progress
from app.campaigns import draws
from app.campaigns import service as campaigns
from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign, CampaignState
from app.datasets.models import Dataset, Example

ALARM = 0.001  # a test whose p-value lies below this is worth looking into


@dataclass(frozen=True, slots=True)
class Audit:
    """What can be checked now. Recomputed facts are None while the seed is secret."""

    commitment: str
    seed: str | None  # public once the campaign is closed
    dataset_digest: str
    dataset_unchanged: bool
    draws_match: bool | None  # every class and its place in the queue follow from the seed
    commitment_matches: bool | None
    drawn_per_class: tuple[int, ...]
    uniformity: chi_square.ChiSquare  # of the drawn classes; over all rounds the one that looks worst
    unsure_by_class: chi_square.ChiSquare  # whether "can't tell" concentrates on a class
    progress: Progress

    @property
    def passed(self) -> bool:
        """Whether the draws are what was promised. An odd p-value alone does not refute recomputed draws."""
        recomputed = self.draws_match is True and self.commitment_matches is True
        refuted = self.draws_match is False or self.commitment_matches is False
        return self.dataset_unchanged and not refuted and (recomputed or self.uniformity.p_value >= ALARM)

    @property
    def alarms(self) -> tuple[str, ...]:
        """What somebody should look at, in sentences."""
        found = []
        if not self.dataset_unchanged:
            found.append("The dataset is not the one the questions were drawn for.")
        if self.draws_match is False:
            found.append("The questions do not follow from the seed.")
        if self.commitment_matches is False:
            found.append("The seed is not the one that was committed to at opening.")
        if self.uniformity.p_value < ALARM:
            found.append("The drawn classes are less even than chance explains.")
        if self.unsure_by_class.p_value < ALARM:
            found.append("“Can't tell” concentrates on some classes.")
        return tuple(found)


def started_campaign(session: Session, campaign_id: UUID) -> Campaign:
    """A campaign that was opened, with its classes: anybody may check how its classes were drawn.

    Raises:
        CampaignNotFound: there is none, or it is a draft.
    """
    campaign = campaigns.any_campaign(session, campaign_id)
    if campaign.state is CampaignState.DRAFT:
        raise CampaignNotFound
    return campaign


def audit(session: Session, campaign: Campaign, *, now: datetime, has_seed: bool = False) -> Audit:
    """Check a campaign that was opened; `campaign` has its classes.

    Args:
        session: a reading one.
        campaign: open, paused or closed.
        now: for the pace in the progress.
        has_seed: recompute the draws although the campaign is not closed (for somebody who may see the seed).
    """
    is_public = campaign.state is CampaignState.CLOSED
    dataset = session.get_one(Dataset, campaign.dataset_id)
    rows = session.execute(
        select(Question.rank, Example.position, Question.round, Question.candidate_class)
        .join(Example, Example.id == Question.example_id)
        .where(Question.campaign_id == campaign.id, Question.purpose == Purpose.LABELLING)
    ).all()
    table = np.array([tuple(row) for row in rows], dtype=np.int64).reshape(-1, 4)  # (Q, 4)
    far = progress(session, campaign, now=now)
    recomputes = is_public or has_seed
    return Audit(
        commitment=campaign.commitment or "",
        seed=campaign.seed if is_public else None,
        dataset_digest=campaign.dataset_digest or "",
        dataset_unchanged=dataset.digest == campaign.dataset_digest,
        draws_match=_draws_match(session, campaign, table) if recomputes else None,
        commitment_matches=_commitment_matches(campaign) if recomputes else None,
        drawn_per_class=tuple(np.bincount(table[:, 3], minlength=campaign.num_classes).tolist()),
        uniformity=_uniformity(campaign, table),
        unsure_by_class=chi_square.same_rate(
            [item.counts.unsure for item in far.classes], [item.counts.total for item in far.classes]
        ),
        progress=far,
    )


def _draws_match(session: Session, campaign: Campaign, table: draws.Integers) -> bool:
    """Whether drawing again gives the same questions in the same order."""
    if len(table) != campaign.question_count or not len(table):
        return False
    # Questions that must be asked again went behind the queue in steps of its length.
    place = table[:, 0] % campaign.question_count
    stored = table[np.argsort(place)]
    places = campaigns.examples_to_label(session, campaign.dataset_id)
    positions = np.array([position for position, _ in places], dtype=np.int64)
    drawn = draws.draw(campaign.seed, positions, num_classes=campaign.num_classes, rounds=campaign.rounds)
    return (
        len(drawn) == len(stored)
        and np.array_equal(drawn.positions, stored[:, 1])
        and np.array_equal(drawn.rounds, stored[:, 2])
        and np.array_equal(drawn.classes, stored[:, 3])
    )


def _commitment_matches(campaign: Campaign) -> bool:
    return campaign.commitment == draws.commitment(
        campaign.seed,
        dataset_digest=campaign.dataset_digest or "",
        examples=campaign.question_count // campaign.rounds,
        class_names=campaign.class_names,
        rounds=campaign.rounds,
    )


def _uniformity(campaign: Campaign, table: draws.Integers) -> chi_square.ChiSquare:
    """The round that looks worst, its p-value corrected for how many rounds there are (Bonferroni).

    Draws of one round are independent over the examples; those of one example over the rounds are not.
    """
    tests = [
        chi_square.uniform(
            np.bincount(table[table[:, 2] == round_, 3], minlength=campaign.num_classes).tolist()
        )
        for round_ in range(campaign.rounds)
    ]
    worst = min(tests, key=lambda test: test.p_value)
    return chi_square.ChiSquare(worst.statistic, worst.degrees, min(1.0, worst.p_value * len(tests)))
