"""Ask no more about pictures that stand beside a class, in campaigns that were opened before that was so.

Only about those that nobody has answered: what was said stays a label. What is set aside counts as finished,
in the sums of whoever made the campaign, as it does where a campaign opens.

Revision: 0074, after 0073
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import sqlalchemy as sa
from alembic import op

revision = "0074"
down_revision = "0073"
branch_labels = None
depends_on = None

CHUNK = 500  # values in a statement

_campaign = sa.table(
    "campaign", sa.column("id", sa.Uuid()), sa.column("state"), sa.column("created_by_id", sa.Uuid())
)
_class = sa.table("campaign_class", sa.column("campaign_id", sa.Uuid()), sa.column("example_ids", sa.JSON()))
_example = sa.table("example", sa.column("id"), sa.column("digest"))
_question = sa.table(
    "question",
    sa.column("id"),
    sa.column("campaign_id", sa.Uuid()),
    sa.column("example_id"),
    sa.column("candidate_class"),
    sa.column("is_waiting", sa.Boolean()),
    sa.column("is_set_aside", sa.Boolean()),
)
_answer = sa.table("answer", sa.column("question_id"))
_review = sa.table("picture_review", sa.column("campaign_id", sa.Uuid()), sa.column("example_id"))
_SUMS = ("yes", "no", "unsure", "unusable", "first_yes", "first_no", "timed", "active_ms")
_tally = sa.table(
    "tally",
    sa.column("campaign_id", sa.Uuid()),
    sa.column("user_id", sa.Uuid()),
    sa.column("candidate_class"),
    sa.column("finished", sa.Integer()),
    sa.column("last_at", sa.DateTime(timezone=True)),
    *(sa.column(name, sa.Integer()) for name in _SUMS),
)


def upgrade() -> None:
    """Apply."""
    running = sa.select(_campaign.c.id, _campaign.c.created_by_id).where(
        _campaign.c.state.in_(("open", "paused"))
    )
    for campaign_id, made_by in op.get_bind().execute(running).all():
        _set_aside(campaign_id, made_by)


def downgrade() -> None:
    """Revert: what was set aside stays so, which a reviewer can change."""


def _set_aside(campaign_id: UUID, made_by: UUID) -> None:
    bind = op.get_bind()
    shown = bind.scalars(sa.select(_class.c.example_ids).where(_class.c.campaign_id == campaign_id)).all()
    beside = {example_id for some in shown for example_id in some or ()}
    digests = {
        digest
        for part in _chunks(beside)
        for digest in bind.scalars(sa.select(_example.c.digest).where(_example.c.id.in_(part)))
    }
    here = _question.c.campaign_id == campaign_id
    query = (
        sa.select(_question.c.id, _question.c.example_id, _question.c.candidate_class, _question.c.is_waiting)
        .join(_example, _example.c.id == _question.c.example_id)
        .where(here, ~_question.c.is_set_aside)
    )
    rows = [
        row for part in _chunks(digests) for row in bind.execute(query.where(_example.c.digest.in_(part)))
    ]
    pictures = {row.example_id for row in rows}
    judged = set(bind.scalars(sa.select(_review.c.example_id).where(_review.c.campaign_id == campaign_id)))
    for part in _chunks(pictures):
        said = sa.select(_question.c.example_id).join(_answer, _answer.c.question_id == _question.c.id)
        judged |= set(bind.scalars(said.where(here, _question.c.example_id.in_(part))))
    chosen = [row for row in rows if row.example_id not in judged]
    for part in _chunks(row.id for row in chosen):
        bind.execute(
            sa.update(_question).where(_question.c.id.in_(part)).values(is_set_aside=True, is_waiting=False)
        )
    for class_, count in Counter(row.candidate_class for row in chosen if row.is_waiting).items():
        _count_finished(campaign_id, made_by, class_, count)


def _count_finished(campaign_id: UUID, user_id: UUID, class_: int, count: int) -> None:
    bind = op.get_bind()
    there = {"campaign_id": campaign_id, "user_id": user_id, "candidate_class": class_}
    changed = bind.execute(
        sa.update(_tally)
        .where(*(_tally.c[name] == value for name, value in there.items()))
        .values(finished=_tally.c.finished + count)
    )
    if not changed.rowcount:
        zeros = dict.fromkeys(_SUMS, 0)
        bind.execute(sa.insert(_tally).values(**there, **zeros, finished=count, last_at=datetime.now(UTC)))


def _chunks(values: Iterable[object]) -> Iterator[list[object]]:
    given = list(values)
    for start in range(0, len(given), CHUNK):
        yield given[start : start + CHUNK]
