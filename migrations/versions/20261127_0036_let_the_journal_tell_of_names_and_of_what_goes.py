"""Let the journal tell of names and aliases of models, and of what is archived and deleted.

Revision: 0036, after 0035
"""

from migrations import journal

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

ACTIONS = (
    "model-changed",
    "model-archived",
    "model-restored",
    "model-deleted",
    "alias-moved",
    "alias-removed",
    "run-deleted",
    "campaign-archived",
    "campaign-restored",
    "dataset-archived",
    "dataset-restored",
)


def upgrade() -> None:
    """Apply."""
    journal.allow(ACTIONS)


def downgrade() -> None:
    """Revert. Lines that an earlier version does not know are lost."""
    journal.forget(ACTIONS)
