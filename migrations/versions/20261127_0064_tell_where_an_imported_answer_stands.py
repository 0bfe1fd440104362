"""Tell of an imported answer its line, and of an import what it calls a line, what was known and left out.

Old rows stay as they are, and no index forbids an answer twice: the version before writes it so, and runs
until every host is changed. Whoever reads takes each answer once.

Revision: 0064, after 0063
"""

import sqlalchemy as sa
from alembic import op

revision = "0064"
down_revision = "0063"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("imported_answer", sa.Column("line", sa.Integer(), nullable=True))
    op.add_column("label_import", sa.Column("noun", sa.String(8), server_default="line", nullable=False))
    for column in ("known", "left_out"):
        op.add_column("label_import", sa.Column(column, sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    """Revert."""
    for column in ("left_out", "known", "noun"):
        op.drop_column("label_import", column)
    op.drop_column("imported_answer", "line")
