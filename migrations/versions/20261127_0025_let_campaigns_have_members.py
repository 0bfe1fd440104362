"""Campaigns that admit members alone, groups of people, reviewers, and people who can be erased.

Campaigns that are there admit everybody. The journal learns of these acts; of its lines a person's name and
address can be taken out, and nothing else.

Revision: 0025, after 0024
"""

import re
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

ACTIONS = (
    "admission-changed",
    "member-added",
    "member-removed",
    "group-made",
    "group-changed",
    "group-deleted",
    "person-renamed",
    "person-erased",
    "worker-link-made",
    "worker-link-ended",
)
KEPT = "BEGIN SELECT RAISE(ABORT, 'the journal is only written to'); END"
# What erasing somebody may do: take out their address, and their name where a line has one.
SQLITE_KEEP = (
    """CREATE TRIGGER journal_entry_keep_UPDATE BEFORE UPDATE ON journal_entry
WHEN NEW.id IS NOT OLD.id OR NEW.at IS NOT OLD.at OR NEW.action IS NOT OLD.action
  OR NEW.by_id IS NOT OLD.by_id OR NEW.campaign_id IS NOT OLD.campaign_id
  OR (NEW.address IS NOT OLD.address AND NEW.address <> '')
  OR (NEW.details IS NOT OLD.details
      AND coalesce(json_extract(OLD.details, '$.person'), json_extract(OLD.details, '$.for'),
        json_extract(OLD.details, '$.token')) IS NULL)
"""
    + KEPT
)
SQLITE_KEEP_ALL = f"CREATE TRIGGER journal_entry_keep_UPDATE BEFORE UPDATE ON journal_entry {KEPT}"
POSTGRESQL_KEEP = """CREATE OR REPLACE FUNCTION journal_keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF TG_OP = 'DELETE' OR NEW.id <> OLD.id OR NEW.at <> OLD.at OR NEW.action <> OLD.action
  OR NEW.by_id IS DISTINCT FROM OLD.by_id OR NEW.campaign_id IS DISTINCT FROM OLD.campaign_id
  OR (NEW.address <> OLD.address AND NEW.address <> '')
  OR (NEW.details::text <> OLD.details::text
      AND coalesce(OLD.details ->> 'person', OLD.details ->> 'for', OLD.details ->> 'token') IS NULL)
THEN RAISE EXCEPTION 'the journal is only written to'; END IF;
RETURN NEW; END $$"""
POSTGRESQL_KEEP_ALL = """CREATE OR REPLACE FUNCTION journal_keep() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the journal is only written to'; END $$"""


def upgrade() -> None:
    """Apply."""
    for table in ("user", "invitation"):
        _allow(table, "role", ["reviewer"])
    op.add_column("user", sa.Column("is_outside", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("user", sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True))
    # Written out: Alembic adds a column's check as a statement of its own, which SQLite does not have.
    op.execute(
        "ALTER TABLE campaign ADD COLUMN admits VARCHAR(32) DEFAULT 'everybody' NOT NULL "
        "CONSTRAINT ck_campaign_admits_known CHECK (admits IN ('everybody', 'invited'))"
    )
    op.create_table(
        "person_group",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person_group")),
        sa.UniqueConstraint("name", name=op.f("uq_person_group_name")),
    )
    _pairs("group_person", ("group_id", "person_group"), ("user_id", "user"))
    _pairs("campaign_member", ("campaign_id", "campaign"), ("user_id", "user"))
    _pairs("campaign_group", ("campaign_id", "campaign"), ("group_id", "person_group"))
    _allow("journal_entry", "action", ACTIONS)
    _keep_journal(SQLITE_KEEP, POSTGRESQL_KEEP)


def downgrade() -> None:
    """Revert. Reviewers become annotators, every campaign admits everybody, and groups are lost."""
    _forget_actions()
    _allow("journal_entry", "action", (), removed=ACTIONS)
    _keep_journal(SQLITE_KEEP_ALL, POSTGRESQL_KEEP_ALL)
    for table in ("campaign_group", "campaign_member", "group_person", "person_group"):
        op.drop_table(table)
    op.drop_column("campaign", "admits")
    op.drop_column("user", "erased_at")
    op.drop_column("user", "is_outside")
    for table in ("user", "invitation"):
        op.execute(f"UPDATE \"{table}\" SET role = 'annotator' WHERE role = 'reviewer'")
        _allow(table, "role", (), removed=["reviewer"])


def _pairs(name: str, *columns: tuple[str, str]) -> None:
    """A table of pairs of rows, found from both sides."""
    op.create_table(
        name,
        *(sa.Column(column, sa.Uuid(), nullable=False) for column, _ in columns),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{table}.id"], name=op.f(f"fk_{name}_{column}_{table}"), ondelete="CASCADE"
            )
            for column, table in columns
        ),
        sa.PrimaryKeyConstraint(*(column for column, _ in columns), name=op.f(f"pk_{name}")),
    )
    second = columns[1][0]
    op.create_index(op.f(f"ix_{name}_{second}"), name, [second], unique=False)


def _allow(table: str, column: str, values: Sequence[str], *, removed: Sequence[str] = ()) -> None:
    """Let a column's check take more values, or fewer, than it does now."""
    name, bind = f"ck_{table}_{column}_known", op.get_bind()
    if bind.dialect.name == "postgresql":
        text = sa.text(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint "
            f"WHERE conname = '{name}' AND conrelid = CAST('\"{table}\"' AS regclass)"
        )
        allowed = _check(column, re.findall(r"'([a-z-]+)'", bind.scalar(text)), values, removed)
        op.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT {name}, ADD CONSTRAINT {name} CHECK ({allowed})')
        return
    # SQLite changes no check: a table that is made by the same statement, but for this, takes the rows.
    parts = f"SELECT type, sql FROM sqlite_master WHERE tbl_name = '{table}' AND sql IS NOT NULL"
    made = bind.execute(sa.text(parts)).all()
    [statement] = [sql for kind, sql in made if kind == "table"]
    before = re.search(rf"(?<=CONSTRAINT {name} CHECK \()[^()]*\([^()]*\)", statement)
    assert before is not None
    allowed = _check(column, re.findall(r"'([a-z-]+)'", before[0]), values, removed)
    statement = statement.replace(before[0], allowed)
    op.execute(re.sub(rf'^CREATE TABLE "?{table}"?', f"CREATE TABLE new_{table}", statement))
    op.execute(f'INSERT INTO new_{table} SELECT * FROM "{table}"')
    op.execute(f'DROP TABLE "{table}"')
    op.execute(f'ALTER TABLE new_{table} RENAME TO "{table}"')
    for kind, sql in made:
        if kind != "table":
            op.execute(sql.replace(":", "\\:"))


def _check(column: str, now: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> str:
    values = [value for value in (*now, *added) if value not in removed]
    return "{} IN ({})".format(column, ", ".join(f"'{value}'" for value in dict.fromkeys(values)))


def _keep_journal(sqlite: str, postgresql: str) -> None:
    """Say which changes the database lets through."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(postgresql)
        return
    op.execute("DROP TRIGGER journal_entry_keep_UPDATE")
    op.execute(sqlite)


def _forget_actions() -> None:
    """Delete the lines that an earlier version does not know."""
    unknown = "DELETE FROM journal_entry WHERE action IN ({})".format(
        ", ".join(f"'{action}'" for action in ACTIONS)
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE journal_entry DISABLE TRIGGER journal_entry_keep")
        op.execute(unknown)
        op.execute("ALTER TABLE journal_entry ENABLE TRIGGER journal_entry_keep")
        return
    op.execute("DROP TRIGGER journal_entry_keep_DELETE")
    op.execute(unknown)
    op.execute(f"CREATE TRIGGER journal_entry_keep_DELETE BEFORE DELETE ON journal_entry {KEPT}")
