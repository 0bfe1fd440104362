"""Let sessions, tokens and links end, and know when they were last used; room for a second factor.

Tokens that are there may go on with all that they could do, for 90 days from now on. Sessions that are there
go on as well; when their password was given is not known, so it is asked for again before what is delicate.

Revision: 0020, after 0017
"""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

TOKEN_LIFE = timedelta(days=90)
# Written out, because Alembic adds a column's check or key as a statement of its own, which SQLite does not
# have; copying a table there (batch mode) would take longer.
COLUMNS = (
    "api_token ADD COLUMN scope VARCHAR(32) DEFAULT 'manage' NOT NULL "
    "CONSTRAINT ck_api_token_scope_known CHECK (scope IN ('read', 'annotate', 'manage'))",
    'api_token ADD COLUMN made_by_id {uuid} CONSTRAINT fk_api_token_made_by_id_user REFERENCES "user" (id)',
    "api_token ADD COLUMN made_with_id {uuid} "
    "CONSTRAINT fk_api_token_made_with_id_api_token REFERENCES api_token (id)",
    "invitation ADD COLUMN purpose VARCHAR(32) DEFAULT 'account' NOT NULL "
    "CONSTRAINT ck_invitation_purpose_known CHECK (purpose IN ('account', 'first-admin', 'password'))",
    'invitation ADD COLUMN for_id {uuid} CONSTRAINT fk_invitation_for_id_user REFERENCES "user" (id)',
)
AT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    uuid = "UUID" if op.get_bind().dialect.name == "postgresql" else "CHAR(32)"
    for column in COLUMNS:
        op.execute("ALTER TABLE " + column.format(uuid=uuid))
    op.add_column(
        "api_token",
        sa.Column("expires_at", AT, server_default=sa.text("'1970-01-01 00:00:00'"), nullable=False),
    )
    op.add_column("api_token", sa.Column("seen_at", AT, nullable=True))
    op.create_index(op.f("ix_api_token_made_by_id"), "api_token", ["made_by_id"], unique=False)
    for name in ("seen_at", "proved_at"):
        op.add_column("session", sa.Column(name, AT, nullable=True))
    op.add_column("session", sa.Column("address", sa.String(64), server_default="", nullable=False))
    op.add_column("session", sa.Column("browser", sa.String(200), server_default="", nullable=False))
    op.add_column("invitation", sa.Column("email", sa.String(254), nullable=True))
    op.create_index(op.f("ix_invitation_for_id"), "invitation", ["for_id"], unique=False)
    op.add_column("user", sa.Column("totp_secret", sa.String(64), nullable=True))
    op.add_column("user", sa.Column("totp_since", AT, nullable=True))
    op.add_column("user", sa.Column("totp_step", sa.Integer(), nullable=True))
    _keep_what_is_there()


def _keep_what_is_there() -> None:
    now = datetime.now(UTC)
    token = sa.table("api_token", sa.column("expires_at", AT))
    session = sa.table("session", sa.column("seen_at", AT))
    op.execute(sa.update(token).values(expires_at=now + TOKEN_LIFE))
    op.execute(sa.update(session).values(seen_at=now))
    # As they were made until now: by the server, for nobody in particular.
    op.execute(
        "UPDATE invitation SET purpose = 'first-admin' "
        "WHERE invited_by_id IS NULL AND role = 'admin' AND note = ''"
    )


def downgrade() -> None:
    """Revert. Tokens that may do less would do all again, and links for passwords make accounts: both go."""
    op.execute("DELETE FROM invitation WHERE purpose = 'password' OR email IS NOT NULL")
    now = sa.bindparam("now", datetime.now(UTC), type_=AT)
    op.execute(sa.text("DELETE FROM api_token WHERE scope <> 'manage' OR expires_at < :now").bindparams(now))
    for name in ("totp_step", "totp_since", "totp_secret"):
        op.drop_column("user", name)
    for name in ("browser", "address", "proved_at", "seen_at"):
        op.drop_column("session", name)
    op.drop_index(op.f("ix_invitation_for_id"), table_name="invitation")
    op.drop_index(op.f("ix_api_token_made_by_id"), table_name="api_token")
    for table, names in (
        ("invitation", ("for_id", "email", "purpose")),
        ("api_token", ("made_with_id", "made_by_id", "seen_at", "expires_at", "scope")),
    ):
        for name in names:
            op.drop_column(table, name)
