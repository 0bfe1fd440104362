"""Let the journal tell of subscriptions that are made and ended.

Revision: 0040, after 0039
"""

from migrations import journal

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

ACTIONS = ("subscription-made", "subscription-ended")


def upgrade() -> None:
    """Apply."""
    journal.allow(ACTIONS)


def downgrade() -> None:
    """Revert. Lines that an earlier version does not know are lost."""
    journal.forget(ACTIONS)
