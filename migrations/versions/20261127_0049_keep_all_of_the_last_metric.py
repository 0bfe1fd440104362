"""Keep learning rate and share of pseudo-labels with the last metric of each trial, too.

Revision: 0049, after 0048
"""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

ADDED = ("learning_rate", "pseudo_label_share")
ROWS = 500  # a statement

metric = sa.table("metric", sa.column("trial_id", sa.Uuid()), sa.column("epoch"), *map(sa.column, ADDED))
trial = sa.table("trial", sa.column("id", sa.Uuid()), sa.column("last_metric", sa.JSON()))


def upgrade() -> None:
    """Apply. A running server of the former version leaves both out; readers take that for unknown."""
    last = (
        sa.select(metric.c.trial_id, sa.func.max(metric.c.epoch).label("epoch"))
        .group_by(metric.c.trial_id)
        .subquery()
    )
    newest = (
        sa.select(trial.c.id, trial.c.last_metric, *(metric.c[name] for name in ADDED))
        .join(last, last.c.trial_id == trial.c.id)
        .join(metric, (metric.c.trial_id == last.c.trial_id) & (metric.c.epoch == last.c.epoch))
    )
    rows = [
        {"trial_id": row.id, "kept": row.last_metric | {name: getattr(row, name) for name in ADDED}}
        for row in op.get_bind().execute(newest)
        if row.last_metric is not None
    ]
    _write(rows)


def downgrade() -> None:
    """Revert."""
    known = op.get_bind().execute(sa.select(trial.c.id, trial.c.last_metric))
    _write(
        [
            {
                "trial_id": row.id,
                "kept": {name: row.last_metric[name] for name in row.last_metric.keys() - set(ADDED)},
            }
            for row in known
            if row.last_metric is not None
        ]
    )


def _write(rows: list[dict[str, object]]) -> None:
    write = (
        sa.update(trial)
        .where(trial.c.id == sa.bindparam("trial_id"))
        .values(last_metric=sa.bindparam("kept", type_=sa.JSON()))
    )
    for start in range(0, len(rows), ROWS):
        op.get_bind().execute(write, rows[start : start + ROWS])
