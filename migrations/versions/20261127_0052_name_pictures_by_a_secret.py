"""Name pictures and questions to annotators by a secret that closing a campaign does not reveal.

Campaigns that people may be answering keep the old key, which is their seed: what waits in their browsers
names questions by it. All others get a secret of their own.

Revision: 0052, after 0051
"""

from secrets import token_hex

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("campaign", sa.Column("names_secret", sa.String(64), nullable=True))
    campaign = sa.table("campaign", sa.column("id"), sa.column("state"), sa.column("names_secret"))
    connection = op.get_bind()
    for id_ in connection.scalars(
        sa.select(campaign.c.id).where(campaign.c.state.in_(("draft", "closed")))
    ).all():
        connection.execute(sa.update(campaign).where(campaign.c.id == id_).values(names_secret=token_hex(32)))


def downgrade() -> None:
    """Revert. The seed is the key again."""
    op.drop_column("campaign", "names_secret")
