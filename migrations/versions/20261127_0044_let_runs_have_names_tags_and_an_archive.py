"""Let runs have names and tags, be put away, and be launched together.

Revision: 0044, after 0043
"""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("run", sa.Column("name", sa.String(120), server_default="", nullable=False))
    op.add_column("run", sa.Column("tags", sa.JSON(), server_default="[]", nullable=False))
    op.add_column("run", sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("run", sa.Column("sweep_id", sa.Uuid(), nullable=True))
    op.create_index("ix_run_sweep_id", "run", ["sweep_id"])


def downgrade() -> None:
    """Revert."""
    op.drop_index("ix_run_sweep_id", "run")
    for name in ("sweep_id", "archived_at", "tags", "name"):
        op.drop_column("run", name)
