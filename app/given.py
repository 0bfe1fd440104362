"""What somebody gave: answers by campaign, and by which links of a platform they came.

Accounts know no campaigns, so these are read by the names of tables, as in `app.uses`.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from app.db import Base

MOST_SHOWN = 50  # campaigns


@dataclass(frozen=True, slots=True)
class Given:
    """What stands of somebody's answers in one campaign."""

    campaign_id: UUID
    campaign: str
    yes: int
    no: int
    unsure: int
    unusable: int
    last_at: datetime
    is_paused: bool
    is_left_out: bool

    @property
    def answers(self) -> int:
        """All of them."""
        return self.yes + self.no + self.unsure + self.unusable


@dataclass(frozen=True, slots=True)
class Arrival:
    """A link by which an outside worker came to a campaign."""

    worker_id: str  # of the platform
    campaign_id: UUID
    campaign: str
    study: str


def given_by(session: Session, user_id: UUID) -> tuple[int, list[Given]]:
    """In how many campaigns somebody answered, and the newest of them, by their last answer."""
    tables = Base.metadata.tables
    tally, campaign, part = tables["tally"], tables["campaign"], tables["participant"]
    yes, no, unsure, unusable = (func.sum(tally.c[name]) for name in ("yes", "no", "unsure", "unusable"))
    last_at = func.max(tally.c.last_at)
    sums = (
        select(tally.c.campaign_id, yes, no, unsure, unusable, last_at)
        .where(tally.c.user_id == user_id)
        .group_by(tally.c.campaign_id)
        .having(yes + no + unsure + unusable > 0)
    )
    count = session.scalar(select(func.count()).select_from(sums.subquery())) or 0
    newest = session.execute(sums.order_by(last_at.desc(), tally.c.campaign_id).limit(MOST_SHOWN)).all()
    of_campaign = {
        id_: (name, paused_at, is_left_out)
        for id_, name, paused_at, is_left_out in session.execute(
            select(campaign.c.id, campaign.c.name, part.c.paused_at, part.c.is_left_out)
            .outerjoin(part, and_(part.c.campaign_id == campaign.c.id, part.c.user_id == user_id))
            .where(campaign.c.id.in_([row[0] for row in newest]))
        )
    }
    found = []
    for row in newest:
        name, paused_at, is_left_out = of_campaign[row[0]]
        said = row[1], row[2], row[3], row[4]
        found.append(Given(row[0], name, *said, row[5], paused_at is not None, bool(is_left_out)))
    return count, found


def arrivals_of(session: Session, user_id: UUID) -> list[Arrival]:
    """By which links an outside worker came, the newest first; empty for anybody else."""
    tables = Base.metadata.tables
    worker, visit, link = tables["outside_worker"], tables["worker_visit"], tables["worker_link"]
    campaign = tables["campaign"]
    visited = select(visit.c.link_id).where(visit.c.user_id == user_id)
    rows = session.execute(
        select(worker.c.worker_id, campaign.c.id, campaign.c.name, link.c.note)
        .join(campaign, campaign.c.id == worker.c.campaign_id)
        .join(link, (link.c.id == worker.c.link_id) | link.c.id.in_(visited))
        .where(worker.c.user_id == user_id)
        .order_by(link.c.created_at.desc(), link.c.id)
    )
    return [Arrival(*row) for row in rows]
