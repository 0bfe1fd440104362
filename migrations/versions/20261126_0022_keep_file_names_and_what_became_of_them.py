"""Keep what an import has to say, which files it left out, and what the file of each image was called.

Images that are there keep no name.

Revision: 0022, after 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    for name in ("notes", "faults"):
        op.add_column("dataset", sa.Column(name, sa.JSON(), nullable=False, server_default="[]"))
    op.add_column("example", sa.Column("filename", sa.String(400), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("example", "filename")
    op.drop_column("dataset", "faults")
    op.drop_column("dataset", "notes")
