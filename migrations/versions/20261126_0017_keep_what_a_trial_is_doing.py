"""Keep what a trial is doing while no epoch ends: its kind, and how much of it is done.

Revision: 0017, after 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("trial", sa.Column("doing", sa.String(20), nullable=True))
    op.add_column("trial", sa.Column("doing_done", sa.Integer(), nullable=True))
    op.add_column("trial", sa.Column("doing_total", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("trial", "doing_total")
    op.drop_column("trial", "doing_done")
    op.drop_column("trial", "doing")
