"""Let a campaign say in which language its classes are named; of those that are there nobody has said it.

Revision: 0029, after 0024
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("campaign", sa.Column("class_language", sa.String(35), nullable=False, server_default=""))


def downgrade() -> None:
    """Revert."""
    op.drop_column("campaign", "class_language")
