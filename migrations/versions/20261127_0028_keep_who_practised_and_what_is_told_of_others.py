"""Keep who has practised in a campaign, and whether it tells what others said.

Revision: 0028, after 0027
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column(
        "campaign", sa.Column("tells_others", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_table(
        "practice",
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_practice_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_practice_user_id_user"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("campaign_id", "user_id", name=op.f("pk_practice")),
    )


def downgrade() -> None:
    """Revert."""
    op.drop_table("practice")
    op.drop_column("campaign", "tells_others")
