"""Keep where predictions of whole datasets stand, and where their files lie.

Revision: 0037, after 0036
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

STATES = ("queued", "running", "ready", "failed")


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "prediction",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("dataset_id", sa.Uuid(), nullable=True),
        sa.Column("dataset_name", sa.String(length=120), nullable=False),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                *STATES, name="predictionstate_known", native_enum=False, create_constraint=True, length=32
            ),
            nullable=False,
        ),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("progress_total", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("key", sa.String(length=300), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=True),
        sa.Column("size_bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("created_by_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim_number", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_prediction_model_id_model"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_prediction_dataset_id_dataset"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["created_by_id"], ["user.id"], name=op.f("fk_prediction_created_by_id_user"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prediction")),
    )
    op.create_index(op.f("ix_prediction_dataset_id"), "prediction", ["dataset_id"])
    op.create_index("ix_prediction_model_id_created_at", "prediction", ["model_id", "created_at"])


def downgrade() -> None:
    """Revert. The files of predictions stay among those of their models."""
    op.drop_table("prediction")
