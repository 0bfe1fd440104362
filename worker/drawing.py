"""Tasks: draw a campaign's questions and open it; draw them anew and compare."""

from uuid import UUID

import numpy as np
import structlog
from sqlalchemy import text

from app import claims, jobs
from app.annotation import questions
from app.campaigns import draws
from app.campaigns import service as campaigns
from app.campaigns.errors import CampaignNotFound
from app.claims import ClaimLost
from app.clock import utc_now
from app.quality import service as quality
from worker.context import Context

CHUNK = 5_000  # questions per transaction: short enough that answers in other campaigns do not wait long
WORKER = "drawing"

log = structlog.get_logger()


def open_campaign(context: Context, campaign_id: UUID) -> None:
    """Draw every question of a campaign whose opening was asked for; it opens when all of them are there.

    Safe to deliver twice and to lose. The claim lets one worker in, and each chunk renews it. An opening that
    was cut off starts again from the same seed.
    """
    with context.unit_of_work() as session:
        claimed = campaigns.claim_opening(session, campaign_id, by=WORKER, now=utc_now())
    if claimed is None:
        log.info("campaign.opening_not_ours", campaign_id=str(campaign_id))
        return
    claim, opening = claimed
    try:
        _draw(context, claim, opening)
    except ClaimLost:
        log.warning("campaign.opening_lost", campaign_id=str(campaign_id))


def check_draws(context: Context, campaign_id: UUID) -> None:
    """See whether a campaign's questions follow from its seed, and keep what was found.

    Safe to deliver twice and to lose: each check stands for itself, and upkeep asks for those that are due.
    """
    try:
        with context.reading() as session:
            campaign = quality.started_campaign(session, campaign_id, by=None)
            check = quality.check_draws(session, campaign, now=utc_now())
    except CampaignNotFound:
        log.info("campaign.nothing_to_check", campaign_id=str(campaign_id))
        return
    with context.unit_of_work() as session:
        quality.keep_check(session, check)


def _draw(context: Context, claim: claims.Claim, opening: campaigns.Opening) -> None:
    with context.unit_of_work() as session:
        claims.renew(session, claim, now=utc_now())
        questions.forget_questions(session, opening.campaign_id)
        examples = campaigns.examples_to_label(session, opening.dataset_id, skip_twins=opening.skip_twins)
    positions = np.array([position for position, _ in examples], dtype=np.int64)
    num_classes = len(opening.class_names)
    drawn = draws.draw(opening.seed, positions, num_classes=num_classes, rounds=opening.rounds)
    probability = draws.probabilities(num_classes)[0]
    example_ids = dict(examples)
    for start in range(0, len(drawn), CHUNK):
        with context.unit_of_work() as session:
            claims.renew(session, claim, now=utc_now())
            questions.add_questions(
                session,
                opening.campaign_id,
                drawn,
                example_ids=example_ids,
                probability=probability,
                overlap=opening.overlap,
                start=start,
                stop=start + CHUNK,
            )
    with context.unit_of_work() as session:
        if session.get_bind().dialect.name == "postgresql":
            # Without fresh statistics the planner may sort the whole queue for each question it hands out.
            session.execute(text("ANALYZE question"))
        per_class = np.bincount(drawn.classes, minlength=num_classes).tolist()
        campaigns.finish_opening(session, claim, opening, drawn_per_class=per_class, now=utc_now())
        jobs.enqueue(session, jobs.CHECK_DRAWS, opening.campaign_id)
    log.info("campaign.opened", campaign_id=str(opening.campaign_id), questions=len(drawn))
