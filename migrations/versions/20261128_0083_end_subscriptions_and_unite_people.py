"""End the subscriptions of whoever is no admin any more.

Revision: 0083, after 0078

As tokens and links have ended, so subscriptions do.
"""

import sqlalchemy as sa
from alembic import op

revision = "0083"
down_revision = "0078"
branch_labels = None
depends_on = None

USER = sa.table("user", sa.column("id", sa.Uuid()), sa.column("role"), sa.column("disabled_at"))
SUBSCRIPTION = sa.table(
    "subscription",
    sa.column("created_by_id", sa.Uuid()),
    sa.column("ended_at", sa.DateTime(timezone=True)),
    sa.column("ended_because"),
)
# In this order: of whoever is both, the account's end came last.
WHOSE = (
    ("account-disabled", USER.c.disabled_at.is_not(None)),
    ("role-changed", USER.c.role != "admin"),
)


def upgrade() -> None:
    """Apply."""
    op.add_column("subscription", sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("subscription", sa.Column("ended_because", sa.String(32), nullable=True))
    for because, which in WHOSE:
        op.execute(
            SUBSCRIPTION.update()
            .where(
                SUBSCRIPTION.c.ended_at.is_(None),
                SUBSCRIPTION.c.created_by_id.in_(sa.select(USER.c.id).where(which)),
            )
            .values(ended_at=sa.func.current_timestamp(), ended_because=because)
        )


def downgrade() -> None:
    """Revert. The version before tells nothing to who is no admin, either."""
    op.drop_column("subscription", "ended_because")
    op.drop_column("subscription", "ended_at")
