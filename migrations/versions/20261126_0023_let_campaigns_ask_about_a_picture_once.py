"""Let a campaign leave out pictures that are the same as an earlier one of its dataset.

Those that are there ask about each.

Revision: 0023, after 0022
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column(
        "campaign", sa.Column("skip_twins", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Revert."""
    op.drop_column("campaign", "skip_twins")
