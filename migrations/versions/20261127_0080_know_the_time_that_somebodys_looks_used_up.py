"""Know the time that somebody's looks used up, over all campaigns.

Empty at first: what was looked at before counts by campaign, as before.

Revision: 0080, after 0077
"""

import sqlalchemy as sa
from alembic import op

revision = "0080"
down_revision = "0077"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "used_time",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("spans", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_used_time_user_id_user"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_used_time")),
    )


def downgrade() -> None:
    """Revert. Time counts by campaign again."""
    op.drop_table("used_time")
