"""Tell contradictions of an import of images: of folder and table, of the same pixels, of the same name.

Revision: 0065, after 0064
"""

import sqlalchemy as sa
from alembic import op

revision = "0065"
down_revision = "0064"
branch_labels = None
depends_on = None

TABLES = ("dataset", "dataset_version")


def upgrade() -> None:
    """Apply."""
    for table in TABLES:
        op.add_column(table, sa.Column("contradictions", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Revert."""
    for table in TABLES:
        op.drop_column(table, "contradictions")
