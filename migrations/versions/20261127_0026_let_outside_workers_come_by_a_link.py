"""Links by which outside workers come to a campaign, and who came.

Revision: 0026, after 0025
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "worker_link",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("note", sa.String(120), nullable=False),
        sa.Column("answers_needed", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(40), nullable=False),
        sa.Column("max_workers", sa.Integer(), nullable=False),
        sa.Column("workers", sa.Integer(), nullable=False),
        sa.Column("created_by_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("answers_needed >= 1", name=op.f("ck_worker_link_answers_needed_positive")),
        sa.CheckConstraint("max_workers >= 1", name=op.f("ck_worker_link_max_workers_positive")),
        sa.CheckConstraint("workers <= max_workers", name=op.f("ck_worker_link_workers_in_range")),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_worker_link_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["created_by_id"],
            ["user.id"],
            name=op.f("fk_worker_link_created_by_id_user"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker_link")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_worker_link_token_hash")),
    )
    op.create_index(op.f("ix_worker_link_campaign_id"), "worker_link", ["campaign_id"], unique=False)
    op.create_table(
        "outside_worker",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("link_id", sa.Uuid(), nullable=False),
        sa.Column("worker_id", sa.String(100), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_outside_worker_user_id_user"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_outside_worker_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["link_id"],
            ["worker_link.id"],
            name=op.f("fk_outside_worker_link_id_worker_link"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_outside_worker")),
        sa.UniqueConstraint("campaign_id", "worker_id", name=op.f("uq_outside_worker_campaign_id_worker_id")),
    )
    op.create_index(op.f("ix_outside_worker_link_id"), "outside_worker", ["link_id"], unique=False)


def downgrade() -> None:
    """Revert. The links end; whoever came by them keeps an account, without a way in."""
    op.drop_table("outside_worker")
    op.drop_table("worker_link")
