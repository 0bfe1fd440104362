"""Mind who does not look: why people are paused, what is asked again, hasty answers, what labels claim.

Revision: 0019, after 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# Written out, because Alembic adds a column's check as a statement of its own, which SQLite does not have.
COLUMNS = (
    "campaign ADD COLUMN least_card_ms INTEGER DEFAULT 200 NOT NULL",
    "campaign ADD COLUMN least_page_ms INTEGER DEFAULT 300 NOT NULL",
    "campaign ADD COLUMN least_picture_ms INTEGER DEFAULT 50 NOT NULL",
    "campaign ADD COLUMN asks_again BOOLEAN DEFAULT true NOT NULL",
    "answer ADD COLUMN is_hasty BOOLEAN DEFAULT false NOT NULL",
    "participant ADD COLUMN paused_for VARCHAR(32) CONSTRAINT ck_participant_pausedfor_known "
    "CHECK (paused_for IN ('known-pictures', 'looking', 'haste', 'admin'))",
    "participant ADD COLUMN is_vouched_for BOOLEAN DEFAULT false NOT NULL",
    "participant ADD COLUMN asked_again INTEGER",
)


def upgrade() -> None:
    """Apply."""
    for column in COLUMNS:
        op.execute("ALTER TABLE " + column)
    op.drop_column("campaign", "gold_feedback")  # a known picture that tells is known to be one
    op.add_column("kept_figures", sa.Column("claims", sa.JSON(), nullable=True))
    op.create_index(
        "ix_answer_hasty",
        "answer",
        ["question_id"],
        unique=False,
        sqlite_where=sa.text("is_hasty"),
        postgresql_where=sa.text("is_hasty"),
    )
    # Who is paused already stays so, and nothing of theirs is asked again behind the admin's back.
    op.execute(
        "UPDATE participant SET asked_again = 0, "
        "paused_for = CASE WHEN paused_by_id IS NULL THEN 'known-pictures' ELSE 'admin' END "
        "WHERE paused_at IS NOT NULL"
    )


def downgrade() -> None:
    """Revert."""
    op.execute("ALTER TABLE campaign ADD COLUMN gold_feedback BOOLEAN DEFAULT false NOT NULL")
    op.drop_index("ix_answer_hasty", table_name="answer")
    op.drop_column("kept_figures", "claims")
    for table_name, names in (
        ("participant", ("paused_for", "is_vouched_for", "asked_again")),
        ("answer", ("is_hasty",)),
        ("campaign", ("least_card_ms", "least_page_ms", "least_picture_ms", "asks_again")),
    ):
        for name in names:
            op.drop_column(table_name, name)
