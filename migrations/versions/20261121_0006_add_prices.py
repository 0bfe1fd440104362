"""Add what a campaign's answers cost.

Revision: 0006, after 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Written out for the reason that 0003 gives.
COLUMNS = (
    "price {double} CONSTRAINT ck_campaign_price_positive CHECK (price > 0)",
    "price_per VARCHAR(32) DEFAULT 'answer' NOT NULL "
    "CONSTRAINT ck_campaign_priceper_known CHECK (price_per IN ('answer', 'hour'))",
)


def upgrade() -> None:
    """Apply."""
    double = sa.Double().compile(op.get_bind().dialect)
    for column in COLUMNS:
        op.execute(f"ALTER TABLE campaign ADD COLUMN {column.format(double=double)}")


def downgrade() -> None:
    """Revert."""
    for column in ("price_per", "price"):
        op.drop_column("campaign", column)
