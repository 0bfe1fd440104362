"""Keep an estimate of the accuracy on the source with its interval, or what it lacked.

The estimate and standard error of earlier epochs stay as they are. A trial's copy of the last one goes.

Revision: 0015, after 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("metric", sa.Column("source_estimate", sa.JSON(), nullable=True))
    op.drop_column("trial", "source_accuracy_estimate")


def downgrade() -> None:
    """Revert. Estimates with intervals are lost."""
    op.add_column("trial", sa.Column("source_accuracy_estimate", sa.Double(), nullable=True))
    last = "SELECT max(epoch) FROM metric WHERE metric.trial_id = trial.id"
    op.execute(
        "UPDATE trial SET source_accuracy_estimate = (SELECT source_accuracy_estimate FROM metric "
        f"WHERE metric.trial_id = trial.id AND metric.epoch = ({last}))"
    )
    op.drop_column("metric", "source_estimate")
