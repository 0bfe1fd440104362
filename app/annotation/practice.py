"""Practice cards: a few pictures with feedback for who enters a campaign, counted nowhere.

They are pictures that the admin set beside the classes, which everybody sees anyway. Nobody is asked about
these, and none of them is a known picture (`beside_classes`): feedback would tell. In a campaign that was
open before that was so, those are asked about on that somebody had answered.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Answer, Practice, Question
from app.campaigns.models import Campaign, CampaignState

CARDS = 3


@dataclass(frozen=True, slots=True)
class PracticeCard:
    """A picture of a class, and about which class it is asked."""

    example_id: int
    asked_class: int
    shown_class: int

    @property
    def is_match(self) -> bool:
        """Whether yes is right."""
        return self.asked_class == self.shown_class


def practice_cards(session: Session, campaign: Campaign, *, by: User) -> list[PracticeCard]:
    """The cards for this person, if they did none yet and answered nothing; `campaign` has its classes.

    None while it is not open: then nobody is served its pictures.
    As many as classes have pictures, at most CARDS.
    """
    if campaign.state is not CampaignState.OPEN or not any(item.example_ids for item in campaign.classes):
        return []
    if session.get(Practice, (campaign.id, by.id)) is not None:
        return []
    answered = (
        select(Answer.id)
        .join(Question, Question.id == Answer.question_id)
        .where(Answer.user_id == by.id, Question.campaign_id == campaign.id)
    )
    if session.scalar(answered.limit(1)) is not None:
        return []
    return list(_drawn(campaign, Random(by.id.int ^ campaign.id.int)))


def _drawn(campaign: Campaign, chance: Random) -> Iterator[PracticeCard]:
    """A card per class; of the first yes is right, of the second no, of the third chance says which.

    A picture that stands beside several classes is none of either.
    """
    shown_by = Counter(id_ for item in campaign.classes for id_ in set(item.example_ids))
    own = {
        item.position: [id_ for id_ in item.example_ids if shown_by[id_] == 1] for item in campaign.classes
    }
    pictures = [(position, chance.choice(ids)) for position, ids in own.items() if ids]
    chance.shuffle(pictures)
    for place, (shown, example_id) in enumerate(pictures[:CARDS]):
        is_match = (True, False, chance.random() < 1 / 2)[place]
        others = [item.position for item in campaign.classes if item.position != shown]
        yield PracticeCard(example_id, shown if is_match else chance.choice(others), shown)


def note_practised(session: Session, campaign: Campaign, *, by: User) -> None:
    """Offer this person no cards of the campaign any more. Twice is once."""
    insert = postgresql_insert if session.get_bind().dialect.name == "postgresql" else sqlite_insert
    row = insert(Practice).values(campaign_id=campaign.id, user_id=by.id)
    session.execute(row.on_conflict_do_nothing())
