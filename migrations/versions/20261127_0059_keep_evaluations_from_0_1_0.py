"""Keep drafts of evaluations from 0.1.0, which would draw an ordinary campaign's questions for them.

Their opening is asked for in a column that 0.1.0 does not know, and the one that it knows stays empty.

Revision: 0059, after 0058
"""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None

DRAFTS = "kind = 'evaluation' AND state = 'draft'"


def upgrade() -> None:
    """Apply."""
    campaign = sa.table(
        "campaign", sa.column("id", sa.Uuid()), sa.column("opening_requested_at", sa.DateTime(timezone=True))
    )
    opening = sa.select(campaign).where(sa.text(DRAFTS), campaign.c.opening_requested_at.is_not(None))
    rows = op.get_bind().execute(opening).all()
    op.execute(f"UPDATE campaign SET opening_requested_at = NULL WHERE {DRAFTS}")
    # Written out: Alembic adds a column's check as a statement of its own, which SQLite does not have.
    kind = "DATETIME" if op.get_bind().dialect.name == "sqlite" else "TIMESTAMP WITH TIME ZONE"
    op.execute(
        f"ALTER TABLE campaign ADD COLUMN asking_requested_at {kind} "
        "CONSTRAINT ck_campaign_evaluation_not_for_older CHECK "
        "(kind <> 'evaluation' OR state <> 'draft' OR opening_requested_at IS NULL)"
    )
    asking = sa.table(
        "campaign", sa.column("id", sa.Uuid()), sa.column("asking_requested_at", sa.DateTime(timezone=True))
    )
    for row in rows:
        change = sa.update(asking).where(asking.c.id == row.id)
        op.execute(change.values(asking_requested_at=row.opening_requested_at))


def downgrade() -> None:
    """Revert; a draft whose opening was asked for a moment ago is a draft again."""
    if op.get_bind().dialect.name == "postgresql":  # SQLite has the check with the column
        op.drop_constraint(op.f("ck_campaign_evaluation_not_for_older"), "campaign", type_="check")
    op.drop_column("campaign", "asking_requested_at")
