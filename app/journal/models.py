"""The log of who did what: written once, never changed."""

import enum
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DDL, ForeignKey, Index, String, event
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import utc_now
from app.db import Base, BigId, enum_column


class Action(enum.StrEnum):
    """What somebody did."""

    CAMPAIGN_CREATED = "campaign-created"
    CAMPAIGN_CHANGED = "campaign-changed"
    CAMPAIGN_DELETED = "campaign-deleted"
    CAMPAIGN_OPENED = "campaign-opened"
    CAMPAIGN_PAUSED = "campaign-paused"
    CAMPAIGN_RESUMED = "campaign-resumed"
    CAMPAIGN_CLOSED = "campaign-closed"
    PERSON_PAUSED = "person-paused"
    PERSON_RESUMED = "person-resumed"
    PERSON_LEFT_OUT = "person-left-out"
    PERSON_COUNTED = "person-counted"
    KNOWN_MARKED = "known-marked"
    ASKED_AGAIN = "asked-again"
    QUESTION_DECIDED = "question-decided"
    DECISION_TAKEN_BACK = "decision-taken-back"
    LABELS_IMPORTED = "labels-imported"
    IMPORT_DELETED = "import-deleted"
    ANSWERS_DOWNLOADED = "answers-downloaded"
    LABELS_DOWNLOADED = "labels-downloaded"
    RUN_STARTED = "run-started"
    RUN_CHANGED = "run-changed"
    RUN_CANCELLED = "run-cancelled"
    SIGNED_IN = "signed-in"
    SIGN_IN_REFUSED = "sign-in-refused"
    SIGNED_OUT = "signed-out"
    SESSION_ENDED = "session-ended"
    PASSWORD_CHANGED = "password-changed"
    PASSWORD_LINK_MADE = "password-link-made"
    SECOND_FACTOR_ON = "second-factor-on"
    SECOND_FACTOR_OFF = "second-factor-off"
    TOKEN_MADE = "token-made"
    TOKEN_REVOKED = "token-revoked"
    INVITATION_MADE = "invitation-made"
    INVITATION_WITHDRAWN = "invitation-withdrawn"
    ACCOUNT_MADE = "account-made"
    ACCOUNT_DISABLED = "account-disabled"
    ACCOUNT_ENABLED = "account-enabled"
    ROLE_CHANGED = "role-changed"
    DATASET_MADE = "dataset-made"
    DATASET_DELETED = "dataset-deleted"
    MODEL_MADE = "model-made"
    MODEL_DOWNLOADED = "model-downloaded"
    ADMISSION_CHANGED = "admission-changed"
    MEMBER_ADDED = "member-added"
    MEMBER_REMOVED = "member-removed"
    GROUP_MADE = "group-made"
    GROUP_CHANGED = "group-changed"
    GROUP_DELETED = "group-deleted"
    PERSON_RENAMED = "person-renamed"
    PERSON_ERASED = "person-erased"
    WORKER_LINK_MADE = "worker-link-made"
    WORKER_LINK_ENDED = "worker-link-ended"
    IMAGES_ADDED = "images-added"
    IMAGES_DROPPED = "images-dropped"
    CLASSES_NAMED = "classes-named"
    ASKED_FURTHER = "asked-further"
    PICTURE_SET_ASIDE = "picture-set-aside"
    PICTURE_BROUGHT_BACK = "picture-brought-back"
    PICTURE_REVIEWED = "picture-reviewed"
    MODEL_CHANGED = "model-changed"
    MODEL_ARCHIVED = "model-archived"
    MODEL_RESTORED = "model-restored"
    MODEL_DELETED = "model-deleted"
    ALIAS_MOVED = "alias-moved"
    ALIAS_REMOVED = "alias-removed"
    RUN_DELETED = "run-deleted"
    CAMPAIGN_ARCHIVED = "campaign-archived"
    CAMPAIGN_RESTORED = "campaign-restored"
    DATASET_ARCHIVED = "dataset-archived"
    DATASET_RESTORED = "dataset-restored"
    DATASET_PREDICTED = "dataset-predicted"
    PREDICTION_DELETED = "prediction-deleted"
    SUBSCRIPTION_MADE = "subscription-made"
    SUBSCRIPTION_ENDED = "subscription-ended"
    EVALUATION_MADE = "evaluation-made"
    ORGANISATION_LINKED = "organisation-linked"
    ORGANISATION_UNLINKED = "organisation-unlinked"
    ROLE_KEPT = "role-kept"


class Entry(Base):
    """One thing that somebody did. The database refuses to delete it, and to change what was done.

    Erasing a person takes out their name and the addresses from which they came, and nothing else.
    """

    __tablename__ = "journal_entry"
    __table_args__ = (Index("ix_journal_entry_campaign_id_id", "campaign_id", "id"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime] = mapped_column(default=utc_now)  # when it was written down
    action: Mapped[Action] = mapped_column(enum_column(Action))
    by_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("user.id", ondelete="RESTRICT")
    )  # None: the program
    campaign_id: Mapped[UUID | None]  # stays when a draft is deleted
    details: Mapped[dict[str, Any]]
    # From where the request came; "" where no request did.
    address: Mapped[str] = mapped_column(String(64), default="", server_default="")


# The same statements stand in the migration.
_REFUSE = {
    "sqlite": [
        """CREATE TRIGGER journal_entry_keep_UPDATE BEFORE UPDATE ON journal_entry
WHEN NEW.id IS NOT OLD.id OR NEW.at IS NOT OLD.at OR NEW.action IS NOT OLD.action
  OR NEW.by_id IS NOT OLD.by_id OR NEW.campaign_id IS NOT OLD.campaign_id
  OR (NEW.address IS NOT OLD.address AND NEW.address <> '')
  OR (NEW.details IS NOT OLD.details
      AND coalesce(json_extract(OLD.details, '$.person'), json_extract(OLD.details, '$.for'),
        json_extract(OLD.details, '$.token')) IS NULL)
BEGIN SELECT RAISE(ABORT, 'the journal is only written to'); END""",
        "CREATE TRIGGER journal_entry_keep_DELETE BEFORE DELETE ON journal_entry "
        "BEGIN SELECT RAISE(ABORT, 'the journal is only written to'); END",
    ],
    "postgresql": [
        """CREATE OR REPLACE FUNCTION journal_keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF TG_OP = 'DELETE' OR NEW.id <> OLD.id OR NEW.at <> OLD.at OR NEW.action <> OLD.action
  OR NEW.by_id IS DISTINCT FROM OLD.by_id OR NEW.campaign_id IS DISTINCT FROM OLD.campaign_id
  OR (NEW.address <> OLD.address AND NEW.address <> '')
  OR (NEW.details::text <> OLD.details::text
      AND coalesce(OLD.details ->> 'person', OLD.details ->> 'for', OLD.details ->> 'token') IS NULL)
THEN RAISE EXCEPTION 'the journal is only written to'; END IF;
RETURN NEW; END $$""",
        "CREATE TRIGGER journal_entry_keep BEFORE UPDATE OR DELETE ON journal_entry "
        "FOR EACH ROW EXECUTE FUNCTION journal_keep()",
    ],
}
for _dialect, _statements in _REFUSE.items():
    for _statement in _statements:
        _ddl = DDL(_statement)  # type: ignore[no-untyped-call]  # SQLAlchemy says nothing of its arguments
        event.listen(Entry.__table__, "after_create", _ddl.execute_if(dialect=_dialect))
