"""Add the journal of who did what.

Revision: 0007, after 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ACTIONS = (
    "campaign-created",
    "campaign-changed",
    "campaign-deleted",
    "campaign-opened",
    "campaign-paused",
    "campaign-resumed",
    "campaign-closed",
    "person-paused",
    "person-resumed",
    "person-left-out",
    "person-counted",
    "known-marked",
    "asked-again",
    "question-decided",
    "decision-taken-back",
    "labels-imported",
    "import-deleted",
    "run-started",
    "run-cancelled",
)
REFUSE = {
    "sqlite": [
        f"CREATE TRIGGER journal_entry_keep_{verb} BEFORE {verb} ON journal_entry "
        "BEGIN SELECT RAISE(ABORT, 'the journal is only written to'); END"
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE OR REPLACE FUNCTION journal_keep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the journal is only written to'; END $$",
        "CREATE TRIGGER journal_entry_keep BEFORE UPDATE OR DELETE ON journal_entry "
        "FOR EACH ROW EXECUTE FUNCTION journal_keep()",
    ],
}


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "journal_entry",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "action",
            sa.Enum(*ACTIONS, name="action_known", native_enum=False, create_constraint=True, length=32),
            nullable=False,
        ),
        sa.Column("by_id", sa.Uuid(), nullable=True),
        sa.Column("campaign_id", sa.Uuid(), nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["by_id"], ["user.id"], name=op.f("fk_journal_entry_by_id_user"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_journal_entry")),
    )
    op.create_index("ix_journal_entry_campaign_id_id", "journal_entry", ["campaign_id", "id"], unique=False)
    for statement in REFUSE[op.get_bind().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    """Revert."""
    op.drop_table("journal_entry")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION journal_keep")
