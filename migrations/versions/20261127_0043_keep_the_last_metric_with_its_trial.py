"""Keep the last metric of each trial in its own row, so that lists of runs read no metrics.

Revision: 0043, after 0042
"""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

KEPT = (
    "epoch",
    "epochs",
    "step",
    "seconds",
    "losses",
    "target_accuracy",
    "source_estimate",
    "source_accuracy_estimate",
    "source_accuracy_error",
)
ROWS = 500  # a statement

metric = sa.table(
    "metric",
    sa.column("trial_id", sa.Uuid()),
    *(
        sa.column(name, sa.JSON()) if name in {"losses", "source_estimate"} else sa.column(name)
        for name in KEPT
    ),
    sa.column("recorded_at", sa.DateTime(timezone=True)),
)
trial = sa.table("trial", sa.column("id", sa.Uuid()), sa.column("last_metric", sa.JSON()))


def upgrade() -> None:
    """Apply."""
    op.add_column("trial", sa.Column("last_metric", sa.JSON(), nullable=True))
    last = (
        sa.select(metric.c.trial_id, sa.func.max(metric.c.epoch).label("epoch"))
        .group_by(metric.c.trial_id)
        .subquery()
    )
    newest = sa.select(metric).join(
        last, (metric.c.trial_id == last.c.trial_id) & (metric.c.epoch == last.c.epoch)
    )
    bind = op.get_bind()
    fill = (
        sa.update(trial)
        .where(trial.c.id == sa.bindparam("trial_id"))
        .values(last_metric=sa.bindparam("kept", type_=sa.JSON()))
    )
    rows = [{"trial_id": row.trial_id, "kept": _kept(row._mapping)} for row in bind.execute(newest)]
    for start in range(0, len(rows), ROWS):
        bind.execute(fill, rows[start : start + ROWS])


def downgrade() -> None:
    """Revert."""
    op.drop_column("trial", "last_metric")


def _kept(row: Any) -> dict[str, Any]:
    at: datetime = row["recorded_at"]
    zoned = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return {name: row[name] for name in KEPT} | {"recorded_at": zoned.isoformat()}
