"""Let the journal tell of images that join, classes that get names, further drawings, pictures set aside.

Revision: 0033, after 0032
"""

from migrations import journal

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

ACTIONS = (
    "images-added",
    "images-dropped",
    "classes-named",
    "asked-further",
    "picture-set-aside",
    "picture-brought-back",
    "picture-reviewed",
)


def upgrade() -> None:
    """Apply."""
    journal.allow(ACTIONS)


def downgrade() -> None:
    """Revert. Lines that an earlier version does not know are lost."""
    journal.forget(ACTIONS)
