"""Let the journal tell of people, datasets and models, and from where.

Revision: 0021, after 0020
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
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
    "run-changed",
)
AFTER = (
    *BEFORE,
    "signed-in",
    "sign-in-refused",
    "signed-out",
    "session-ended",
    "password-changed",
    "password-link-made",
    "second-factor-on",
    "second-factor-off",
    "token-made",
    "token-revoked",
    "invitation-made",
    "invitation-withdrawn",
    "account-made",
    "account-disabled",
    "account-enabled",
    "role-changed",
    "dataset-made",
    "dataset-deleted",
    "model-made",
    "model-downloaded",
)


def upgrade() -> None:
    """Apply."""
    _allow(AFTER)
    op.add_column("journal_entry", sa.Column("address", sa.String(64), server_default="", nullable=False))


def downgrade() -> None:
    """Revert. Entries about people, datasets and models are lost."""
    op.drop_column("journal_entry", "address")
    _allow(BEFORE)


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
