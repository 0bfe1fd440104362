"""Let workers say what they are: host, process, version, memory, and since when.

Revision: 0042, after 0041
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

TEXTS = {"host": 120, "process": 160, "version": 40}
FACTS: dict[str, sa.types.TypeEngine[Any]] = {
    "memory_bytes": sa.BigInteger(),
    "memory_free_bytes": sa.BigInteger(),
    "started_at": sa.DateTime(timezone=True),
}


def upgrade() -> None:
    """Apply."""
    for name, length in TEXTS.items():
        # With a default: workers of the version before go on beating.
        op.add_column("worker", sa.Column(name, sa.String(length), nullable=False, server_default=""))
    for name, kind in FACTS.items():
        op.add_column("worker", sa.Column(name, kind, nullable=True))


def downgrade() -> None:
    """Revert."""
    for name in (*FACTS, *TEXTS):
        op.drop_column("worker", name)
