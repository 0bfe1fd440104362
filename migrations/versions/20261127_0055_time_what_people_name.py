"""Naming what a picture shows takes people time, which is paid like their answers.

Of what was named before nobody measured it.

Revision: 0055, after 0054
"""

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("naming") as table:
        table.add_column(sa.Column("named_ms", sa.Integer(), nullable=True))
        table.create_check_constraint("named_not_negative", "named_ms IS NULL OR named_ms >= 0")


def downgrade() -> None:
    """Revert. The times are lost; what was named stays."""
    with op.batch_alter_table("naming") as table:
        table.drop_constraint("named_not_negative", type_="check")
        table.drop_column("named_ms")
