"""Tell how many pictures a prediction of a dataset refused.

Revision: 0050, after 0049
"""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Of predictions that are there nobody counted them."""
    op.add_column("prediction", sa.Column("refused", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Revert. The counts are lost; the files still say which."""
    op.drop_column("prediction", "refused")
