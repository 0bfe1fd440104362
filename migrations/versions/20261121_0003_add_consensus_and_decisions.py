"""Add overlap, consensus and an admin's decisions.

Revision: 0003, after 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Written out, because Alembic adds a column's check as a statement of its own, which SQLite does not have;
# and copying a table there (batch mode) would delete the rows that refer to it.
COLUMNS = (
    "campaign ADD COLUMN overlap INTEGER DEFAULT 1 NOT NULL "
    "CONSTRAINT ck_campaign_overlap_in_range CHECK (overlap BETWEEN 1 AND 3)",
    "campaign ADD COLUMN consensus VARCHAR(32) DEFAULT 'dawid-skene' NOT NULL "
    "CONSTRAINT ck_campaign_consensus_known CHECK (consensus IN ('majority', 'dawid-skene'))",
    "question ADD COLUMN least INTEGER DEFAULT 1 NOT NULL "
    "CONSTRAINT ck_question_least_in_range CHECK (least BETWEEN 1 AND 4)",
)


def upgrade() -> None:
    """Apply."""
    for column in COLUMNS:
        op.execute(f"ALTER TABLE {column}")
    op.execute("UPDATE campaign SET consensus = 'majority'")  # what they were opened with
    op.create_table(
        "decision",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("question_id", BIG_ID, nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column(
            "value",
            sa.Enum(
                "yes",
                "no",
                "unsure",
                name="answervalue_known",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("superseded_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["question.id"],
            name=op.f("fk_decision_question_id_question"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_decision_user_id_user"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision")),
    )
    op.create_index(op.f("ix_decision_question_id"), "decision", ["question_id"], unique=False)
    op.create_index(
        "uq_decision_live",
        "decision",
        ["question_id"],
        unique=True,
        sqlite_where=sa.text("superseded_at IS NULL"),
        postgresql_where=sa.text("superseded_at IS NULL"),
    )


def downgrade() -> None:
    """Revert."""
    op.drop_table("decision")
    for table, column in (("question", "least"), ("campaign", "consensus"), ("campaign", "overlap")):
        op.drop_column(table, column)
