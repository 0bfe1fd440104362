"""Know since when a question is held, and until when somebody's answers used up the time.

Nullable: of what is held while this runs nothing is known, and then the browser's word counts.

Revision: 0066, after 0065
"""

import sqlalchemy as sa
from alembic import op

revision = "0066"
down_revision = "0065"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("lease", sa.Column("held_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("tally", sa.Column("looked_until", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Revert."""
    op.drop_column("tally", "looked_until")
    op.drop_column("lease", "held_since")
