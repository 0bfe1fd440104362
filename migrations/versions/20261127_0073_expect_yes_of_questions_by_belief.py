"""Expect as many yes of a round by a model's belief as its questions say.

Revision: 0073, after 0071
"""

import sqlalchemy as sa
from alembic import op

revision = "0073"
down_revision = "0071"
branch_labels = None
depends_on = None

# Where none of a campaign's rounds was drawn by a belief, the sums are those of no rows.
_COUNT = """UPDATE campaign SET believed_count = (
    SELECT coalesce(sum(question_count), 0) FROM campaign_drawing
    WHERE campaign_id = campaign.id AND drawn_at IS NOT NULL AND model_id IS NOT NULL)"""
_EXPECT = """UPDATE campaign SET believed_yes = (
    SELECT coalesce(sum(question.probability), 0) FROM question
    JOIN campaign_drawing AS drawing
      ON drawing.campaign_id = question.campaign_id AND drawing.number = question.drawing
    WHERE question.campaign_id = campaign.id AND question.purpose = 'labelling'
      AND drawing.drawn_at IS NOT NULL AND drawing.model_id IS NOT NULL)
    WHERE believed_count > 0"""


def upgrade() -> None:
    """Apply."""
    op.add_column("campaign", sa.Column("believed_count", sa.Integer(), server_default="0", nullable=False))
    op.add_column("campaign", sa.Column("believed_yes", sa.Double(), server_default="0", nullable=False))
    op.execute(_COUNT)
    op.execute(_EXPECT)


def downgrade() -> None:
    """Revert."""
    op.drop_column("campaign", "believed_yes")
    op.drop_column("campaign", "believed_count")
