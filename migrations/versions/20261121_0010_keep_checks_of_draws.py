"""Add what the last check of a campaign's draws found.

Revision: 0010, after 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "draw_check",
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("draws_match", sa.Boolean(), nullable=False),
        sa.Column("commitment_matches", sa.Boolean(), nullable=False),
        sa.Column("drawn_per_class", sa.JSON(), nullable=False),
        sa.Column("statistic", sa.Double(), nullable=False),
        sa.Column("degrees", sa.Integer(), nullable=False),
        sa.Column("p_value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", name=op.f("pk_draw_check")),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_draw_check_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Revert."""
    op.drop_table("draw_check")
