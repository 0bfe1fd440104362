"""A further round of a campaign may draw its classes by what a model believes.

Drawings that are there are uniform.

Revision: 0056, after 0055
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None

COLUMNS: dict[str, sa.types.TypeEngine[Any]] = {
    "model_id": sa.Uuid(),
    "model_name": sa.String(160),
    "floor_percent": sa.Integer(),
    "round": sa.Integer(),
    "beliefs_digest": sa.String(64),
}


def upgrade() -> None:
    """Apply."""
    for name, kind in COLUMNS.items():
        op.add_column("campaign_drawing", sa.Column(name, kind, nullable=True))
    op.create_table(
        "campaign_drawing_beliefs",
        sa.Column("drawing_id", sa.Uuid(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["drawing_id"],
            ["campaign_drawing.id"],
            name=op.f("fk_campaign_drawing_beliefs_drawing_id_campaign_drawing"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("drawing_id", name=op.f("pk_campaign_drawing_beliefs")),
    )


def downgrade() -> None:
    """Revert. What was asked by a belief stays, and nobody can recompute it."""
    op.drop_table("campaign_drawing_beliefs")
    for name in reversed(COLUMNS):
        op.drop_column("campaign_drawing", name)
