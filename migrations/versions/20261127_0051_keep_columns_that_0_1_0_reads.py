"""Give back two columns that 0.1.0 reads, so that both versions work on one database while they change.

Nothing of this version reads or writes them. A later release drops them.

Revision: 0051, after 0050
"""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE campaign ADD COLUMN gold_feedback BOOLEAN DEFAULT false NOT NULL")
    op.add_column("trial", sa.Column("source_accuracy_estimate", sa.Double(), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("trial", "source_accuracy_estimate")
    op.drop_column("campaign", "gold_feedback")
