"""Say which trained weights a worker has: names of what was downloaded there; null: nobody looked.

Revision: 0078, after 0081
"""

import sqlalchemy as sa
from alembic import op

revision = "0078"
down_revision = "0081"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("worker", sa.Column("weights", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("worker", "weights")
