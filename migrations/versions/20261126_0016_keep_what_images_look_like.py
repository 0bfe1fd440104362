"""Keep what a dataset's images look like, and call the presets of runs by what they are for.

Datasets that are there are looked at when a run first needs it.

Revision: 0016, after 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# Until now all presets were for digits.
RENAMED = (
    ("clarinet-plus", "default", "digits"),
    ("clarinet-plus", "quick", "digits-quick"),
    ("mcc", "default", "digits"),
    ("gac+mcc", "default", "digits"),
)


def upgrade() -> None:
    """Apply. The configurations of runs keep the earlier names, with which they are read."""
    op.add_column("dataset", sa.Column("looks", sa.String(20), nullable=True))
    for method, then, now in RENAMED:
        _rename(method, then, now)


def downgrade() -> None:
    """Revert."""
    for method, then, now in RENAMED:
        _rename(method, now, then)
    op.drop_column("dataset", "looks")


def _rename(method: str, old: str, new: str) -> None:
    run = sa.table("run", sa.column("method"), sa.column("preset"))
    op.execute(sa.update(run).where(run.c.method == method, run.c.preset == old).values(preset=new))
