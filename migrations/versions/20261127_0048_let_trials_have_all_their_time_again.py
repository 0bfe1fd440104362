"""Let a trial that people let try again have all its time again: what it had trained before does not count.

Revision: 0048, after 0047
"""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("trial", sa.Column("excused_s", sa.Double(), server_default="0", nullable=False))


def downgrade() -> None:
    """Revert."""
    op.drop_column("trial", "excused_s")
