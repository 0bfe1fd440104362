"""Keep apart by which link a worker answers: so far each one's last link had all their answers.

Revision: 0067, after 0066
"""

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0067"
down_revision = "0066"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    visit = op.create_table(
        "worker_visit",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("link_id", sa.Uuid(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["link_id"],
            ["worker_link.id"],
            name=op.f("fk_worker_visit_link_id_worker_link"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_worker_visit_user_id_user"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker_visit")),
    )
    op.create_index(op.f("ix_worker_visit_link_id"), "worker_visit", ["link_id"])
    op.create_index(op.f("ix_worker_visit_user_id"), "worker_visit", ["user_id"])
    op.create_index(
        "uq_worker_visit_now",
        "worker_visit",
        ["user_id"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    worker = sa.table("outside_worker", sa.column("user_id", sa.Uuid()), sa.column("link_id", sa.Uuid()))
    rows = op.get_bind().execute(sa.select(worker.c.user_id, worker.c.link_id)).all()
    if rows:
        op.bulk_insert(
            visit, [{"id": uuid4(), "user_id": row.user_id, "link_id": row.link_id} for row in rows]
        )


def downgrade() -> None:
    """Revert."""
    op.drop_table("worker_visit")
