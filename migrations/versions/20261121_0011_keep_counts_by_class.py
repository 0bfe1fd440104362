"""Keep how many examples of each class a dataset has, counted once.

Revision: 0011, after 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COLUMNS = {"train": "train_per_class", "test": "test_per_class"}
DATASET = sa.table(
    "dataset",
    sa.column("id", sa.Uuid()),
    sa.column("state", sa.String()),
    sa.column("class_names", sa.JSON()),
    *(sa.column(name, sa.JSON()) for name in COLUMNS.values()),
)
EXAMPLE = sa.table(
    "example",
    sa.column("dataset_id", sa.Uuid()),
    sa.column("split", sa.String()),
    sa.column("true_class", sa.Integer()),
)


def upgrade() -> None:
    """Apply."""
    for name in COLUMNS.values():
        op.add_column("dataset", sa.Column(name, sa.JSON(), nullable=True))
    connection = op.get_bind()
    ready = sa.select(DATASET.c.id, DATASET.c.class_names).where(DATASET.c.state == "ready")
    for id_, class_names in connection.execute(ready).all():
        rows = connection.execute(
            sa.select(EXAMPLE.c.split, EXAMPLE.c.true_class, sa.func.count())
            .where(EXAMPLE.c.dataset_id == id_)
            .group_by(EXAMPLE.c.split, EXAMPLE.c.true_class)
        )
        counts = {(split, true_class): count for split, true_class, count in rows}
        connection.execute(
            sa.update(DATASET)
            .where(DATASET.c.id == id_)
            .values(
                {
                    name: [counts.get((split, class_), 0) for class_ in range(len(class_names or ()))]
                    for split, name in COLUMNS.items()
                }
            )
        )


def downgrade() -> None:
    """Revert."""
    for name in COLUMNS.values():
        op.drop_column("dataset", name)
