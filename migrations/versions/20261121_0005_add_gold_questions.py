"""Add gold questions and each person's part in a campaign.

Revision: 0005, after 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Written out, because Alembic adds a column's check as a statement of its own, which SQLite does not have.
COLUMNS = (
    "campaign ADD COLUMN gold_share {double} DEFAULT 0.05 NOT NULL "
    "CONSTRAINT ck_campaign_gold_share_in_range CHECK (gold_share BETWEEN 0 AND 0.5)",
    "campaign ADD COLUMN gold_bound {double} DEFAULT 0.7 NOT NULL "
    "CONSTRAINT ck_campaign_gold_bound_in_range CHECK (gold_bound BETWEEN 0 AND 1)",
    "campaign ADD COLUMN gold_feedback BOOLEAN DEFAULT false NOT NULL",
    "question ADD COLUMN is_match BOOLEAN",
)


def upgrade() -> None:
    """Apply."""
    double = sa.Double().compile(op.get_bind().dialect)
    for column in COLUMNS:
        op.execute("ALTER TABLE " + column.format(double=double))
    op.create_index(
        "ix_question_gold",
        "question",
        ["campaign_id", "candidate_class"],
        unique=False,
        sqlite_where=sa.text("purpose = 'gold'"),
        postgresql_where=sa.text("purpose = 'gold'"),
    )
    op.create_table(
        "participant",
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("gold_answers", sa.Integer(), nullable=False),
        sa.Column("gold_right", sa.Integer(), nullable=False),
        sa.Column("gold_wrong", sa.Integer(), nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_by_id", sa.Uuid(), nullable=True),
        sa.Column("is_left_out", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_participant_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["paused_by_id"], ["user.id"], name=op.f("fk_participant_paused_by_id_user"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_participant_user_id_user"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("campaign_id", "user_id", name=op.f("pk_participant")),
    )


def downgrade() -> None:
    """Revert."""
    op.drop_table("participant")
    op.execute("DELETE FROM question WHERE purpose = 'gold'")
    op.drop_index("ix_question_gold", "question")
    op.drop_column("question", "is_match")
    for column in ("gold_feedback", "gold_bound", "gold_share"):
        op.drop_column("campaign", column)
