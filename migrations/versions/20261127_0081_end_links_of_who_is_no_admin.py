"""End the links for outside workers of whoever is no admin any more: they would come back with the role.

Revision: 0081, after 0080
"""

import sqlalchemy as sa
from alembic import op

revision = "0081"
down_revision = "0080"
branch_labels = None
depends_on = None

USER = sa.table("user", sa.column("id", sa.Uuid()), sa.column("role"), sa.column("disabled_at"))
LINK = sa.table(
    "worker_link",
    sa.column("created_by_id", sa.Uuid()),
    sa.column("ended_at", sa.DateTime(timezone=True)),
)


def upgrade() -> None:
    """Apply."""
    admins = sa.select(USER.c.id).where(USER.c.role == "admin", USER.c.disabled_at.is_(None))
    op.execute(
        LINK.update()
        .where(LINK.c.ended_at.is_(None), LINK.c.created_by_id.not_in(admins))
        .values(ended_at=sa.func.current_timestamp())
    )


def downgrade() -> None:
    """Nothing to revert: the version before does not let them in either."""
