"""Tell whose fault it is that a trial did not go on, where it was tried, and why a worker takes nothing.

Revision: 0058, after 0056
"""

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    # Written out: Alembic adds a column's check as a statement of its own, which SQLite does not have.
    op.execute(
        "ALTER TABLE trial ADD COLUMN fault VARCHAR(32) "
        "CONSTRAINT ck_trial_fault_known CHECK (fault IN ('run', 'machine', 'passing'))"
    )
    op.add_column("trial", sa.Column("setbacks", sa.Integer(), server_default="0", nullable=False))
    op.add_column("trial", sa.Column("setback", sa.Text(), nullable=True))
    op.add_column("trial", sa.Column("not_before", sa.DateTime(timezone=True), nullable=True))
    op.add_column("trial", sa.Column("avoided", sa.JSON(), server_default="[]", nullable=False))
    op.add_column("worker", sa.Column("trouble", sa.Text(), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("worker", "trouble")
    for column in ("avoided", "not_before", "setback", "setbacks", "fault"):
        op.drop_column("trial", column)
