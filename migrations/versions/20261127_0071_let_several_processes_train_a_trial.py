"""Let several processes of a worker train a trial together: each run says how many.

Revision: 0071, after 0067
"""

import sqlalchemy as sa
from alembic import op

revision = "0071"
down_revision = "0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("run", sa.Column("processes", sa.Integer(), server_default="1", nullable=False))


def downgrade() -> None:
    """Revert."""
    op.drop_column("run", "processes")
