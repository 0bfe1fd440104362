"""Drawing further: about images that have joined a campaign's dataset, or once more by a model's belief.

What was drawn stays. A further drawing has a seed and a commitment of its own. Its questions are put into
the table unseen, and all of them appear in the transaction that publishes its commitment.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, select, update
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import openings, service
from app.campaigns.believed import commitment_by_belief, digest_of
from app.campaigns.drawn import Belief, Drawing, Further
from app.campaigns.draws import commitment, new_seed
from app.campaigns.errors import AnotherDrawingWaits, EvaluationIsFixed, NothingFurther, WrongCampaignState
from app.campaigns.models import (
    Campaign,
    CampaignClass,
    CampaignState,
    DrawingBeliefs,
    FurtherDrawing,
)
from app.campaigns.noting import note
from app.claims import MAX_ATTEMPTS, ClaimLost
from app.datasets import versions
from app.datasets.models import Dataset, DatasetVersion
from app.journal.models import Action
from clarinet.files.names import strangers

RUNNING = (CampaignState.OPEN, CampaignState.PAUSED)


def belief_of(row: FurtherDrawing) -> Belief | None:
    """By what a drawing was drawn, or is to be; None: uniformly."""
    if row.model_id is None or row.floor_percent is None or row.round is None:
        return None
    return Belief(
        drawing_id=row.id,
        model_id=row.model_id,
        model_name=row.model_name or "",
        floor_percent=row.floor_percent,
        round=row.round,
        digest=row.beliefs_digest or "",
    )


def drawings_of(session: Session, campaign: Campaign) -> list[Drawing]:
    """What a campaign that was opened has drawn so far, in order."""
    rows = further_rows(session, campaign)
    further = [
        Drawing(
            number=row.number,
            seed=row.seed,
            commitment=row.commitment,
            dataset_version=row.dataset_version,
            dataset_digest=row.dataset_digest,
            first_position=row.first_position,
            end_position=row.end_position,
            first_rank=row.first_rank,
            question_count=row.question_count,
            drawn_at=row.drawn_at,
            belief=belief_of(row),
        )
        for row in rows
        if row.commitment is not None and row.drawn_at is not None
    ]
    if campaign.dataset_version is None or campaign.opened_at is None:
        return further
    first = Drawing(
        number=1,
        seed=campaign.seed,
        commitment=campaign.commitment or "",
        dataset_version=campaign.dataset_version,
        dataset_digest=campaign.dataset_digest or "",
        first_position=0,
        end_position=versions.version(session, campaign.dataset_id, campaign.dataset_version).image_count,
        first_rank=0,
        question_count=campaign.question_count - sum(item.question_count for item in further),
        drawn_at=campaign.opened_at,
    )
    return [first, *further]


def last_drawn(campaign_id: UUID) -> Select[int]:
    """The number of a campaign's last drawing that is there; questions of others nobody has seen."""
    drawn = FurtherDrawing.campaign_id == campaign_id, FurtherDrawing.drawn_at.is_not(None)
    return select(func.coalesce(func.max(FurtherDrawing.number), 1)).where(*drawn)


def pending_drawing(session: Session, campaign: Campaign) -> FurtherDrawing | None:
    """A further drawing that was asked for and is not there yet, or was given up."""
    return next((row for row in further_rows(session, campaign) if row.drawn_at is None), None)


def further_rows(session: Session, campaign: Campaign) -> list[FurtherDrawing]:
    """The drawings after the first, in order, the one that waits included."""
    query = select(FurtherDrawing).where(FurtherDrawing.campaign_id == campaign.id)
    return list(session.scalars(query.order_by(FurtherDrawing.number)))


def further_images(session: Session, campaign: Campaign) -> int:
    """How many images have joined the dataset about which the campaign asks nothing yet, and could."""
    if campaign.is_evaluation or campaign.state not in RUNNING or campaign.dataset_version is None:
        return 0
    dataset = session.get_one(Dataset, campaign.dataset_id)
    start, version = asked_until(session, campaign), versions.newest(session, dataset)
    if version.image_count <= start.image_count:
        return 0
    if not campaign.skip_twins:
        return version.train_count - start.train_count
    return len(_to_ask(session, campaign, start, version))


def further_strangers(session: Session, campaign: Campaign) -> str:
    """How many of those images, where there are any, are of no class of the campaign; "" where none is known.

    A sentence for admins, without a full stop.
    """
    dataset = session.get_one(Dataset, campaign.dataset_id)
    start, version = asked_until(session, campaign), versions.newest(session, dataset)
    before = [*(start.train_per_class or []), *[0] * len(version.class_names or ())]
    counts = [now - then for now, then in zip(version.train_per_class or [], before, strict=False)]
    told = strangers(
        campaign.class_names,
        version.class_names or [],
        counts,
        total=version.train_count - start.train_count,
        image="further image",
    )
    return f"{told}: every question about them deserves a no" if told else ""


def asked_until(session: Session, campaign: Campaign) -> DatasetVersion:
    """The last version that the campaign asks about, or will."""
    rows = further_rows(session, campaign)
    number = rows[-1].dataset_version if rows else campaign.dataset_version
    assert number is not None  # it was opened
    return versions.version(session, campaign.dataset_id, number)


def _to_ask(
    session: Session, campaign: Campaign, start: DatasetVersion, end: DatasetVersion
) -> list[tuple[int, int]]:
    return openings.examples_to_label(
        session,
        campaign.dataset_id,
        first_position=start.image_count,
        end_position=end.image_count,
        skip_twins=campaign.skip_twins,
    )


def ask_further(session: Session, campaign: Campaign, *, by: User, now: datetime) -> FurtherDrawing:
    """Ask for questions about the images that joined since; asking twice is asking once.

    Raises:
        NotAllowed: `by` is no admin.
        EvaluationIsFixed: it is an evaluation.
        WrongCampaignState: it is neither open nor paused.
        AnotherDrawingWaits: questions by a model's belief are being drawn.
        NothingFurther: no image has joined about which it does not ask.
    """
    accounts.require_admin(by)
    if campaign.is_evaluation:
        raise EvaluationIsFixed
    pending = pending_to_draw(session, campaign, by_belief=None, now=now)
    if pending is not None:
        return pending
    start = asked_until(session, campaign)
    end = versions.newest(session, session.get_one(Dataset, campaign.dataset_id, populate_existing=True))
    if not _to_ask(session, campaign, start, end):
        raise NothingFurther
    session.refresh(campaign, ["question_count"])
    assert end.number is not None  # it is published
    drawing = FurtherDrawing(
        campaign_id=campaign.id,
        number=len(further_rows(session, campaign)) + 2,
        seed=new_seed(),
        dataset_version=end.number,
        dataset_digest=end.digest or "",
        first_position=start.image_count,
        end_position=end.image_count,
        first_rank=campaign.question_count,
        requested_at=now,
        requested_by_id=by.id,
    )
    request_drawing(session, campaign, drawing, by=by, facts={})
    return drawing


def pending_to_draw(
    session: Session, campaign: Campaign, *, by_belief: tuple[UUID, int] | None, now: datetime
) -> FurtherDrawing | None:
    """The drawing that waits already, asked for once more; None where another may be asked for.

    `by_belief`: the model and the floor that are asked for; None: uniform questions.

    Raises:
        WrongCampaignState: it is neither open nor paused.
        AnotherDrawingWaits: what waits is not what is asked for.
    """
    service.lock_state(session, campaign)
    if campaign.state not in RUNNING:
        raise WrongCampaignState(step="extended", state=campaign.shown_state, needs="an open or a paused")
    pending = pending_drawing(session, campaign)
    if pending is None:
        return None
    if pending.failure is not None and pending.model_id is not None:
        session.delete(pending)  # what was missing then may never come
        session.flush()
        return None
    belief = belief_of(pending)
    if by_belief != (belief and (belief.model_id, belief.floor_percent)):
        waits = "about images that joined"
        if belief is not None:
            waits = f"by the belief of {belief.model_name} with a floor of {belief.floor_percent} %"
        raise AnotherDrawingWaits(waits, failed=pending.failure is not None)
    if pending.failure is not None:
        pending.failure, pending.attempts, pending.requested_at = None, 0, now
    jobs.enqueue(session, jobs.DRAW_FURTHER, campaign.id)
    return pending


def request_drawing(
    session: Session, campaign: Campaign, drawing: FurtherDrawing, *, by: User, facts: dict[str, object]
) -> None:
    """Put a drawing before the workers; the journal has its facts."""
    session.add(drawing)
    session.flush()
    facts |= {"drawing": drawing.number, "dataset_version": drawing.dataset_version}
    note(session, Action.ASKED_FURTHER, campaign, by=by, details=facts)
    jobs.enqueue(session, jobs.DRAW_FURTHER, campaign.id)


def _is_waiting() -> tuple[ColumnElement[bool], ...]:
    return (
        FurtherDrawing.drawn_at.is_(None),
        FurtherDrawing.failure.is_(None),
        FurtherDrawing.attempts < MAX_ATTEMPTS,
    )


def waiting_drawings(session: Session, now: datetime) -> list[UUID]:
    """Campaigns with a further drawing that no worker holds."""
    query = select(FurtherDrawing.campaign_id).where(*_is_waiting(), claims.unclaimed(FurtherDrawing, now))
    return list(session.scalars(query.order_by(FurtherDrawing.requested_at)))


def give_up_drawings(session: Session, now: datetime) -> None:
    """Say of drawings whose last worker went silent as well that they failed; the campaign stays as it is."""
    claims.give_up(
        session,
        FurtherDrawing,
        FurtherDrawing.drawn_at.is_(None),
        FurtherDrawing.failure.is_(None),
        now=now,
        failure=f"Drawing the questions was tried {MAX_ATTEMPTS} times and did not end. "
        "The worker's log says why; then ask for them again.",
    )


def claim_drawing(session: Session, campaign_id: UUID, *, by: str, now: datetime) -> Further | None:
    """Take a campaign's further drawing for the worker `by`; None if there is none or somebody has it."""
    waiting = select(FurtherDrawing.id).where(FurtherDrawing.campaign_id == campaign_id, *_is_waiting())
    drawing_id = session.scalar(waiting)
    if drawing_id is None:
        return None
    claim = claims.claim(session, FurtherDrawing, drawing_id, *_is_waiting(), by=by, now=now)
    if claim is None:
        return None
    row = session.get_one(FurtherDrawing, drawing_id, populate_existing=True)
    campaign = service.any_campaign(session, campaign_id)
    return Further(
        claim=claim,
        number=row.number,
        campaign_id=campaign_id,
        seed=row.seed,
        first_rank=row.first_rank,
        first_position=row.first_position,
        end_position=row.end_position,
        class_names=tuple(campaign.class_names),
        rounds=campaign.rounds,
        overlap=campaign.overlap,
        dataset_id=campaign.dataset_id,
        dataset_digest=row.dataset_digest,
        skip_twins=campaign.skip_twins,
        belief=belief_of(row),
    )


def last_number(session: Session, campaign_id: UUID) -> int:
    """The number of the last drawing that was asked for and not taken back by closing."""
    query = select(func.max(FurtherDrawing.number)).where(FurtherDrawing.campaign_id == campaign_id)
    return session.scalar(query) or 1


def fail_drawing(session: Session, further: Further, *, failure: str) -> None:
    """Say why questions cannot be drawn; the campaign stays as it is. Raises ClaimLost."""
    claims.release(session, further.claim, failure=failure)


def finish_drawing(
    session: Session,
    further: Further,
    *,
    drawn_per_class: list[int],
    beliefs: bytes | None = None,
    expected_yes: float = 0.0,
    now: datetime,
) -> None:
    """Count further questions in; who calls this makes them appear in the same transaction.

    Args:
        session: a writing one.
        further: what was claimed.
        drawn_per_class: K counts.
        beliefs: from which they were drawn, where they were not drawn uniformly.
        expected_yes: the sum of the probabilities with which they were, then.
        now: when.

    Raises:
        ClaimLost: somebody else draws them, or the campaign was closed; nothing was changed.
    """
    campaign = session.get_one(Campaign, further.campaign_id, populate_existing=True)
    service.lock_state(session, campaign)
    if campaign.state not in RUNNING:
        raise ClaimLost
    count = sum(drawn_per_class)
    claims.release(
        session,
        further.claim,
        drawn_at=now,
        question_count=count,
        commitment=_commitment(further, count, beliefs),
        beliefs_digest=None if beliefs is None else digest_of(beliefs),
    )
    if beliefs is not None:
        session.add(DrawingBeliefs(drawing_id=further.claim.id, data=beliefs))
    first = min(row.first_rank for row in further_rows(session, campaign))  # questions of the first drawing
    total = further.first_rank + count
    session.execute(
        update(Campaign)
        .where(Campaign.id == campaign.id)
        .values(
            question_count=total,
            rank_step=first * -(-total // first),
            believed_count=Campaign.believed_count + (0 if beliefs is None else count),
            believed_yes=Campaign.believed_yes + expected_yes,
        ),
        execution_options={"synchronize_session": False},
    )
    for position, drawn in enumerate(drawn_per_class):
        session.execute(
            update(CampaignClass)
            .where(CampaignClass.campaign_id == campaign.id, CampaignClass.position == position)
            .values(question_count=CampaignClass.question_count + drawn)
        )


def _commitment(further: Further, count: int, beliefs: bytes | None) -> str:
    if further.belief is not None and beliefs is not None:
        return commitment_by_belief(
            further.seed,
            dataset_digest=further.dataset_digest,
            examples=count,
            class_names=further.class_names,
            round_=further.belief.round,
            beliefs_digest=digest_of(beliefs),
            floor_percent=further.belief.floor_percent,
        )
    return commitment(
        further.seed,
        dataset_digest=further.dataset_digest,
        examples=count // further.rounds,
        class_names=further.class_names,
        rounds=further.rounds,
        first_position=further.first_position,
    )
