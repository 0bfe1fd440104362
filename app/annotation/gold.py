"""Gold: questions whose right answer is known, put between the others to learn how reliable each person is.

They never train and never enter the test of the draws. Half of them have yes as the right answer: among
drawn questions only one in K has, and somebody who always says no would look good for long. A gold question
asks about the class of the question before it, so that nothing gives it away. Each person gets a picture
either as a known one or as a drawn question, and no more often than any other picture.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from uuid import UUID

from sqlalchemy import delete, exists, func, insert, literal, literal_column, or_, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session, aliased

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation.beside_classes import digests_beside_classes
from app.annotation.errors import NothingKnown, UnknownPicture
from app.annotation.gold_sparing import lost_to
from app.annotation.locking import LockedCampaign, require_asking
from app.annotation.models import IS_SET_ASIDE, Answer, Lease, Purpose, Question
from app.annotation.setting_aside import pictures_set_aside
from app.campaigns.drawings import drawings_of
from app.campaigns.drawn import Drawing
from app.campaigns.models import Campaign
from app.campaigns.noting import note
from app.datasets.models import Dataset, Example, Split
from app.journal.models import Action
from clarinet.files.names import NO_LABEL, numbers_among

CHUNK = 500
ASKED_OF_EACH = 2  # questions about a known picture: one where yes is right, one where no is
# A literal because PostgreSQL uses no partial index for a value that it does not know.
_IS_GOLD = Question.purpose == literal_column("'gold'")
# Ids of gold questions and of their examples, and how many others may not be asked about these any more (-1:
# nobody has to be): by class, by what is right, and by drawing.
Offered = dict[tuple[int, bool, int], list[tuple[int, int, int]]]
_chance = random.SystemRandom()  # what is gold must not be guessed


@dataclass(frozen=True, slots=True)
class KnownPicture:
    """An example whose class is known, as a position among the campaign's classes."""

    example_id: int
    class_: int


def mark_known(session: Session, campaign: Campaign, known: Sequence[KnownPicture], *, by: User) -> int:
    """Make gold of pictures; gives how many were not gold before. `campaign` has its classes.

    Each picture gives two questions: one about its class, one about another; none where it is set aside, or
    stands beside a class, as another of the same bytes may.

    Raises:
        NotAllowed: `by` is no admin.
        CampaignNotOpen: it is a draft, or closed.
        UnknownPicture: no training image that the campaign asks about, or no class of the campaign.
    """
    accounts.require_admin(by)
    require_asking(campaign)
    wanted = {picture.example_id: picture.class_ for picture in known}
    if not all(0 <= class_ < campaign.num_classes for class_ in wanted.values()):
        raise UnknownPicture
    marked = 0
    ids = sorted(wanted)
    drawn = drawings_of(session, campaign)
    shown = digests_beside_classes(session, campaign.id)
    for start in range(0, len(ids), CHUNK):
        part = ids[start : start + CHUNK]
        there = session.execute(
            select(Example.id, Example.position, Example.digest).where(
                Example.id.in_(part),
                Example.dataset_id == campaign.dataset_id,
                Example.split == Split.TRAIN,
                Example.position < _asked_until(drawn),
            )
        )
        found = {row.id: row for row in there}
        if len(found) != len(part):
            raise UnknownPicture
        hidden = {id_ for id_, row in found.items() if row.digest not in shown}
        is_gold = select(Question.example_id).where(
            Question.campaign_id == campaign.id,
            Question.purpose == Purpose.GOLD,
            Question.example_id.in_(part),
        )
        unusable = select(Question.example_id).where(
            Question.campaign_id == campaign.id, IS_SET_ASIDE, Question.example_id.in_(part)
        )
        fresh = sorted(hidden - set(session.scalars(is_gold)) - set(session.scalars(unusable)))
        rows = [
            row | {"drawing": _drawing_about(drawn, found[id_].position)}
            for id_ in fresh
            for row in _questions(campaign, id_, wanted[id_])
        ]
        if rows:
            session.execute(insert(Question), rows)
        marked += len(fresh)
    note(session, Action.KNOWN_MARKED, campaign, by=by, details={"pictures": marked})
    return marked


def _asked_until(drawn: Sequence[Drawing]) -> int:
    """The position before which images lie that the campaign asks about.

    One that joined its dataset later may look like no other that is asked about.
    """
    return max((drawing.end_position for drawing in drawn), default=0)


def _drawing_about(drawn: Sequence[Drawing], position: int) -> int:
    """The number of the drawing that is about the images among which this one joined."""
    return next(drawing.number for drawing in drawn if position < drawing.end_position)


def _questions(campaign: Campaign, example_id: int, class_: int) -> list[dict[str, object]]:
    others = campaign.num_classes - 1
    other = _chance.randrange(others)
    other += other >= class_
    common = {
        "campaign_id": campaign.id,
        "example_id": example_id,
        "purpose": Purpose.GOLD,
        "rank": 0,
        "is_waiting": False,
    }
    return [
        common
        | {"candidate_class": asked, "round": -1 - asked, "probability": chance, "is_match": asked == class_}
        for asked, chance in ((class_, 1 / 2), (other, 1 / 2 / others))
    ]


def some_known(session: Session, campaign: Campaign, *, per_class: int) -> list[KnownPicture]:
    """Random training images of each class, as far as the dataset came with true classes.

    Raises:
        CampaignNotOpen: it is a draft, or closed.
        NothingKnown: the dataset came with none of the campaign's.
    """
    require_asking(campaign)
    dataset = session.get_one(Dataset, campaign.dataset_id)
    end = _asked_until(drawings_of(session, campaign))
    shown = digests_beside_classes(session, campaign.id)
    found = []
    for position, number in enumerate(numbers_among(campaign.class_names, dataset.class_names or ())):
        if number == NO_LABEL:
            continue
        ids = session.scalars(
            select(Example.id).where(
                Example.dataset_id == dataset.id,
                Example.split == Split.TRAIN,
                Example.true_class == position,
                Example.position < end,
                Example.id.not_in(pictures_set_aside(campaign.id)),
                Example.digest.not_in(shown),
            )
        ).all()
        chosen = _chance.sample(ids, min(per_class, len(ids)))
        found += [KnownPicture(id_, number) for id_ in chosen]
    if not found:
        raise NothingKnown
    return found


def gold_count(session: Session, campaign_id: UUID) -> int:
    """How many pictures are gold."""
    count = select(func.count(Question.example_id.distinct())).where(
        Question.campaign_id == campaign_id, Question.purpose == Purpose.GOLD
    )
    return session.scalar(count) or 0


def gold_lasts(campaign: Campaign, pictures: int) -> int | None:
    """After about how many answers a person has met so many known pictures, at most; None: it has no end.

    The share is the same from the first answer on, and each comes as often as any other picture.
    """
    met = pictures * min(campaign.rounds, ASKED_OF_EACH)
    if not met or not campaign.gold_share or met >= campaign.gold_share * campaign.question_count:
        return None
    return round(met / campaign.gold_share)


def lots(campaign: LockedCampaign, count: int) -> list[bool]:
    """Behind which of so many ordinary questions gold is to stand: each with the same chance."""
    rate = campaign.gold_share / (1 - campaign.gold_share)  # gold per ordinary question
    return [_chance.random() < rate for _ in range(count)]


def lots_of_page(
    session: Session, campaign: LockedCampaign, room: int, class_: int, *, by: User, now: datetime
) -> list[bool]:
    """The same for a page about one class: for as many ordinary questions as fill `room` with their gold."""
    drawn = lots(campaign, room)
    left = 0
    if any(drawn):
        left = sum(map(len, _unanswered(session, campaign, {class_}, by=by, now=now).values()))
    page: list[bool] = []
    for is_host in drawn:
        places = room - len(page) - sum(page)
        if places <= 0:
            break
        page.append(is_host and places > 1 and sum(page) < left)
    return page


def mix_in(
    session: Session,
    campaign: LockedCampaign,
    fresh: Mapping[int, int],
    drawn: Sequence[bool],
    *,
    by: User,
    now: datetime,
) -> bool:
    """Lease gold questions right behind some of those just leased; gives whether there were any.

    Args:
        session: a writing one.
        campaign: that of the questions.
        fresh: class by id of the questions just leased, in order.
        drawn: behind which of them; those that were not to be had are left out at the end.
        by: who got them.
        now: until when leases of this very gold have run out.
    """
    hosts = [question_id for question_id, is_host in zip(fresh, drawn, strict=False) if is_host]
    if not hosts:
        return False
    offered = _unanswered(session, campaign, {fresh[host] for host in hosts}, by=by, now=now)
    rows = session.execute(select(Question.id, Question.drawing).where(Question.id.in_(hosts)))
    drawing_of = {row.id: row.drawing for row in rows}
    placed: dict[int, int] = {}  # gold by host
    for host in hosts:
        left = _fitting(offered, fresh[host], drawing_of[host], is_match=_chance.random() < 1 / 2)
        if left:
            placed[host], picture, _ = left[_chance.randrange(len(left))]
            offered = {
                key: [one for one in some if one[1] != picture] for key, some in offered.items()
            }  # its other question asks about the same picture
    if placed:
        _lease(session, placed, by=by)
    return bool(placed)


def _unanswered(
    session: Session, campaign: LockedCampaign, classes: set[int], *, by: User, now: datetime
) -> Offered:
    """Gold questions about pictures that have not come to this person as often as others may: once a round,
    as far as there are questions. None of these pictures has come to them as a drawn question.

    A picture that comes more often than others is seen to be known. `queue.NOT_MET_AS_KNOWN` is the other
    half: what came as a known picture does not come as a drawn question.
    """
    answered = exists().where(
        Answer.question_id == Question.id, Answer.user_id == by.id, Answer.superseded_at.is_(None)
    )
    held = exists().where(Lease.question_id == Question.id, Lease.user_id == by.id, Lease.expires_at > now)
    of_picture = aliased(Question)
    here = of_picture.campaign_id == Question.campaign_id, of_picture.example_id == Question.example_id
    had = exists().where(Lease.question_id == of_picture.id, Lease.user_id == by.id)
    # "Can't tell" gives the lease of a drawn question away; so does whoever takes over what ran out.
    said = exists().where(Answer.question_id == of_picture.id, Answer.user_id == by.id)
    drawn = exists().where(*here, of_picture.purpose != literal_column("'gold'"), or_(had, said))
    met = select(func.count()).where(*here, of_picture.purpose == literal_column("'gold'"), had)
    rows = session.execute(
        select(
            Question.id, Question.example_id, Question.candidate_class, Question.is_match, Question.drawing
        )
        .where(
            Question.campaign_id == campaign.id,
            _IS_GOLD,
            ~Question.is_set_aside,
            Question.candidate_class.in_(classes),
            ~answered,
            ~held,
            ~drawn,
            met.correlate(Question).scalar_subquery() < campaign.rounds,
        )
        .order_by(Question.id)  # so that the same draws choose the same ones, however the database reads them
    ).all()
    lost = lost_to(session, campaign, classes, by=by) if rows else {}
    offered: Offered = {}
    for id_, example_id, class_, is_match, drawing in rows:
        spent = lost.get(example_id, -1)
        if spent is not None:
            offered.setdefault((class_, bool(is_match), drawing), []).append((id_, example_id, spent))
    return offered


def _fitting(offered: Offered, class_: int, drawing: int, *, is_match: bool) -> list[tuple[int, int, int]]:
    """Those to choose from behind a question about this class: of its drawing, if there are any.

    Pictures that joined later may look otherwise, of another camera or another shop: among these an older one
    would be seen to be known. Of the rest those that cost a question least.
    """
    near = ((class_, wanted, drawing) for wanted in (is_match, not is_match))
    others = sorted((key for key in offered if key[0] == class_), key=lambda key: key[1] is not is_match)
    found = next(filter(None, (offered.get(key) for key in (*near, *others))), [])
    fewest = min((spent for *_, spent in found), default=-1)
    return [one for one in found if one[2] == fewest]


def _lease(session: Session, placed: Mapping[int, int], *, by: User) -> None:
    # A slot of my own that ran out would be in the way. Gold has as many slots as people answer it.
    session.execute(delete(Lease).where(Lease.user_id == by.id, Lease.question_id.in_(placed.values())))
    insert = postgresql_insert if session.get_bind().dialect.name == "postgresql" else sqlite_insert
    # In the order of their ids, so that two people cannot wait for each other. The gold comes right behind
    # its host, because it has the same turn and a larger id. Where somebody else takes the same slot at the
    # same moment, there is no gold this time.
    for host, gold in sorted(placed.items(), key=itemgetter(1)):
        taken = select(func.coalesce(func.max(Lease.slot) + 1, 0)).where(Lease.question_id == gold)
        held = select(
            literal(gold, Lease.question_id.type),
            taken.scalar_subquery(),
            Lease.user_id,
            Lease.expires_at,
            Lease.held_since,
            Lease.turn,
            literal(host, Lease.question_id.type),
        ).where(Lease.question_id == host, Lease.user_id == by.id)
        columns = ["question_id", "slot", "user_id", "expires_at", "held_since", "turn", "beside_id"]
        session.execute(insert(Lease).from_select(columns, held).on_conflict_do_nothing())
