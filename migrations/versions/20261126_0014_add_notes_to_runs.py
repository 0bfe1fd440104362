"""Let people write a note beside a run, and the journal tell of it.

Revision: 0014, after 0013
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BEFORE = (
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
    "answers-downloaded",
    "labels-downloaded",
)
AFTER = (*BEFORE, "run-changed")


def upgrade() -> None:
    """Apply."""
    op.add_column("run", sa.Column("note", sa.String(500), server_default="", nullable=False))
    _allow(AFTER)


def downgrade() -> None:
    """Revert. Notes are lost, and so are entries about their changes."""
    _allow(BEFORE)
    op.drop_column("run", "note")


def _allow(actions: Sequence[str]) -> None:
    allowed = "action IN ({})".format(", ".join(f"'{action}'" for action in actions))
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("action_known", "journal_entry", type_="check")
        op.execute("ALTER TABLE journal_entry DISABLE TRIGGER journal_entry_keep")
        op.execute(f"DELETE FROM journal_entry WHERE NOT {allowed}")
        op.execute("ALTER TABLE journal_entry ENABLE TRIGGER journal_entry_keep")
        op.create_check_constraint("action_known", "journal_entry", allowed)
        return
    # SQLite changes no constraint: a new table takes the rows; with the old one go its index and triggers.
    op.rename_table("journal_entry", "old_journal_entry")
    op.create_table(
        "journal_entry",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "action",
            sa.Enum(*actions, name="action_known", native_enum=False, create_constraint=True, length=32),
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
    columns = "id, at, action, by_id, campaign_id, details"
    op.execute(
        f"INSERT INTO journal_entry ({columns}) SELECT {columns} FROM old_journal_entry WHERE {allowed}"
    )
    op.drop_table("old_journal_entry")
    op.create_index("ix_journal_entry_campaign_id_id", "journal_entry", ["campaign_id", "id"], unique=False)
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER journal_entry_keep_{verb} BEFORE {verb} ON journal_entry "
            "BEGIN SELECT RAISE(ABORT, 'the journal is only written to'); END"
        )
