"""An evaluation may draw by predicted class: of each how many pictures there are, and how many are judged.

Those that are there drew each picture with the same chance.

Revision: 0047, after 0046
"""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("campaign", sa.Column("sample_strata", sa.JSON(), nullable=True))
    op.add_column("evaluation", sa.Column("strata", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Revert, while no evaluation drew by class: as one that did not, its accuracy would be another."""
    count = "SELECT count(*) FROM evaluation WHERE CAST(strata AS TEXT) <> 'null'"
    drawn = op.get_bind().scalar(sa.text(count))
    if drawn:
        raise RuntimeError(
            f"Evaluations drew their pictures by predicted class: {drawn}. Version 0046 would count each "
            "picture the same and tell another accuracy. Close and delete their campaigns first (one without "
            "a campaign goes with its run), or stay at this version."
        )
    op.drop_column("evaluation", "strata")
    op.drop_column("campaign", "sample_strata")
