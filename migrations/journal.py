"""Which actions the journal's check takes: what migrations that add some have in common."""

import re
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

NAME = "ck_journal_entry_action_known"
KEPT = "BEGIN SELECT RAISE(ABORT, 'the journal is only written to'); END"


def allow(actions: Sequence[str]) -> None:
    """Let the journal tell of these, too."""
    _allow(added=actions)


def forget(actions: Sequence[str]) -> None:
    """Let it tell of these no more. Lines that an earlier version does not know are lost."""
    unknown = "DELETE FROM journal_entry WHERE action IN ({})".format(
        ", ".join(f"'{action}'" for action in actions)
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE journal_entry DISABLE TRIGGER journal_entry_keep")
        op.execute(unknown)
        op.execute("ALTER TABLE journal_entry ENABLE TRIGGER journal_entry_keep")
    else:
        op.execute("DROP TRIGGER journal_entry_keep_DELETE")
        op.execute(unknown)
        op.execute(f"CREATE TRIGGER journal_entry_keep_DELETE BEFORE DELETE ON journal_entry {KEPT}")
    _allow(removed=actions)


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
