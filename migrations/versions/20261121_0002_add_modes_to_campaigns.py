"""Add to each campaign the modes in which it may be annotated.

Revision: 0002, after 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MODES = sa.Enum(
    "card", "grid", "both", name="modes_known", native_enum=False, create_constraint=True, length=32
)


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("campaign") as batch:
        batch.add_column(sa.Column("modes", MODES, nullable=False, server_default="both"))


def downgrade() -> None:
    """Revert."""
    with op.batch_alter_table("campaign") as batch:
        batch.drop_constraint("modes_known", type_="check")
        batch.drop_column("modes")
