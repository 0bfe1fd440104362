"""Tell which question a known picture stands beside, so that it is lost with that one.

Revision: 0053, after 0052
"""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Known pictures that are held now come back whatever becomes of the question beside them."""
    op.add_column(
        "lease", sa.Column("beside_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True)
    )


def downgrade() -> None:
    """Revert."""
    op.drop_column("lease", "beside_id")
