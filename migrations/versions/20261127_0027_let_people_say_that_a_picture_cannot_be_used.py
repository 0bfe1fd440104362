"""Let people say that a picture cannot be used, and admins keep it or leave it out.

Revision: 0027, after 0024
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BEFORE = "('yes', 'no', 'unsure')"
AFTER = "('yes', 'no', 'unsure', 'unusable')"
TABLES = ("answer", "decision", "imported_answer")
INDEXES = (
    ("ix_answer_unusable", "answer", ["question_id"], "value = 'unusable' AND superseded_at IS NULL"),
    ("ix_question_set_aside", "question", ["campaign_id", "example_id"], "is_set_aside"),
)


def upgrade() -> None:
    """Apply."""
    _allow(BEFORE, AFTER)
    for table in ("tally", "label_import"):
        op.add_column(table, sa.Column("unusable", sa.Integer(), nullable=False, server_default="0"))
    op.add_column(
        "question", sa.Column("is_set_aside", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    for name, table, columns, where in INDEXES:
        op.create_index(
            name, table, columns, unique=False, sqlite_where=sa.text(where), postgresql_where=sa.text(where)
        )
    op.create_table(
        "picture_review",
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("example_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("is_kept", sa.Boolean(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("reviewed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_picture_review_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
            name=op.f("fk_picture_review_example_id_example"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_picture_review_user_id_user"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("campaign_id", "example_id", name=op.f("pk_picture_review")),
    )


def downgrade() -> None:
    """Revert. "Cannot be used" becomes "can't tell"; what was set aside makes labels again."""
    op.drop_table("picture_review")
    for name, table, _, _ in INDEXES:
        op.drop_index(name, table_name=table)
    op.drop_column("question", "is_set_aside")
    for table in ("tally", "label_import"):
        op.execute(f"UPDATE {table} SET unsure = unsure + unusable WHERE unusable > 0")
        op.drop_column(table, "unusable")
    for table in TABLES:
        op.execute(f"UPDATE {table} SET value = 'unsure' WHERE value = 'unusable'")
    _allow(AFTER, BEFORE)


def _allow(before: str, after: str) -> None:
    """Let the columns of answers hold these values in place of those."""
    if op.get_bind().dialect.name == "postgresql":
        for table in TABLES:
            op.drop_constraint("answervalue_known", table, type_="check")
            op.create_check_constraint("answervalue_known", table, f"value IN {after}")
        return
    # SQLite changes no constraint, and copying a table of millions of answers would take minutes. Its manual
    # has this way for changes that no row notices: https://www.sqlite.org/lang_altertable.html, section 7.
    connection = op.get_bind()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    for table in TABLES:
        changed = connection.exec_driver_sql(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ? "
            "AND instr(sql, ?)",
            (before, after, table, before),
        )
        assert changed.rowcount == 1, table
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
