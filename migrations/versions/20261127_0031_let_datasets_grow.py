"""Let datasets grow: each has versions, and runs name the ones that they use.

What is there becomes version 1, and every run used that.

Revision: 0031, after 0024
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

KEPT = (
    *("notes", "faults", "made", "class_names", "channels", "looks", "train_count", "test_count"),
    *("train_per_class", "test_per_class", "digest", "size_bytes", "created_by_id", "created_at"),
)


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "dataset_version",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("dataset_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("first_position", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("upload", sa.JSON(), nullable=True),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("progress_total", sa.Integer(), nullable=True),
        sa.Column("notes", sa.JSON(), nullable=False, server_default="[]"),
        sa.Column("faults", sa.JSON(), nullable=False, server_default="[]"),
        sa.Column("made", sa.String(200), nullable=True),
        sa.Column("class_names", sa.JSON(), nullable=True),
        sa.Column("channels", sa.Integer(), nullable=True),
        sa.Column("looks", sa.String(20), nullable=True),
        sa.Column("train_count", sa.Integer(), nullable=False),
        sa.Column("test_count", sa.Integer(), nullable=False),
        sa.Column("train_per_class", sa.JSON(), nullable=True),
        sa.Column("test_per_class", sa.JSON(), nullable=True),
        sa.Column("digest", sa.String(64), nullable=True),
        sa.Column("size_bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_by_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim_number", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.CheckConstraint(
            "state IN ('importing', 'ready', 'failed')", name=op.f("ck_dataset_version_datasetstate_known")
        ),
        sa.CheckConstraint(
            "(number IS NULL) = (published_at IS NULL)",
            name=op.f("ck_dataset_version_number_once_published"),
        ),
        sa.CheckConstraint(
            "number IS NULL OR state = 'ready'", name=op.f("ck_dataset_version_ready_once_published")
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
            name=op.f("fk_dataset_version_dataset_id_dataset"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["created_by_id"],
            ["user.id"],
            name=op.f("fk_dataset_version_created_by_id_user"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_version")),
        sa.UniqueConstraint("dataset_id", "number", name=op.f("uq_dataset_version_dataset_id_number")),
    )
    kept = ", ".join(KEPT)
    op.execute(
        f"INSERT INTO dataset_version (id, dataset_id, number, first_position, state, progress, "
        f"progress_total, published_at, claim_number, attempts, {kept}) "
        f"SELECT id, id, 1, 0, 'ready', progress, progress_total, created_at, claim_number, 0, {kept} "
        "FROM dataset WHERE state = 'ready'"
    )
    for name in ("source_version", "target_version"):
        op.add_column("run", sa.Column(name, sa.Integer(), nullable=False, server_default="1"))


def downgrade() -> None:
    """Revert. Images that joined later stay where they are, in datasets that know no versions."""
    for name in ("source_version", "target_version"):
        op.drop_column("run", name)
    op.drop_table("dataset_version")
