"""Drawing a campaign's questions anew, to see whether they are the ones that were promised."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.annotation.models import Purpose, Question
from app.campaigns import draws, openings, sampling
from app.campaigns.believed import commitment_by_belief, draw_by_belief
from app.campaigns.by_belief import kept_beliefs
from app.campaigns.drawings import drawings_of
from app.campaigns.drawn import Belief, Drawing
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.quality import chi_square
from app.quality.models import DrawCheck

EVERY = timedelta(days=1)


def check_draws(session: Session, campaign: Campaign, *, now: datetime) -> DrawCheck:
    """Draw all questions anew and compare; gives a row that is not stored. `campaign` was opened."""
    drawn = drawings_of(session, campaign)
    purpose = Purpose.EVALUATION if campaign.is_evaluation else Purpose.LABELLING
    query = (
        select(Question.rank, Example.position, Question.round, Question.candidate_class, Question.drawing)
        .join(Example, Example.id == Question.example_id)
        .where(
            Question.campaign_id == campaign.id,
            Question.purpose == purpose,
            Question.drawing <= drawn[-1].number,  # others are just being put there, and nobody sees them
        )
    )
    rows = session.connection().execute(query, execution_options={"yield_per": 20_000})
    # Straight into the array: a million rows as objects would take half a gigabyte.
    table = np.fromiter(chain.from_iterable(rows), dtype=np.int64).reshape(-1, 5)  # (Q, 5)
    step = drawn[0].question_count
    found: list[dict[str, Any]] = [
        {
            "number": drawing.number,
            "draws_match": _draws_match(session, campaign, drawing, table, step),
            "commitment_matches": _commitment_matches(campaign, drawing, table),
            "drawn_per_class": _per_class(campaign, table[table[:, 4] == drawing.number]),
        }
        for drawing in drawn
    ]
    first = _uniformity(campaign, [drawn[0].number], table)
    found[0]["uniformity"] = [first.statistic, first.degrees, first.p_value]
    uniformity = _uniformity(campaign, [item.number for item in drawn if item.belief is None], table)
    return DrawCheck(
        campaign_id=campaign.id,
        checked_at=now,
        draws_match=all(item["draws_match"] for item in found) and len(table) == campaign.question_count,
        commitment_matches=all(item["commitment_matches"] for item in found),
        drawings=found,
        drawn_per_class=_per_class(campaign, table),
        statistic=uniformity.statistic,
        degrees=uniformity.degrees,
        p_value=uniformity.p_value,
    )


def _per_class(campaign: Campaign, table: draws.Integers) -> list[int]:
    """How many questions ask about each class."""
    counts: list[int] = np.bincount(table[:, 3], minlength=campaign.num_classes).tolist()
    return counts


def keep_check(session: Session, check: DrawCheck) -> None:
    """Store a check in the place of the campaign's last one."""
    session.merge(check)


def waiting_checks(session: Session, now: datetime) -> list[UUID]:
    """Campaigns that were opened and whose draws were not checked for a day, or not since they closed."""
    query = (
        select(Campaign.id)
        .outerjoin(DrawCheck, DrawCheck.campaign_id == Campaign.id)
        .where(
            Campaign.opened_at.is_not(None),
            or_(
                DrawCheck.checked_at.is_(None),
                DrawCheck.checked_at < now - EVERY,
                DrawCheck.checked_at < Campaign.closed_at,
            ),
        )
    )
    return list(session.scalars(query.order_by(Campaign.opened_at)))


def _draws_match(
    session: Session, campaign: Campaign, drawing: Drawing, every: draws.Integers, step: int
) -> bool:
    """Whether drawing again gives the same questions, of the campaign's, in the same order.

    Questions that must be asked again went behind the queue in multiples of `step`, the number of questions
    that were drawn at first. A further drawing may have more: then its order is compared within steps.
    """
    table = every[every[:, 4] == drawing.number]
    if len(table) != drawing.question_count or not len(table):
        return False
    if drawing.belief is not None:
        drawn = _drawn_by_belief(session, drawing, drawing.belief, every)
        return drawn is not None and _is_same(drawn, drawing, table, step)
    places = openings.examples_to_label(
        session,
        campaign.dataset_id,
        first_position=drawing.first_position,
        end_position=drawing.end_position,
        skip_twins=campaign.skip_twins,
    )
    positions = [position for position, _ in places]
    drawn = (
        draws.draw(
            drawing.seed,
            np.array(positions, dtype=np.int64),
            num_classes=campaign.num_classes,
            rounds=campaign.rounds,
        )
        if campaign.sample_seed is None
        else _drawn_evaluation(campaign, campaign.sample_seed, drawing, positions, table)
    )
    return _is_same(drawn, drawing, table, step)


def _is_same(drawn: draws.Draws, drawing: Drawing, table: draws.Integers, step: int) -> bool:
    if len(drawn) != len(table):
        return False
    stored = table[np.lexsort((table[:, 2], table[:, 1]))]
    order = np.lexsort((drawn.rounds, drawn.positions))
    moved = stored[:, 0] - drawing.first_rank - drawn.ranks[order]
    return bool(
        np.array_equal(drawn.positions[order], stored[:, 1])
        and np.array_equal(drawn.rounds[order], stored[:, 2])
        and np.array_equal(drawn.classes[order], stored[:, 3])
        and np.all(moved >= 0)
        and np.all(moved % step == 0)
    )


def _drawn_by_belief(
    session: Session, drawing: Drawing, belief: Belief, every: draws.Integers
) -> draws.Draws | None:
    """Questions by a model's belief anew; None where the beliefs are not those that were committed to.

    Of each image they leave out the classes that earlier questions asked about, and no others.
    """
    found = kept_beliefs(session, belief.drawing_id)
    if found is None or found[1] != belief.digest:
        return None
    kept = found[0]
    earlier = every[(every[:, 4] < drawing.number) & np.isin(every[:, 1], kept.positions)]
    possible = np.ones(kept.possible.shape, np.bool_)
    possible[np.searchsorted(kept.positions, earlier[:, 1]), earlier[:, 3]] = False
    if not np.array_equal(possible, kept.possible):
        return None
    return draw_by_belief(drawing.seed, kept, round_=belief.round, floor_percent=belief.floor_percent)[0]


def _drawn_evaluation(
    campaign: Campaign, sample_seed: str, drawing: Drawing, positions: list[int], table: draws.Integers
) -> draws.Draws:
    """An evaluation's questions anew, about the predictions that were judged: none lies outside the sample.

    That these are the model's follows from the digest of their file, which the evaluation keeps.
    """
    size = 0 if campaign.sample_strata else campaign.sample_size or 0
    ordered = sampling.in_random_order(sample_seed, positions)
    judged = table[table[:, 2] == sampling.EVALUATED]
    if campaign.sample_strata:
        judged = judged[_is_in_strata(judged, ordered, campaign.sample_strata)]
    else:
        judged = judged[np.isin(judged[:, 1], ordered[:size])]
    others = sampling.images_to_mix_in(ordered, sample=size, count=int(np.sum(table[:, 2] == sampling.DRAWN)))
    return sampling.draw_evaluation(
        drawing.seed, judged[:, 1], judged[:, 3], others, num_classes=campaign.num_classes
    )


def _is_in_strata(
    judged: draws.Integers, ordered: draws.Integers, strata: Sequence[Sequence[int]]
) -> NDArray[np.bool_]:
    """(Q,) Whether each picture comes before the end of its class, which has no more of them than it may."""
    place = np.empty(int(ordered.max(initial=-1)) + 1, dtype=np.int64)
    place[ordered] = np.arange(len(ordered))
    sampled, ends = np.array(strata, dtype=np.int64)[:, 1:].T  # (K,) each
    classes = judged[:, 3]
    counts = np.bincount(classes, minlength=len(ends))
    found: NDArray[np.bool_] = (place[judged[:, 1]] < ends[classes]) & (counts <= sampled)[classes]
    return found


def _commitment_matches(campaign: Campaign, drawing: Drawing, table: draws.Integers) -> bool:
    if drawing.belief is not None:
        return drawing.commitment == commitment_by_belief(
            drawing.seed,
            dataset_digest=drawing.dataset_digest,
            examples=drawing.question_count,
            class_names=campaign.class_names,
            round_=drawing.belief.round,
            beliefs_digest=drawing.belief.digest,
            floor_percent=drawing.belief.floor_percent,
        )
    if campaign.sample_seed is not None:
        asked = int(np.sum(table[:, 2] == sampling.EVALUATED))
        return drawing.commitment == sampling.sample_commitment(
            drawing.seed,
            dataset_digest=drawing.dataset_digest,
            class_names=campaign.class_names,
            sample_seed=campaign.sample_seed,
            sample_size=campaign.sample_size or 0,
            strata=campaign.sample_strata,
            asked=asked,
            drawn=len(table) - asked,
        )
    return drawing.commitment == draws.commitment(
        drawing.seed,
        dataset_digest=drawing.dataset_digest,
        examples=drawing.question_count // campaign.rounds,
        class_names=campaign.class_names,
        rounds=campaign.rounds,
        first_position=drawing.first_position,
    )


def _uniformity(campaign: Campaign, numbers: list[int], table: draws.Integers) -> chi_square.ChiSquare:
    """The round that looks worst, its p-value corrected for how many rounds there are (Bonferroni).

    Draws of one round are independent over the examples; those of one example over the rounds are not. So
    are those of several drawings, each of which is a family of rounds of its own. Drawings by a model's
    belief are not uniform, and are left out.
    """
    tests = [
        chi_square.uniform(
            np.bincount(
                table[(table[:, 4] == drawing) & (table[:, 2] == round_), 3], minlength=campaign.num_classes
            ).tolist()
        )
        for drawing in numbers
        for round_ in range(campaign.rounds)
    ]
    worst = min(tests, key=lambda test: test.p_value)
    return chi_square.ChiSquare(worst.statistic, worst.degrees, min(1.0, worst.p_value * len(tests)))
