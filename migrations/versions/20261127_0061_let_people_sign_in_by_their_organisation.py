"""Let people sign in by their organisation: whose account there is whose here, and the journal's words.

Revision: 0061, after 0059
"""

import sqlalchemy as sa
from alembic import op

from migrations import journal

revision = "0061"
down_revision = "0059"
branch_labels = None
depends_on = None

ACTIONS = ("organisation-linked", "organisation-unlinked", "role-kept")


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "organisation_identity",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("issuer", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("called", sa.String(length=254), nullable=False),
        sa.Column("linked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_organisation_identity_user_id_user"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organisation_identity")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_organisation_identity_issuer_subject")),
        sa.UniqueConstraint("user_id", "issuer", name=op.f("uq_organisation_identity_user_id_issuer")),
    )
    op.create_table(
        "organisation_used",
        sa.Column("state_hash", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("state_hash", name=op.f("pk_organisation_used")),
    )
    op.create_index(op.f("ix_organisation_used_expires_at"), "organisation_used", ["expires_at"])
    journal.allow(ACTIONS)


def downgrade() -> None:
    """Revert. Lines that an earlier version does not know are lost, and links, which people make again."""
    journal.forget(ACTIONS)
    op.drop_table("organisation_used")
    op.drop_table("organisation_identity")
