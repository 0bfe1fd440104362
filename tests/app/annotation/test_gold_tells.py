"""Nothing tells a known picture from the questions beside it: neither what is late nor what comes twice."""

import random
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import gold, service
from app.annotation.models import AnswerValue, Question
from app.annotation.rules import LEASE
from app.annotation.submissions import TAKEN, Status
from app.campaigns.models import Campaign
from tests import annotators
from tests.app.annotation.test_gold import gold_of, golden
from tests.factories import NOW, make_user

pytestmark = [pytest.mark.dialects, pytest.mark.usefixtures("each_execution")]

LATER = NOW + timedelta(minutes=1)
LATE = NOW + LEASE + timedelta(minutes=1)


@pytest.fixture(autouse=True)
def fixed_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same gold in each run."""
    monkeypatch.setattr(gold, "_chance", random.Random(7))


def noes(ids: list[int]) -> list[service.SubmittedAnswer]:
    return [service.SubmittedAnswer(id_, AnswerValue.NO, 900, uuid4()) for id_ in ids]


def test_a_late_answer_to_a_known_picture_counts_as_that_beside_it(
    session: Session, admin: User, annotator: User
) -> None:
    campaign, other = golden(session, admin), make_user(session)
    held = [item.id for item in annotators.lease(session, campaign, count=20, by=annotator, now=NOW)]
    known = gold_of(session, held)
    assert len(known) >= 4
    # Somebody else gets the first of what ran out; the rest waits on.
    drawn = [item.id for item in annotators.lease(session, campaign, count=4, by=other, now=LATE)]
    theirs = set(drawn) & set(held) - set(known)
    annotators.submit(session, campaign, noes(drawn), by=other, now=LATE)
    assert theirs

    outcomes = annotators.submit(session, campaign, noes(held), by=annotator, now=LATE)

    said = {id_: (found.status, found.detail) for id_, found in zip(held, outcomes, strict=True)}
    assert {said[id_] for id_ in theirs} == {(Status.REFUSED, TAKEN)}
    # A known picture stands right behind the question that it came with.
    for before, id_ in pairwise(held):
        if id_ in known and before not in known:
            assert said[id_] == said[before]
    assert (Status.REFUSED, TAKEN) in {said[id_] for id_ in known}
    assert Status.STORED in {said[id_][0] for id_ in known}


def test_pictures_that_somebody_saw_are_known_ones_last(
    session: Session, admin: User, annotator: User
) -> None:
    campaign = golden(session, admin, examples=100, per_class=5)

    seen: list[int] = []
    for _ in range(3):
        held = [item.id for item in annotators.lease(session, campaign, count=10, by=annotator, now=NOW)]
        known = gold_of(session, held)
        pictures = {
            row.id: row.example_id for row in session.execute(select(Question.id, Question.example_id))
        }
        fresh = [pictures[id_] for id_ in held if id_ in known]
        assert len(set(fresh)) == len(fresh), "no picture twice at once"
        assert not set(fresh) & set(seen)
        seen += [pictures[id_] for id_ in held]
        annotators.submit(session, campaign, noes(held), by=annotator, now=NOW)


def test_what_is_given_back_is_lost_with_the_question_beside_it(
    session: Session, admin: User, annotator: User
) -> None:
    campaign, other = golden(session, admin), make_user(session)
    held = [item.id for item in annotators.lease(session, campaign, count=30, by=annotator, now=NOW)]
    known = gold_of(session, held)
    answered = [id_ for id_ in held if id_ not in known][:3]
    annotators.submit(session, campaign, noes(answered), by=annotator, now=LATER)
    annotators.release(session, campaign, by=annotator, now=LATER)
    taken = [item.id for item in annotators.lease(session, campaign, count=10, by=other, now=LATER)]

    again = [item.id for item in annotators.lease(session, campaign, count=30, by=annotator, now=LATER)]

    assert set(taken) & set(held) - set(known)
    left = [id_ for id_ in held if id_ not in answered]
    back = set(again)
    host = None
    fates = []
    for id_ in held:
        if id_ not in known:
            host = id_
        elif host not in answered:
            assert (id_ in back) is (host in back), "a known picture comes back with the question beside it"
            fates.append(id_ in back)
    assert set(fates) == {True, False}
    # Those behind questions that were answered share the fate of the next question that was not.
    ordinary = [id_ for id_ in left if id_ not in known]
    behind = [id_ for id_ in left[: left.index(ordinary[0])] if id_ in known]
    assert behind
    assert {id_ in back for id_ in behind} == {ordinary[0] in back}
    # What was lost does not come up again as something new, while there is other gold.
    lost = set(left) - back
    annotators.submit(session, campaign, noes(again), by=annotator, now=LATER)
    fresh = {item.id for item in annotators.lease(session, campaign, count=30, by=annotator, now=LATER)}
    assert gold_of(session, list(fresh))
    assert not fresh & lost & set(known)


@pytest.mark.parametrize("which", ["every second", "all drawn ones"])
def test_what_others_got_after_a_lapse_tells_no_known_picture(
    session: Session, admin: User, annotator: User, *, which: str
) -> None:
    campaign, other = golden(session, admin), make_user(session)
    held = [item.id for item in annotators.lease(session, campaign, count=60, by=annotator, now=NOW)]
    known = gold_of(session, held)
    answered = held[::2] if which == "every second" else [id_ for id_ in held if id_ not in known]
    annotators.submit(session, campaign, noes(answered), by=annotator, now=LATER)
    left = [id_ for id_ in held if id_ not in answered]
    assert len(gold_of(session, left)) >= 4
    theirs = [item.id for item in annotators.lease(session, campaign, count=100, by=other, now=LATE)]
    annotators.submit(session, campaign, noes(theirs), by=other, now=LATE)
    assert set(left) - set(known) <= set(theirs)

    late = annotators.submit(session, campaign, noes(left[:5]), by=annotator, now=LATE)
    again = [item.id for item in annotators.lease(session, campaign, count=100, by=annotator, now=LATE)]

    assert {(found.status, found.detail) for found in late} == {(Status.REFUSED, TAKEN)}
    assert again
    assert not set(again) & set(left), "what comes back although all else was taken would be known"


def test_some_of_what_lapsed_comes_back_with_its_known_pictures(
    session: Session, admin: User, annotator: User
) -> None:
    campaign, other = golden(session, admin), make_user(session)
    held = [item.id for item in annotators.lease(session, campaign, count=60, by=annotator, now=NOW)]
    known = gold_of(session, held)
    answered = held[:20] + held[21::4]
    annotators.submit(session, campaign, noes(answered), by=annotator, now=LATER)
    left = [id_ for id_ in held if id_ not in answered]
    theirs = [item.id for item in annotators.lease(session, campaign, count=10, by=other, now=LATE)]
    annotators.submit(session, campaign, noes(theirs), by=other, now=LATE)

    back = {item.id for item in annotators.lease(session, campaign, count=100, by=annotator, now=LATE)}

    ordinary = [id_ for id_ in left if id_ not in known]
    assert ordinary
    fates = []
    for place, id_ in enumerate(left):
        if id_ in known:
            before = [one for one in left[:place] if one not in known]
            assert (id_ in back) is ((before[-1] if before else ordinary[0]) in back)
            fates.append(id_ in back)
    assert set(fates) == {True, False}


def test_where_nobody_else_answered_all_comes_back_after_a_lapse(
    session: Session, admin: User, annotator: User
) -> None:
    campaign = golden(session, admin)
    held = [item.id for item in annotators.lease(session, campaign, count=20, by=annotator, now=NOW)]
    known = gold_of(session, held)
    drawn = [id_ for id_ in held if id_ not in known]
    annotators.submit(session, campaign, noes(drawn), by=annotator, now=LATER)

    back = [item.id for item in annotators.lease(session, campaign, count=20, by=annotator, now=LATE)]

    assert back[: len(known)] == [id_ for id_ in held if id_ in known]


def test_who_gives_back_alone_gets_all_of_it_back(session: Session, admin: User, annotator: User) -> None:
    campaign = golden(session, admin)
    held = [item.id for item in annotators.lease(session, campaign, count=30, by=annotator, now=NOW)]
    unsure = [id_ for id_ in held if id_ not in gold_of(session, held)][:3]
    given = [service.SubmittedAnswer(id_, AnswerValue.UNSURE, 900, uuid4()) for id_ in unsure]
    annotators.submit(session, campaign, given, by=annotator, now=LATER)
    annotators.release(session, campaign, by=annotator, now=LATER)

    again = [item.id for item in annotators.lease(session, campaign, count=27, by=annotator, now=LATER)]

    assert again == [id_ for id_ in held if id_ not in unsure]


def everything(
    session: Session, campaign: Campaign, people: list[User], *, one_class: bool
) -> dict[User, list[tuple[int, int, bool]]]:
    """What people are asked who answer, in turns, until nothing is left for any of them: picture, class, and
    whether it is known."""
    asked: dict[User, list[tuple[int, int, bool]]] = {person: [] for person in people}
    now, left = NOW, set(people)
    while left:
        for person in people:
            now += timedelta(seconds=20)
            held = annotators.lease(session, campaign, count=12, by=person, now=now, one_class=one_class)
            left = left | {person} if held else left - {person}
            known = gold_of(session, [item.id for item in held])
            asked[person] += [(item.example_id, item.candidate_class, item.id in known) for item in held]
            given = [
                service.SubmittedAnswer(
                    item.id,
                    AnswerValue.YES if item.example_id % 10 == item.candidate_class else AnswerValue.NO,
                    900,
                    uuid4(),
                )
                for item in held
            ]
            annotators.submit(session, campaign, given, by=person, now=now)
    return asked


@pytest.mark.parametrize("one_class", [False, True])
def test_who_answers_all_of_a_small_campaign_meets_no_picture_twice(
    session: Session, admin: User, *, one_class: bool
) -> None:
    campaign = golden(session, admin, examples=60, per_class=3, gold_share=0.3, gold_bound=0.0)
    campaign.confirm_yes = True
    people = [make_user(session) for _ in range(3)]

    asked = everything(session, campaign, people, one_class=one_class)

    for mine in asked.values():
        pictures = Counter(picture for picture, _, _ in mine)
        assert set(pictures.values()) == {1}
        assert any(is_known for *_, is_known in mine)
    known = {picture for mine in asked.values() for picture, _, is_known in mine if is_known}
    drawn = {picture for mine in asked.values() for picture, _, is_known in mine if not is_known}
    assert known & drawn, "others are asked the drawn questions about known pictures"
    everybodys = set.intersection(*({one[0] for one in mine if one[2]} for mine in asked.values()))
    assert len(drawn) == 60 - len(everybodys), "what all have met as a known picture waits for somebody else"
    assert service.standing(session, campaign, by=people[0]).waiting == 0


def test_a_picture_that_comes_twice_is_no_known_one_for_that(session: Session, admin: User) -> None:
    """With two rounds others come twice; known pictures do so no more often."""
    campaign = golden(session, admin, examples=60, rounds=2, per_class=3, gold_share=0.3, gold_bound=0.0)
    people = [make_user(session) for _ in range(2)]

    asked = everything(session, campaign, people, one_class=False)

    first, again = Counter[bool](), Counter[bool]()
    for mine in asked.values():
        met: set[int] = set()
        for picture, _, is_known in mine:
            (again if picture in met else first)[is_known] += 1
            met.add(picture)
        assert len({(picture, class_) for picture, class_, _ in mine}) == len(mine)
        assert max(Counter(picture for picture, _, _ in mine).values()) == 2
    assert again[False] > 20
    assert again[True] / again.total() <= first[True] / first.total()
