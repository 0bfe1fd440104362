"""Know into how many processes a worker can split a run, and how many jobs a trial was launched as.

Revision: 0087, after 0083
"""

import sqlalchemy as sa
from alembic import op

revision = "0087"
down_revision = "0083"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("worker", sa.Column("most_processes", sa.Integer(), nullable=True))
    op.add_column("trial", sa.Column("launches", sa.Integer(), server_default="0", nullable=False))
    op.add_column("trial", sa.Column("launched_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("trial", "launched_at")
    op.drop_column("trial", "launches")
    op.drop_column("worker", "most_processes")
