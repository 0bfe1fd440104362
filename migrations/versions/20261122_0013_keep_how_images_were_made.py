"""Keep how a dataset's images were made, where they are not the published ones.

Revision: 0013, after 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("dataset", sa.Column("made", sa.String(200), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("dataset", "made")
