"""Tell of each epoch's learning rate and share of pseudo-labels.

Revision: 0034, after 0033
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("metric", sa.Column("learning_rate", sa.Double(), nullable=True))
    op.add_column("metric", sa.Column("pseudo_label_share", sa.Double(), nullable=True))


def downgrade() -> None:
    """Revert. The figures are lost."""
    op.drop_column("metric", "pseudo_label_share")
    op.drop_column("metric", "learning_rate")
