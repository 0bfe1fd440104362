"""Tell how many pictures a prediction of a dataset refused.

Revision: 0053, after 0045
"""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Of predictions that are there nobody counted them."""
    op.add_column("prediction", sa.Column("refused", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Revert. The counts are lost; the files still say which."""
    op.drop_column("prediction", "refused")
