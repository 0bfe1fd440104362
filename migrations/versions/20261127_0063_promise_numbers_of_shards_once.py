"""Promise each number of a shard once: files of images that join are copied before they are published.

Revision: 0063, after 0061
"""

import sqlalchemy as sa
from alembic import op

revision = "0063"
down_revision = "0061"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("dataset", sa.Column("shards_taken", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    """Revert."""
    op.drop_column("dataset", "shards_taken")
