"""Give models names, versions and aliases; let models, campaigns and datasets be archived, and runs go.

Models that are there become versions of their campaign's name, in the order in which they were published.
What uses the disk is kept, too, once somebody has looked.

Revision: 0035, after 0034
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ORIGIN = "FROM model JOIN trial ON trial.id = model.trial_id JOIN run ON run.id = trial.run_id"


def upgrade() -> None:
    """Apply."""
    op.add_column("model", sa.Column("tensors_digest", sa.String(64), nullable=True))
    op.create_index(op.f("ix_model_tensors_digest"), "model", ["tensors_digest"])
    op.add_column("model", sa.Column("notes", sa.Text(), nullable=False, server_default=""))
    for name in ("model", "campaign", "dataset"):
        op.add_column(name, sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "model_name",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("last_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_name")),
        sa.UniqueConstraint("name", name=op.f("uq_model_name_name")),
    )
    op.create_table(
        "model_version",
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("name_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_model_version_model_id_model"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["name_id"],
            ["model_name.id"],
            name=op.f("fk_model_version_name_id_model_name"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_version")),
        sa.UniqueConstraint("name_id", "number", name=op.f("uq_model_version_name_id_number")),
    )
    op.create_table(
        "model_alias",
        sa.Column("name_id", sa.Uuid(), nullable=False),
        sa.Column("alias", sa.String(40), nullable=False),
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("moved_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["name_id"], ["model_name.id"], name=op.f("fk_model_alias_name_id_model_name"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_model_alias_model_id_model"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("name_id", "alias", name=op.f("pk_model_alias")),
    )
    op.create_index(op.f("ix_model_alias_model_id"), "model_alias", ["model_id"])
    # Without it each question that goes with its campaign would look through all answers.
    op.create_index("ix_answer_question_id", "answer", ["question_id"])
    op.create_table(
        "deleted_run",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("snapshot_digest", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_deleted_run")),
    )
    op.create_table(
        "disk_use",
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("size_bytes", BIG, nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('datasets', 'uploads', 'snapshots', 'models', 'checkpoints', 'logs', 'database', "
            "'other')",
            name=op.f("ck_disk_use_diskkind_known"),
        ),
        sa.PrimaryKeyConstraint("kind", name=op.f("pk_disk_use")),
    )
    op.execute(
        "INSERT INTO model_name (id, name, last_version, created_at) "
        "SELECT campaign.id, campaign.name, count(*), min(model.created_at) "
        f"{ORIGIN} JOIN campaign ON campaign.id = run.campaign_id GROUP BY campaign.id, campaign.name"
    )
    op.execute(
        "INSERT INTO model_version (model_id, name_id, number) SELECT model.id, run.campaign_id, "
        f"row_number() OVER (PARTITION BY run.campaign_id ORDER BY model.created_at, model.id) {ORIGIN}"
    )


def downgrade() -> None:
    """Revert. Names, aliases and notes are lost, and what was archived is shown again."""
    for name in ("disk_use", "deleted_run", "model_alias", "model_version", "model_name"):
        op.drop_table(name)
    op.drop_index("ix_answer_question_id", "answer")
    for name in ("dataset", "campaign", "model"):
        op.drop_column(name, "archived_at")
    op.drop_index(op.f("ix_model_tensors_digest"), "model")
    op.drop_column("model", "notes")
    op.drop_column("model", "tensors_digest")
