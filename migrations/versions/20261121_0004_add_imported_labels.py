"""Add labels from elsewhere.

Revision: 0004, after 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "label_import",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("filename", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("yes", sa.Integer(), nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("unsure", sa.Integer(), nullable=False),
        sa.Column("created_by_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_label_import_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["created_by_id"],
            ["user.id"],
            name=op.f("fk_label_import_created_by_id_user"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_label_import")),
        sa.UniqueConstraint("campaign_id", "digest", name=op.f("uq_label_import_campaign_id_digest")),
    )
    op.create_table(
        "imported_answer",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("import_id", sa.Uuid(), nullable=False),
        sa.Column("example_id", BIG_ID, nullable=False),
        sa.Column("candidate_class", sa.Integer(), nullable=False),
        sa.Column(
            "value",
            sa.Enum(
                "yes",
                "no",
                "unsure",
                name="answervalue_known",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.Column("annotator", sa.String(length=120), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
            name=op.f("fk_imported_answer_example_id_example"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["import_id"],
            ["label_import.id"],
            name=op.f("fk_imported_answer_import_id_label_import"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_imported_answer")),
    )
    for column in ("import_id", "example_id"):
        op.create_index(op.f(f"ix_imported_answer_{column}"), "imported_answer", [column], unique=False)


def downgrade() -> None:
    """Revert."""
    op.drop_table("imported_answer")
    op.drop_table("label_import")
