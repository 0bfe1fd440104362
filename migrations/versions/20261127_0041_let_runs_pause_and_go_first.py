"""Let runs pause and go first: when people paused one, and which goes before others.

Revision: 0041, after 0040
"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("run", sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True))
    # Written out: Alembic adds a column's check as a statement of its own, which SQLite does not have.
    op.execute(
        "ALTER TABLE run ADD COLUMN priority VARCHAR(32) DEFAULT 'normal' NOT NULL "
        "CONSTRAINT ck_run_priority_known CHECK (priority IN ('high', 'normal', 'low'))"
    )


def downgrade() -> None:
    """Revert. What was paused goes on."""
    op.drop_column("run", "priority")
    op.drop_column("run", "paused_at")
