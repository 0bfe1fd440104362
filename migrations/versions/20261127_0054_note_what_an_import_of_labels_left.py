"""Note what an import of labels has left unread.

Revision: 0054, after 0053
"""

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Of imports that are there nobody noted it."""
    op.add_column("label_import", sa.Column("notes", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Revert. The notes are lost."""
    op.drop_column("label_import", "notes")
