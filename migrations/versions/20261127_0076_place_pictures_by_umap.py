"""Keep where UMAP places the pictures of a model's map, for those who ask for it.

Revision: 0076, after 0074
"""

import sqlalchemy as sa
from alembic import op

revision = "0076"
down_revision = "0074"
branch_labels = None
depends_on = None

STATES = ("queued", "running", "ready", "failed")


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "umap",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(*STATES, name="umapstate_known", native_enum=False, create_constraint=True, length=32),
            nullable=False,
        ),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("key", sa.String(length=300), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=True),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim_number", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_umap_model_id_model"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_umap")),
        sa.UniqueConstraint("model_id", name=op.f("uq_umap_model_id")),
    )


def downgrade() -> None:
    """Revert. The files stay among those of their models."""
    op.drop_table("umap")
