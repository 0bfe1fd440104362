"""Evaluations: campaigns in which people judge a model's predictions, their draw, and a line in the journal.

Campaigns that are there collect labels.

Revision: 0045, after 0044
"""

import sqlalchemy as sa
from alembic import op

from migrations import journal

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

ACTIONS = ("evaluation-made",)
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REFERENCES = (
    ("run", "run"),
    ("model", "model"),
    ("campaign", "campaign"),
    ("dataset", "dataset"),
    ("created_by", "user"),
)


def upgrade() -> None:
    """Apply."""
    # Written out: Alembic adds a column's check as a statement of its own, which SQLite does not have.
    op.execute(
        "ALTER TABLE campaign ADD COLUMN kind VARCHAR(32) DEFAULT 'labelling' NOT NULL "
        "CONSTRAINT ck_campaign_campaignkind_known CHECK (kind IN ('labelling', 'evaluation'))"
    )
    op.add_column("campaign", sa.Column("sample_seed", sa.String(64), nullable=True))
    op.add_column("campaign", sa.Column("sample_size", sa.Integer(), nullable=True))
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=True),
        sa.Column("dataset_id", sa.Uuid(), nullable=False),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column("class_names", sa.JSON(), nullable=False),
        sa.Column("predictions_digest", sa.String(64), nullable=False),
        sa.Column("half_width", sa.Double(), nullable=False),
        sa.Column("population", sa.Integer(), nullable=False),
        sa.Column("sample_seed", sa.String(64), nullable=False),
        sa.Column("sample_size", sa.Integer(), nullable=False),
        sa.Column("known_count", sa.Integer(), nullable=False),
        sa.Column("drawn_count", sa.Integer(), nullable=False),
        sa.Column("created_by_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "half_width > 0 AND half_width < 1", name=op.f("ck_evaluation_half_width_in_range")
        ),
        sa.CheckConstraint(
            "sample_size BETWEEN 1 AND population", name=op.f("ck_evaluation_sample_in_range")
        ),
        *(
            sa.ForeignKeyConstraint(
                [f"{column}_id"],
                [f"{table}.id"],
                name=op.f(f"fk_evaluation_{column}_id_{table}"),
                ondelete="CASCADE" if column == "campaign" else "RESTRICT",
            )
            for column, table in REFERENCES
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation")),
        sa.UniqueConstraint("campaign_id", name=op.f("uq_evaluation_campaign_id")),
    )
    for column in ("run_id", "model_id", "dataset_id"):
        op.create_index(op.f(f"ix_evaluation_{column}"), "evaluation", [column], unique=False)
    op.create_table(
        "evaluated_image",
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("example_id", BIG, autoincrement=False, nullable=False),
        sa.Column("class_", sa.Integer(), nullable=False),
        sa.Column("question_id", BIG, nullable=True),
        sa.Column("is_known", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluation.id"],
            name=op.f("fk_evaluated_image_evaluation_id_evaluation"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
            name=op.f("fk_evaluated_image_example_id_example"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["question.id"],
            name=op.f("fk_evaluated_image_question_id_question"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "example_id", name=op.f("pk_evaluated_image")),
    )
    for column in ("example_id", "question_id"):
        op.create_index(op.f(f"ix_evaluated_image_{column}"), "evaluated_image", [column], unique=False)
    journal.allow(ACTIONS)


def downgrade() -> None:
    """Revert, while no campaign judges predictions: without its kind it would collect labels.

    Evaluations that asked nobody are lost, and lines in the journal.
    """
    judging = op.get_bind().scalar(sa.text("SELECT count(*) FROM campaign WHERE kind = 'evaluation'"))
    if judging:
        campaigns = "1 campaign judges" if judging == 1 else f"{judging} campaigns judge"
        raise RuntimeError(
            f"{campaigns} a model's predictions. Version 0044 would take what people answered there for "
            "labels, and train on it. Close and delete these campaigns first, or stay at this version."
        )
    op.drop_table("evaluated_image")
    op.drop_table("evaluation")
    for column in ("sample_size", "sample_seed", "kind"):
        op.drop_column("campaign", column)
    journal.forget(ACTIONS)
