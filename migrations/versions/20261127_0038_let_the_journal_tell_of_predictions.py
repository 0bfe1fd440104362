"""Let the journal tell of predictions of datasets.

Revision: 0038, after 0037
"""

from migrations import journal

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

ACTIONS = ("dataset-predicted", "prediction-deleted")


def upgrade() -> None:
    """Apply."""
    journal.allow(ACTIONS)


def downgrade() -> None:
    """Revert. Lines that an earlier version does not know are lost."""
    journal.forget(ACTIONS)
