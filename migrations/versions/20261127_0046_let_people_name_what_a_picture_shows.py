"""After a no to a model's prediction people may name what the picture shows instead.

Campaigns that are there do not ask for it.

Revision: 0046, after 0045
"""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column(
        "campaign", sa.Column("asks_which", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.create_table(
        "naming",
        sa.Column(
            "answer_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("class_", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["answer_id"], ["answer.id"], name=op.f("fk_naming_answer_id_answer"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("answer_id", name=op.f("pk_naming")),
    )


def downgrade() -> None:
    """Revert. What people named is lost; their answers stay."""
    op.drop_table("naming")
    op.drop_column("campaign", "asks_which")
