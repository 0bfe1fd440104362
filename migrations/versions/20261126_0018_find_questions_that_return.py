"""Find first questions and those that return to another person each by an index of their own.

Revision: 0018, after 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

Indexes = tuple[tuple[str, list[str], str], ...]
BEFORE: Indexes = (
    ("ix_question_waiting", ["campaign_id", "rank"], "is_waiting"),
    ("ix_question_several", ["campaign_id"], "slots > 1"),
)
AFTER: Indexes = (
    ("ix_question_first", ["campaign_id", "rank"], "is_waiting AND slots <= least"),
    ("ix_question_returning", ["campaign_id", "candidate_class", "rank"], "is_waiting AND slots > least"),
    ("ix_question_several", ["campaign_id", "candidate_class"], "slots > 1"),
)


def upgrade() -> None:
    """Apply."""
    _replace(BEFORE, AFTER)


def downgrade() -> None:
    """Revert."""
    _replace(AFTER, BEFORE)


def _replace(old: Indexes, new: Indexes) -> None:
    for name, _, _ in old:
        op.drop_index(name, "question")
    for name, columns, where in new:
        op.create_index(
            name, "question", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where)
        )
