"""Add what a job works out of large campaigns: their figures, and which questions are in doubt.

Revision: 0012, after 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INDEX = "ix_doubtful_question_campaign_id_weight_position"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "kept_figures",
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("computed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("took_s", sa.Double(), nullable=False),
        sa.Column("yes_by_true_class", sa.JSON(), nullable=True),
        sa.Column("rates", sa.JSON(), nullable=False),
        sa.Column("unlisted_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", name=op.f("pk_kept_figures")),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_kept_figures_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "doubtful_question",
        sa.Column("question_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("yes", sa.Integer(), nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column(
            "kind",
            sa.Enum(
                "true",
                "complementary",
                name="labelkind_known",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=True,
        ),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("question_id", name=op.f("pk_doubtful_question")),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["question.id"],
            name=op.f("fk_doubtful_question_question_id_question"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_doubtful_question_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(INDEX, "doubtful_question", ["campaign_id", "weight", "position"])


def downgrade() -> None:
    """Revert."""
    op.drop_index(INDEX, "doubtful_question")
    op.drop_table("doubtful_question")
    op.drop_table("kept_figures")
