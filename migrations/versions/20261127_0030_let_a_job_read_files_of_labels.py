"""Let a job read files of labels: where the import of each stands, and who holds it.

Imports that are there were read before they were stored: they are ready.

Revision: 0030, after 0024
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

# Written out, because Alembic adds a column's check as a statement of its own, which SQLite does not have.
COLUMNS = (
    "state VARCHAR(32) DEFAULT 'ready' NOT NULL CONSTRAINT ck_label_import_importstate_known "
    "CHECK (state IN ('importing', 'ready', 'failed'))",
    "failure TEXT",
    "faults JSON DEFAULT '[]' NOT NULL",
    "upload JSON",
    "claim_number INTEGER DEFAULT 0 NOT NULL",
    "attempts INTEGER DEFAULT 0 NOT NULL",
    "claimed_by VARCHAR",
)


def upgrade() -> None:
    """Apply."""
    for column in COLUMNS:
        op.execute(f"ALTER TABLE label_import ADD COLUMN {column}")
    op.add_column("label_import", sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Revert. Imports that are not ready are lost with their reasons."""
    op.execute(
        "DELETE FROM imported_answer WHERE import_id IN (SELECT id FROM label_import WHERE state <> 'ready')"
    )
    op.execute("DELETE FROM label_import WHERE state <> 'ready'")
    for column in reversed(COLUMNS):
        op.drop_column("label_import", column.split()[0])
    op.drop_column("label_import", "claimed_until")
