"""Keep the trace to which the launch of a run belongs, for what trains it later; null: it is not traced.

Revision: 0084, after 0087
"""

import sqlalchemy as sa
from alembic import op

revision = "0084"
down_revision = "0087"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("run", sa.Column("traceparent", sa.String(55), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("run", "traceparent")
