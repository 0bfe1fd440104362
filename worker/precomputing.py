"""Task: work out what a large campaign's answers tell, so that its pages need not."""

import time
from uuid import UUID

import structlog

from app.clock import utc_now
from app.quality import service as quality
from worker.context import Context

log = structlog.get_logger()


def keep_figures(context: Context, campaign_id: UUID) -> None:
    """Work a campaign's figures out and keep them, if something changed and the last time is long enough ago.

    Safe to deliver twice and to lose: a second delivery finds them fresh, and upkeep asks for what is due.
    """
    now, start = utc_now(), time.monotonic()
    with context.reading() as session:
        if campaign_id not in quality.waiting_figures(session, now):
            log.info("campaign.figures_not_due", campaign_id=str(campaign_id))
            return
        campaign = quality.started_campaign(session, campaign_id, by=None)
        found = quality.precompute(session, campaign, now=now)
    took_s = time.monotonic() - start
    with context.unit_of_work() as session:
        quality.keep_figures(session, found, took_s=took_s)
    log.info("campaign.figures_kept", campaign_id=str(campaign_id), took_s=round(took_s, 1))
