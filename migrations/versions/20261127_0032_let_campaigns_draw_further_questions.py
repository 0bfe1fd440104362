"""Let campaigns draw questions about images that joined their dataset, each drawing with a seed of its own.

What was drawn so far is drawing 1, over version 1 of the dataset.

Revision: 0032, after 0031
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "campaign_drawing",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("seed", sa.String(64), nullable=False),
        sa.Column("commitment", sa.String(64), nullable=True),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column("dataset_digest", sa.String(64), nullable=False),
        sa.Column("first_position", sa.Integer(), nullable=False),
        sa.Column("end_position", sa.Integer(), nullable=False),
        sa.Column("first_rank", BIG, nullable=False),
        sa.Column("question_count", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("requested_by_id", sa.Uuid(), nullable=False),
        sa.Column("drawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim_number", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.CheckConstraint("number >= 2", name=op.f("ck_campaign_drawing_number_after_first")),
        sa.CheckConstraint(
            "(commitment IS NULL) = (drawn_at IS NULL)", name=op.f("ck_campaign_drawing_committed_once_drawn")
        ),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_campaign_drawing_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["requested_by_id"],
            ["user.id"],
            name=op.f("fk_campaign_drawing_requested_by_id_user"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign_drawing")),
        sa.UniqueConstraint("campaign_id", "number", name=op.f("uq_campaign_drawing_campaign_id_number")),
    )
    op.add_column("campaign", sa.Column("dataset_version", sa.Integer(), nullable=True))
    op.add_column("campaign", sa.Column("rank_step", BIG, nullable=False, server_default="0"))
    op.execute("UPDATE campaign SET rank_step = question_count")
    op.execute("UPDATE campaign SET dataset_version = 1 WHERE commitment IS NOT NULL")
    op.add_column("question", sa.Column("drawing", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("draw_check", sa.Column("drawings", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Revert. Questions of further drawings stay, and can be checked no more."""
    op.drop_column("draw_check", "drawings")
    op.drop_column("question", "drawing")
    op.drop_column("campaign", "rank_step")
    op.drop_column("campaign", "dataset_version")
    op.drop_table("campaign_drawing")
