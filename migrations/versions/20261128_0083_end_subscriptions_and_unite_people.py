"""End subscriptions of whoever is no admin any more, and unite people of imports who are written in two ways.

Revision: 0083, after 0078

As tokens and links have ended, so subscriptions do. Imports know a person by their name, whatever its case,
spaces and way to write accents; those of before count one person as two.
Campaigns that are there, or that a server of an earlier version makes, confirm that part of the questions
between two classes that they did.
"""

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

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
IMPORT = sa.table(
    "label_import",
    sa.column("id", sa.Uuid()),
    sa.column("campaign_id", sa.Uuid()),
    sa.column("state"),
    sa.column("notes", sa.JSON()),
)
ANSWER = sa.table(
    "imported_answer",
    sa.column("id"),
    sa.column("import_id", sa.Uuid()),
    sa.column("example_id"),
    sa.column("candidate_class"),
    sa.column("value"),
    sa.column("annotator"),
)
CLASS = sa.table("campaign_class", sa.column("campaign_id", sa.Uuid()))
SHOWN = 80  # characters of a name in a sentence
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
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
    op.add_column("campaign", sa.Column("confirm_law", sa.SmallInteger(), server_default="1", nullable=False))
    for campaign_id, ways in _written_in_several_ways():
        _unite(campaign_id, ways)


def downgrade() -> None:
    """Revert. The version before tells nothing to who is no admin, either; who was united stays so."""
    op.drop_column("campaign", "confirm_law")
    op.drop_column("subscription", "ended_because")
    op.drop_column("subscription", "ended_at")


def _written_in_several_ways() -> Iterator[tuple[Any, list[str]]]:
    """Campaigns with the names that each mean one person, the first one first."""
    rows = op.get_bind().execute(
        sa.select(IMPORT.c.campaign_id, ANSWER.c.annotator)
        .join(IMPORT, IMPORT.c.id == ANSWER.c.import_id)
        .where(IMPORT.c.state == "ready", ANSWER.c.annotator != "")
        .group_by(IMPORT.c.campaign_id, ANSWER.c.annotator)
        .order_by(sa.func.min(ANSWER.c.id))
    )
    people: dict[tuple[Any, str], list[str]] = defaultdict(list)
    for campaign_id, name in rows:
        people[campaign_id, _sameness(name)].append(name)
    for (campaign_id, _), ways in people.items():
        if len(ways) > 1:
            yield campaign_id, ways


def _unite(campaign_id: Any, ways: list[str]) -> None:
    """Call somebody alike in all imports of a campaign, and note it in those that called them otherwise.

    What they say twice counts once, and nothing counts that they say of a picture about which they
    contradict themselves, as for whoever was one person from the start.
    """
    bind = op.get_bind()
    own = sa.select(IMPORT.c.id).where(IMPORT.c.campaign_id == campaign_id, IMPORT.c.state == "ready")
    of_imports, others = ANSWER.c.import_id.in_(own), ANSWER.c.annotator.in_(ways[1:])
    changed = bind.execute(sa.select(ANSWER.c.import_id).where(of_imports, others).distinct()).scalars().all()
    bind.execute(ANSWER.update().where(of_imports, others).values(annotator=ways[0]))
    note = _note(ways, _contradictions(campaign_id, of_imports, ways[0]))
    for import_id in changed:
        this = IMPORT.c.id == import_id
        notes = bind.execute(sa.select(IMPORT.c.notes).where(this)).scalar_one()
        bind.execute(IMPORT.update().where(this).values(notes=[*_listed(notes), note]))


def _contradictions(campaign_id: Any, of_imports: Any, name: str) -> int:
    """About how many pictures somebody says yes and no of one class, yes of two, or no of all."""
    bind = op.get_bind()
    count = sa.select(sa.func.count()).select_from(CLASS).where(CLASS.c.campaign_id == campaign_id)
    num_classes = bind.execute(count).scalar_one()
    rows = bind.execute(
        sa.select(ANSWER.c.example_id, ANSWER.c.candidate_class, ANSWER.c.value)
        .where(of_imports, ANSWER.c.annotator == name, ANSWER.c.value.in_(("yes", "no")))
        .distinct()
    )
    said: dict[int, set[tuple[int, str]]] = defaultdict(set)
    for example_id, class_, value in rows:
        said[example_id].add((class_, value))
    return sum(_contradicts(one, num_classes) for one in said.values())


def _contradicts(said: set[tuple[int, str]], num_classes: int) -> bool:
    yes = sum(value == "yes" for _, value in said)
    return yes > 1 or len(said) > len({class_ for class_, _ in said}) or len(said) - yes >= num_classes


def _note(ways: list[str], contradictions: int) -> str:
    shown = [repr(name[:SHOWN]) for name in ways[1:4]]
    others = " and ".join([*shown, "otherwise"] if len(ways) > len(shown) + 1 else shown)
    told = f"{ways[0][:SHOWN]!r} is the person who was called {others}, too, and counts once."
    if contradictions:
        pictures = "1 picture" if contradictions == 1 else f"{contradictions:,} pictures"
        told += f" They contradict themselves about {pictures}, and nothing that they say of these counts."
    return told


def _listed(notes: Any) -> list[str]:
    found = json.loads(notes) if isinstance(notes, str) else notes
    return list(found or [])


def _sameness(name: str) -> str:
    """Equal for names that people take for one."""
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    seen = (c for c in plain if unicodedata.category(c) != "Cf" and not INVISIBLE.match(c))
    return " ".join("".join(seen).split())
