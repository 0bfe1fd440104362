"""Count the second answers to a first yes, which say how often a yes is confirmed.

Revision: 0077, after 0076
"""

import sqlalchemy as sa
from alembic import op

revision = "0077"
down_revision = "0076"
branch_labels = None
depends_on = None

# Who has the first two slots of a question says which of its answers came first.
_SECONDS = sa.text("""
    SELECT question.campaign_id, holds.user_id, question.candidate_class,
        sum(CASE WHEN second.value = 'yes' THEN 1 ELSE 0 END) AS confirmed,
        sum(CASE WHEN second.value = 'no' THEN 1 ELSE 0 END) AS denied
    FROM question
    JOIN lease AS held ON held.question_id = question.id AND held.slot = 0
    JOIN answer AS first ON first.question_id = question.id AND first.user_id = held.user_id
        AND first.superseded_at IS NULL AND first.value = 'yes' AND NOT first.is_hasty
    JOIN lease AS holds ON holds.question_id = question.id AND holds.slot = 1
    JOIN answer AS second ON second.question_id = question.id AND second.user_id = holds.user_id
        AND second.superseded_at IS NULL AND NOT second.is_hasty
    WHERE question.slots > 1 AND question.purpose <> 'gold'
    GROUP BY question.campaign_id, holds.user_id, question.candidate_class""")
_SET = sa.text("""
    UPDATE tally SET confirmed = :confirmed, denied = :denied
    WHERE campaign_id = :campaign_id AND user_id = :user_id AND candidate_class = :candidate_class""")


def upgrade() -> None:
    """Apply."""
    for name in ("confirmed", "denied"):
        op.add_column("tally", sa.Column(name, sa.Integer(), server_default="0", nullable=False))
    bind = op.get_bind()
    if rows := [dict(row) for row in bind.execute(_SECONDS).mappings()]:
        bind.execute(_SET, rows)


def downgrade() -> None:
    """Revert."""
    for name in ("denied", "confirmed"):
        op.drop_column("tally", name)
