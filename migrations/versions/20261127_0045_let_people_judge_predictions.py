"""Evaluations: campaigns in which people judge a model's predictions, their draw, and a line in the journal.

Campaigns that are there collect labels.

Revision: 0045, after 0044
"""

import re
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

ACTIONS = ("evaluation-made",)
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REFERENCES = (
    ("run", "run"),
    ("model", "model"),
    ("campaign", "campaign"),
    ("dataset", "dataset"),
    ("created_by", "user"),
)
NAME = "ck_journal_entry_action_known"
KEPT = "BEGIN SELECT RAISE(ABORT, 'the journal is only written to'); END"


def upgrade() -> None:
    """Apply."""
    # Written out: Alembic adds a column's check as a statement of its own, which SQLite does not have.
    op.execute(
        "ALTER TABLE campaign ADD COLUMN kind VARCHAR(32) DEFAULT 'labelling' NOT NULL "
        "CONSTRAINT ck_campaign_campaignkind_known CHECK (kind IN ('labelling', 'evaluation'))"
    )
    op.add_column("campaign", sa.Column("sample_seed", sa.String(64), nullable=True))
    op.add_column("campaign", sa.Column("sample_size", sa.Integer(), nullable=True))
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=True),
        sa.Column("dataset_id", sa.Uuid(), nullable=False),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column("class_names", sa.JSON(), nullable=False),
        sa.Column("predictions_digest", sa.String(64), nullable=False),
        sa.Column("half_width", sa.Double(), nullable=False),
        sa.Column("population", sa.Integer(), nullable=False),
        sa.Column("sample_seed", sa.String(64), nullable=False),
        sa.Column("sample_size", sa.Integer(), nullable=False),
        sa.Column("known_count", sa.Integer(), nullable=False),
        sa.Column("drawn_count", sa.Integer(), nullable=False),
        sa.Column("created_by_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "half_width > 0 AND half_width < 1", name=op.f("ck_evaluation_half_width_in_range")
        ),
        sa.CheckConstraint(
            "sample_size BETWEEN 1 AND population", name=op.f("ck_evaluation_sample_in_range")
        ),
        *(
            sa.ForeignKeyConstraint(
                [f"{column}_id"],
                [f"{table}.id"],
                name=op.f(f"fk_evaluation_{column}_id_{table}"),
                ondelete="CASCADE" if column == "campaign" else "RESTRICT",
            )
            for column, table in REFERENCES
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation")),
        sa.UniqueConstraint("campaign_id", name=op.f("uq_evaluation_campaign_id")),
    )
    for column in ("run_id", "model_id", "dataset_id"):
        op.create_index(op.f(f"ix_evaluation_{column}"), "evaluation", [column], unique=False)
    op.create_table(
        "evaluated_image",
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("example_id", BIG, autoincrement=False, nullable=False),
        sa.Column("class_", sa.Integer(), nullable=False),
        sa.Column("question_id", BIG, nullable=True),
        sa.Column("is_known", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluation.id"],
            name=op.f("fk_evaluated_image_evaluation_id_evaluation"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
            name=op.f("fk_evaluated_image_example_id_example"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["question.id"],
            name=op.f("fk_evaluated_image_question_id_question"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "example_id", name=op.f("pk_evaluated_image")),
    )
    for column in ("example_id", "question_id"):
        op.create_index(op.f(f"ix_evaluated_image_{column}"), "evaluated_image", [column], unique=False)
    _allow(added=ACTIONS)


def downgrade() -> None:
    """Revert. Evaluations are lost, and their lines in the journal; their answers stay."""
    op.drop_table("evaluated_image")
    op.drop_table("evaluation")
    for column in ("sample_size", "sample_seed", "kind"):
        op.drop_column("campaign", column)
    unknown = "DELETE FROM journal_entry WHERE action IN ({})".format(
        ", ".join(f"'{action}'" for action in ACTIONS)
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE journal_entry DISABLE TRIGGER journal_entry_keep")
        op.execute(unknown)
        op.execute("ALTER TABLE journal_entry ENABLE TRIGGER journal_entry_keep")
    else:
        op.execute("DROP TRIGGER journal_entry_keep_DELETE")
        op.execute(unknown)
        op.execute(f"CREATE TRIGGER journal_entry_keep_DELETE BEFORE DELETE ON journal_entry {KEPT}")
    _allow(removed=ACTIONS)


def _allow(*, added: Sequence[str] = (), removed: Sequence[str] = ()) -> None:
    """Let the journal's check take more actions, or fewer, than it does now."""
    bind = op.get_bind()
    if bind.dialect.name == "postgresql":
        told = bind.scalar(
            sa.text(f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = '{NAME}'")
        )
        allowed = _check(told, added, removed)
        op.execute(
            f"ALTER TABLE journal_entry DROP CONSTRAINT {NAME}, ADD CONSTRAINT {NAME} CHECK ({allowed})"
        )
        return
    # SQLite changes no check: a table that is made by the same statement, but for this, takes the rows.
    parts = "SELECT type, sql FROM sqlite_master WHERE tbl_name = 'journal_entry' AND sql IS NOT NULL"
    made = bind.execute(sa.text(parts)).all()
    [statement] = [sql for kind, sql in made if kind == "table"]
    before = re.search(rf"(?<=CONSTRAINT {NAME} CHECK \()[^()]*\([^()]*\)", statement)
    assert before is not None
    statement = statement.replace(before[0], _check(before[0], added, removed))
    op.execute(re.sub(r'^CREATE TABLE "?journal_entry"?', "CREATE TABLE new_journal_entry", statement))
    op.execute("INSERT INTO new_journal_entry SELECT * FROM journal_entry")
    op.execute("DROP TABLE journal_entry")
    op.execute("ALTER TABLE new_journal_entry RENAME TO journal_entry")
    for kind, sql in made:
        if kind != "table":
            op.execute(sql.replace(":", "\\:"))


def _check(now: str, added: Sequence[str], removed: Sequence[str]) -> str:
    values = [value for value in (*re.findall(r"'([a-z-]+)'", now), *added) if value not in removed]
    return "action IN ({})".format(", ".join(f"'{value}'" for value in dict.fromkeys(values)))
