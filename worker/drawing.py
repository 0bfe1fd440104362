"""Tasks: draw a campaign's questions and open it; draw further ones; draw them anew and compare."""

from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

import numpy as np
import structlog
from sqlalchemy import text
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts.models import User
from app.annotation import questions
from app.annotation import service as annotation
from app.campaigns import drawings, draws, openings
from app.campaigns.believed import draw_by_belief
from app.campaigns.drawn import Further
from app.campaigns.errors import CampaignNotFound
from app.campaigns.sampling import EVALUATED
from app.campaigns.service import any_campaign
from app.claims import ClaimLost
from app.clock import utc_now
from app.errors import AppError
from app.evaluations import service as evaluations
from app.quality import service as quality
from app.storage import StorageAway, StorageRefused
from worker.beating import renewing
from worker.believing import believed
from worker.context import Context

CHUNK = 5_000  # questions per transaction: short enough that answers in other campaigns do not wait long
WORKER = "drawing"

log = structlog.get_logger()


def open_campaign(context: Context, campaign_id: UUID) -> None:
    """Draw every question of a campaign whose opening was asked for; it opens when all of them are there.

    Safe to deliver twice and to lose. The claim lets one worker in, and each chunk renews it. An opening that
    was cut off starts again from the same seed.
    """
    with context.unit_of_work() as session:
        claimed = openings.claim_opening(session, campaign_id, by=WORKER, now=utc_now())
    if claimed is None:
        log.info("campaign.opening_not_ours", campaign_id=str(campaign_id))
        return
    claim, opening = claimed
    try:
        _draw(context, claim, opening)
    except ClaimLost:
        log.warning("campaign.opening_lost", campaign_id=str(campaign_id))


def check_draws(context: Context, campaign_id: UUID) -> None:
    """See whether a campaign's questions follow from its seed, and keep what was found.

    Safe to deliver twice and to lose: each check stands for itself, and upkeep asks for those that are due.
    """
    try:
        with context.reading() as session:
            campaign = quality.started_campaign(session, campaign_id, by=None)
            check = quality.check_draws(session, campaign, now=utc_now())
    except CampaignNotFound:
        log.info("campaign.nothing_to_check", campaign_id=str(campaign_id))
        return
    with context.unit_of_work() as session:
        quality.keep_check(session, check)


def draw_further(context: Context, campaign_id: UUID) -> None:
    """Draw the questions that an admin asked for about further images; all of them appear at once.

    As safe as `open_campaign`. Where closing the campaign came before, what was drawn is taken away.
    """
    with context.unit_of_work() as session:
        further = drawings.claim_drawing(session, campaign_id, by=WORKER, now=utc_now())
    if further is None:
        with context.unit_of_work() as session:
            # Unseen ones of a drawing that is no more; one that somebody holds has a number that counts.
            questions.forget_questions(
                session, campaign_id, since=drawings.last_number(session, campaign_id) + 1
            )
        return
    try:
        _draw_further(context, further)
    except ClaimLost:
        log.warning("campaign.drawing_lost", campaign_id=str(campaign_id), drawing=further.number)
    except StorageRefused as refusal:  # another worker's store may not; the last one says why
        with suppress(ClaimLost), context.unit_of_work() as session:
            if claims.is_last_attempt(session, further.claim):
                drawings.fail_drawing(session, further, failure=refusal.sentence)
            else:
                claims.release(session, further.claim)
        log.warning("campaign.drawing_refused", campaign_id=str(campaign_id), reason=str(refusal))
    except StorageAway as reason:
        with suppress(ClaimLost), context.unit_of_work() as session:
            claims.hand_back(session, further.claim)
        log.warning("campaign.drawing_handed_back", campaign_id=str(campaign_id), reason=str(reason))
    except AppError as refusal:
        with suppress(ClaimLost), context.unit_of_work() as session:
            drawings.fail_drawing(session, further, failure=refusal.detail)
        log.info("campaign.drawing_failed", campaign_id=str(campaign_id), reason=refusal.detail)


def _draw(context: Context, claim: claims.Claim, opening: openings.Opening) -> None:
    with context.unit_of_work() as session:
        claims.renew(session, claim, now=utc_now())
        questions.forget_questions(session, opening.campaign_id)
        if opening.sample is None:
            examples = openings.examples_to_label(
                session,
                opening.dataset_id,
                end_position=opening.end_position,
                skip_twins=opening.skip_twins,
            )
            drawn, example_ids = _drawn(opening, examples), dict(examples)
        else:
            drawn, example_ids = evaluations.questions_to_ask(session, opening)
    per_class = _put(context, claim, opening, drawn, example_ids, evaluates=opening.sample is not None)
    with context.unit_of_work() as session:
        _refresh_statistics(session)
        openings.finish_opening(
            session,
            claim,
            opening,
            drawn_per_class=per_class,
            evaluated=int(np.sum(drawn.rounds == EVALUATED)),
            now=utc_now(),
        )
        if opening.sample is not None:
            evaluations.name_questions(session, opening.campaign_id)
        _set_aside(session, opening.campaign_id)
        jobs.enqueue(session, jobs.CHECK_DRAWS, opening.campaign_id)
    log.info("campaign.opened", campaign_id=str(opening.campaign_id), questions=sum(per_class))


def _draw_further(context: Context, further: Further) -> None:
    with context.unit_of_work() as session:
        claims.renew(session, further.claim, now=utc_now())
        questions.forget_questions(session, further.campaign_id, since=further.number)
    drawn, example_ids, chances, beliefs = _further_questions(context, further)
    per_class = _put(
        context,
        further.claim,
        further,
        drawn,
        example_ids,
        drawing=further.number,
        first_rank=further.first_rank,
        chances=chances,
    )
    with context.unit_of_work() as session:
        drawings.finish_drawing(
            session,
            further,
            drawn_per_class=per_class,
            beliefs=beliefs,
            expected_yes=sum(chances or ()),
            now=utc_now(),
        )
        questions.show_questions(session, further.campaign_id, further.number)
        _set_aside(session, further.campaign_id, drawing=further.number)
        _refresh_statistics(session)
        jobs.enqueue(session, jobs.CHECK_DRAWS, further.campaign_id)
    log.info("campaign.drawn_further", campaign_id=str(further.campaign_id), questions=sum(per_class))


def _set_aside(session: Session, campaign_id: UUID, *, drawing: int = 1) -> None:
    """What nobody is asked counts as finished; the sums that say so are of whoever made the campaign."""
    campaign = any_campaign(session, campaign_id)
    by = session.get_one(User, campaign.created_by_id)
    annotation.set_aside_beside_classes(session, campaign, drawing=drawing, by=by, now=utc_now())


class _Questions(NamedTuple):
    drawn: draws.Draws
    example_ids: dict[int, int]  # by position
    chances: list[float] | None  # of each, where they were not drawn uniformly
    beliefs: bytes | None  # from which they were drawn then


def _further_questions(context: Context, further: Further) -> _Questions:
    if further.belief is None:
        with context.reading() as session:
            examples = openings.examples_to_label(
                session,
                further.dataset_id,
                first_position=further.first_position,
                end_position=further.end_position,
                skip_twins=further.skip_twins,
            )
        return _Questions(_drawn(further, examples), dict(examples), None, None)
    beat = renewing(context, further.claim)
    kept, example_ids = believed(context, further, further.belief, beat=beat)
    drawn, chances = draw_by_belief(
        further.seed, kept, round_=further.belief.round, floor_percent=further.belief.floor_percent
    )
    return _Questions(drawn, example_ids, chances.tolist(), kept.as_bytes())


def _drawn(what: openings.Opening | Further, examples: list[tuple[int, int]]) -> draws.Draws:
    positions = np.array([position for position, _ in examples], dtype=np.int64)
    return draws.draw(what.seed, positions, num_classes=len(what.class_names), rounds=what.rounds)


def _put(
    context: Context,
    claim: claims.Claim,
    what: openings.Opening | Further,
    drawn: draws.Draws,
    example_ids: dict[int, int],
    *,
    drawing: int = 1,
    first_rank: int = 0,
    evaluates: bool = False,
    chances: list[float] | None = None,
) -> list[int]:
    """Put drawn questions into the table; gives how many each class has."""
    num_classes = len(what.class_names)
    probability = draws.probabilities(num_classes)[0] if chances is None else chances
    for start in range(0, len(drawn), CHUNK):
        with context.unit_of_work() as session:
            claims.renew(session, claim, now=utc_now())
            questions.add_questions(
                session,
                what.campaign_id,
                drawn,
                example_ids=example_ids,
                probability=probability,
                overlap=what.overlap,
                start=start,
                stop=start + CHUNK,
                drawing=drawing,
                first_rank=first_rank,
                evaluates=evaluates,
            )
    counts: list[int] = np.bincount(drawn.classes, minlength=num_classes).tolist()
    return counts


def _refresh_statistics(session: Session) -> None:
    if session.get_bind().dialect.name == "postgresql":
        # Without fresh statistics the planner may sort the whole queue for each question it hands out.
        session.execute(text("ANALYZE question"))
