"""Let a trial that people let try again have all its time again: what it had trained before does not count.

Revision: 0051, after 0045
"""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("trial", sa.Column("excused_s", sa.Double(), server_default="0", nullable=False))


def downgrade() -> None:
    """Revert."""
    op.drop_column("trial", "excused_s")
