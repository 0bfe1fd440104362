"""Add indexes of what several people are asked and of what nobody could tell.

Revision: 0009, after 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

INDEXES = (
    ("ix_question_several", "question", ["campaign_id"], "slots > 1"),
    ("ix_answer_unsure", "answer", ["question_id"], "value = 'unsure' AND superseded_at IS NULL"),
)


def upgrade() -> None:
    """Apply."""
    for name, table, columns, where in INDEXES:
        op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def downgrade() -> None:
    """Revert."""
    for name, table, _, _ in reversed(INDEXES):
        op.drop_index(name, table)
