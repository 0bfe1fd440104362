"""What the demo starts with: an admin, two small datasets, and an open campaign over one of them."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from sqlalchemy.orm import Session

from app.accounts import callers
from app.accounts import service as accounts
from app.accounts.errors import UserNotFound
from app.accounts.models import Role, User
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign, CampaignState
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets.models import DatasetState
from app.datasets.uploads import Upload
from app.errors import AppError
from app.settings import Settings
from worker.context import Context
from worker.demo.images import Pixels, as_npz, demo_domains
from worker.drawing import open_campaign
from worker.intake import import_dataset

EMAIL = "admin@example.org"
SOURCE, TARGET = "Digits on paper", "Digits on stone"
DESCRIBED = {SOURCE: "Dark ink on white paper.", TARGET: "Other digits, leaning, on grainy stone."}
CAMPAIGN = "Which digit is it?"


class DemoIncomplete(AppError):
    """The ready-made part could not be made."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What somebody needs to get in, as it is printed."""

    url: str
    admin_email: str
    admin_password: str
    admin_token: str
    campaign_id: str


def prepare(settings: Settings) -> tuple[Demo, UUID, bool]:
    """Make what is missing: account, datasets, open campaign.

    Gives what to print, the target dataset, and whether the campaign is new. Done before the server starts,
    so that its first answer shows everything. Safe to repeat and to interrupt.

    Raises:
        DemoIncomplete: an import or the opening failed.
    """
    context = replace(Context.of(settings), publish=lambda _: None)  # what a worker would do is done here
    try:
        user, password, token = _admin(context)
        known = _dataset_ids(context, user)
        if not {SOURCE, TARGET} <= known.keys():
            source, target = demo_domains()
            for name, arrays in ((SOURCE, source), (TARGET, target)):
                if name not in known:
                    known[name] = _import(context, user, name, DESCRIBED[name], arrays)
        campaign_id, is_new = _campaign(context, user, known[SOURCE])
        demo = Demo(settings.public_url, EMAIL, password, token, str(campaign_id))
        return demo, known[TARGET], is_new
    finally:
        context.database.dispose()


def _admin(context: Context) -> tuple[User, str, str]:
    """The admin with the password and the token that the first start made."""
    path = context.settings.data_dir / "demo.json"
    known: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if not known:
        # Written first: an account whose password nobody knows would be of no use.
        known = {"admin_password": secrets.token_urlsafe(9), "admin_token": ""}
        _write_private(path, known)
    password = known["admin_password"]
    with context.unit_of_work() as session:
        try:
            user = accounts.user_by_email(session, EMAIL)
        except UserNotFound:
            user = accounts.create_user(
                session, email=EMAIL, name="Demo admin", role=Role.ADMIN, password=password, now=utc_now()
            )
        if callers.caller_by_token(session, known["admin_token"], now=utc_now()) is None:
            _, known["admin_token"] = accounts.create_token(session, user, "demo", now=utc_now())
    _write_private(path, known)
    return user, password, known["admin_token"]


def _write_private(path: Path, content: Mapping[str, str]) -> None:
    path.touch(mode=0o600)
    path.write_text(json.dumps(content), encoding="utf-8")


def _dataset_ids(context: Context, user: User) -> dict[str, UUID]:
    with context.reading() as session:
        found = datasets.list_datasets(session, by=user, limit=1000)
        return {dataset.name: dataset.id for dataset in found}


def _import(context: Context, user: User, name: str, description: str, arrays: Mapping[str, Pixels]) -> UUID:
    upload = Upload(as_npz(arrays), "digits.npz", kind="npz")
    with context.unit_of_work() as session:
        dataset = datasets.create_dataset(
            session, context.storage, upload, name=name, description=description, by=user, now=utc_now()
        )
    import_dataset(context, dataset.id)
    with context.reading() as session:
        imported = datasets.get_dataset(session, dataset.id, by=user)
        if imported.state is not DatasetState.READY:
            raise DemoIncomplete(f"The images of {name!r} could not be taken in: {imported.failure}")
    return dataset.id


def _campaign(context: Context, user: User, source_id: UUID) -> tuple[UUID, bool]:
    with context.unit_of_work() as session:
        known = [
            item for item in campaigns.list_campaigns(session, by=user, limit=1000) if item.name == CAMPAIGN
        ]
        if known and known[0].state is not CampaignState.DRAFT:
            return known[0].id, False
        campaign = known[0] if known else _draft(session, user, source_id)
        campaigns.open_campaign(session, campaign, by=user, now=utc_now())
    open_campaign(context, campaign.id)
    with context.reading() as session:
        opened = campaigns.any_campaign(session, campaign.id)
        if opened.state is not CampaignState.OPEN:
            raise DemoIncomplete(f"The campaign could not be opened: {opened.opening_failure}")
    return campaign.id, True


def _draft(session: Session, user: User, source_id: UUID) -> Campaign:
    details = campaigns.CampaignDetails(
        name=CAMPAIGN,
        dataset_id=source_id,
        instructions="Say yes when the digit is the one asked about. When you cannot tell, say so.",
        class_language="en",
    )
    return campaigns.create_campaign(session, details, by=user, now=utc_now())
