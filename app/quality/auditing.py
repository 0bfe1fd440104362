"""Checking a campaign: were its classes drawn as promised, and do the answers look right?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.beside_classes import count_beside_classes
from app.annotation.models import ALL_ANSWERS, AnswerValue, Tally
from app.annotation.progress import Counts, Progress, progress
from app.campaigns import service as campaigns
from app.campaigns.drawings import drawings_of
from app.campaigns.drawn import Drawing
from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign, CampaignState
from app.datasets import versions
from app.datasets.models import Dataset
from app.quality import chi_square, skips
from app.quality.draw_checks import check_draws
from app.quality.models import DrawCheck, KeptFigures
from app.quality.precomputed import is_large
from app.quality.seeing import SeenClasses, seen_classes
from clarinet.files.names import in_a_row

Shown = TypeVar("Shown")

ALARM = 0.001  # a test whose p-value lies below this is worth looking into


@dataclass(frozen=True, slots=True)
class NamedConcentration:
    """Where an answer that names no class is far more common than elsewhere."""

    answer: AnswerValue  # can't tell, or cannot be used
    class_name: str | None  # None: over all classes
    person: str | None  # name; None: of all people
    skips: int
    answers: int
    expected: float

    @property
    def said(self) -> str:
        """The answer in words."""
        return "can't tell" if self.answer is AnswerValue.UNSURE else "cannot be used"

    @property
    def sentence(self) -> str:
        """It in words, without a name: anybody may read them."""
        if self.person is None:
            what = f"“{self.said[0].upper()}{self.said[1:]}” concentrates on {self.class_name}"
        elif self.class_name is None:
            what = f"Somebody says “{self.said}” far more often than others"
        else:
            what = f"Somebody says “{self.said}” far more often about {self.class_name} than about the rest"
        return f"{what}: {self.skips} of {self.answers} answers, {self.expected:.0f} expected."


@dataclass(frozen=True, slots=True)
class Law:
    """How the classes of a drawing were drawn."""

    by_belief_of: str | None  # what the model is called; None: uniformly
    floor_percent: int | None  # of each question's probability that all possible classes share equally
    round: int | None  # of its questions
    beliefs_digest: str | None  # SHA-256 of what the model believed


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedDrawing:
    """One drawing of a campaign, as far as the reader may know it."""

    number: int
    drawn_at: datetime
    # What tells of which images it asks is None where `law` is: images that the campaign asked about before,
    # or too few of them, are of a drawing by belief.
    dataset_version: int | None
    dataset_digest: str | None
    dataset_unchanged: bool
    question_count: int | None
    first_position: int | None  # of the images that it asks about, in their dataset
    end_position: int | None
    commitment: str
    seed: str | None
    draws_match: bool | None
    commitment_matches: bool | None
    # How its classes were drawn; None: that is told once the campaign is closed, or the drawing waits for it.
    law: Law | None


@dataclass(frozen=True, slots=True)
class Audit:
    """What is known now. Recomputed facts are None before the first check and while the seed is secret."""

    commitment: str
    seed: str | None  # public once the campaign is closed
    # Of a closed evaluation, seed and size of its sample, to those who might see the seed before: later
    # evaluations of the same dataset go on with it.
    sample: tuple[str, int] | None
    dataset_digest: str
    dataset_unchanged: bool
    checked_at: datetime | None  # when the questions were last drawn anew; None: not yet
    draws_match: bool | None  # every class and its place in the queue follow from the seed
    commitment_matches: bool | None
    # Of the first drawing alone where the reader may not know how the classes of further ones were drawn.
    drawn_per_class: tuple[int, ...] | None
    uniformity: chi_square.ChiSquare | None  # of the drawn classes; over all rounds the one that looks worst
    uniformity_of: int  # of how many rounds of drawings, by whose number its p-value is corrected
    unsure_by_class: chi_square.ChiSquare  # whether "can't tell" is equally common for all classes
    unusable_by_class: chi_square.ChiSquare  # likewise "this picture cannot be used"
    concentrations: tuple[NamedConcentration, ...]  # where one of the two is far more common than elsewhere
    # How often chance gives a yes rate as far from 1 / K; None of an evaluation, or with questions by belief.
    yes_p_value: float | None
    yes_by_true_class: SeenClasses | None  # see seen_classes
    seen_at: datetime | None  # when that was counted; None: a job has yet to do it
    progress: Progress
    drawings: tuple[AuditedDrawing, ...]  # the first one's commitment, seed and dataset stand above as well
    beside_classes: int  # questions that nobody is asked: their pictures stand beside a class
    # What people answered is not told yet: who looks, answers and takes it back would see from what moves
    # which pictures are known, and which answer was right.
    hides_answers: bool

    def shown(self, figure: Shown) -> Shown | None:
        """A figure that depends on answers, if the reader may know it."""
        return None if self.hides_answers else figure

    def answered(self, counts: Counts) -> int | None:
        """Questions with a yes or a no, if the reader may know it."""
        return self.shown(counts.first_yes + counts.first_no)

    @property
    def is_by_belief(self) -> bool:
        """Whether some questions followed a model's belief, as far as the reader may know it."""
        return any(item.law is not None and item.law.by_belief_of is not None for item in self.drawings)

    @property
    def passed(self) -> bool | None:
        """Whether the draws are what was promised; None before the first check.

        An odd p-value alone does not refute recomputed draws.
        """
        if self.uniformity is None:
            return None
        recomputed = self.draws_match is True and self.commitment_matches is True
        refuted = self.draws_match is False or self.commitment_matches is False
        return self.dataset_unchanged and not refuted and (recomputed or self.uniformity.p_value >= ALARM)

    def _of_which(self, fact: str) -> str:
        """Of several drawings those at fault, in words that continue a sentence."""
        odd = [f"drawing {item.number}" for item in self.drawings if getattr(item, fact) is False]
        return f" of {in_a_row(odd)}" if len(self.drawings) > 1 and odd else ""

    @property
    def alarms(self) -> tuple[str, ...]:
        """What somebody should look at, in sentences."""
        found = []
        if not self.dataset_unchanged:
            found.append("The dataset is not the one the questions were drawn for.")
        if self.draws_match is False:
            found.append(f"The questions do not follow from the seed{self._of_which('draws_match')}.")
        if self.commitment_matches is False:
            which = self._of_which("commitment_matches") or " at opening"
            found.append(f"The seed is not the one that was committed to{which}.")
        if self.uniformity is not None and self.uniformity.p_value < ALARM:
            found.append("The drawn classes are less even than chance explains.")
        if self.hides_answers:
            return tuple(found)
        expected = self.progress.expected_yes_rate
        if expected is not None and self.yes_p_value is not None and self.yes_p_value < ALARM:
            found.append(
                f"{100 * (self.progress.counts.yes_rate or 0):.1f} % of the first answers are yes, and "
                f"{100 * expected:.1f} % were expected: some pictures may show none "
                "of the classes, or not everybody looks."
            )
        found += [item.sentence for item in self.concentrations]
        return tuple(found)


def started_campaign(session: Session, campaign_id: UUID, *, by: User | None) -> Campaign:
    """A campaign that was opened, with its classes: whoever is admitted may check how they were drawn.

    Args:
        by: who asks; None: the program.

    Raises:
        CampaignNotFound: there is none that `by` may know of, or it is a draft.
    """
    if by is None:
        campaign = campaigns.any_campaign(session, campaign_id)
    else:
        campaign = campaigns.visible_campaign(session, campaign_id, by=by)
    if campaign.state is CampaignState.DRAFT:
        raise CampaignNotFound
    return campaign


def audit(
    session: Session, campaign: Campaign, *, now: datetime, has_seed: bool = False, recompute: bool = False
) -> Audit:
    """What is known of a campaign that was opened; `campaign` has its classes.

    Args:
        session: a reading one.
        campaign: open, paused or closed.
        now: for the pace in the progress.
        has_seed: for somebody who may see the seed: tell what recomputing the draws gave, and what people
            answered, before the campaign is closed.
        recompute: draw all questions anew and read all answers, which takes seconds for a million. Without it
            the last check is told and, of a large campaign, what a job kept.
    """
    is_public = campaign.state is CampaignState.CLOSED
    hides_answers = not (is_public or has_seed)
    dataset = session.get_one(Dataset, campaign.dataset_id)
    check = check_draws(session, campaign, now=now) if recompute else session.get(DrawCheck, campaign.id)
    far = progress(session, campaign, now=now)
    recomputed = check if is_public or has_seed else None
    seen_at, seen = _seen(session, campaign, dataset, now=now, recompute=recompute)
    drawn = drawings_of(session, campaign)
    drawings = tuple(
        _audited(
            session, campaign, dataset, drawn, recomputed, is_public=is_public, tells_law=not hides_answers
        )
    )
    per_class, uniformity = _drawn(check, first_alone=hides_answers)
    return Audit(
        commitment=campaign.commitment or "",
        seed=campaign.seed if is_public else None,
        sample=(campaign.sample_seed, campaign.sample_size)
        if campaign.sample_seed and campaign.sample_size and is_public and has_seed
        else None,
        dataset_digest=campaign.dataset_digest or "",
        dataset_unchanged=all(item.dataset_unchanged for item in drawings),
        checked_at=check.checked_at if check else None,
        draws_match=recomputed.draws_match if recomputed else None,
        commitment_matches=recomputed.commitment_matches if recomputed else None,
        drawn_per_class=per_class,
        uniformity=uniformity,
        uniformity_of=_rounds_tested(campaign, drawn, check, first_alone=hides_answers),
        unsure_by_class=chi_square.same_rate(
            [item.counts.unsure for item in far.classes], [item.counts.total for item in far.classes]
        ),
        unusable_by_class=chi_square.same_rate(
            [item.counts.unusable for item in far.classes], [item.counts.total for item in far.classes]
        ),
        concentrations=tuple(_concentrations(session, campaign)),
        # By a model's belief more questions are answered yes than one in K.
        yes_p_value=None if any(item.belief for item in drawn) else _yes_p_value(far),
        yes_by_true_class=None if hides_answers else seen,
        seen_at=None if hides_answers else seen_at,
        progress=far,
        drawings=drawings,
        beside_classes=count_beside_classes(session, campaign.id),
        hides_answers=hides_answers,
    )


def _drawn(
    check: DrawCheck | None, *, first_alone: bool
) -> tuple[tuple[int, ...] | None, chi_square.ChiSquare | None]:
    """Questions per class and the test of them: if further uniform ones counted, others would stand out."""
    if check is None:
        return None, None
    return check.first() if first_alone else (tuple(check.drawn_per_class), check.uniformity)


def _rounds_tested(
    campaign: Campaign, drawn: Sequence[Drawing], check: DrawCheck | None, *, first_alone: bool
) -> int:
    """Rounds of uniform drawings that the check tested; one that came later is told with the next."""
    if check is None:
        return 0
    checked = {item["number"] for item in check.drawings} or {1}
    uniform = [item for item in drawn if item.belief is None and item.number in checked]
    return campaign.rounds * (1 if first_alone else len(uniform))


def _audited(
    session: Session,
    campaign: Campaign,
    dataset: Dataset,
    drawn: Sequence[Drawing],
    check: DrawCheck | None,
    *,
    is_public: bool,
    tells_law: bool,
) -> Iterator[AuditedDrawing]:
    # Who knows that a model's guess is asked about says yes more readily: until the campaign is closed,
    # people are told of no further drawing how its classes were drawn.
    found = {item["number"]: item for item in check.drawings} if check else {}
    digests = {item.number: item.digest for item in versions.versions_of(session, campaign.dataset_id)}
    digests[max(filter(None, digests), default=0)] = dataset.digest  # its own row says what the newest holds
    for drawing in drawn:
        checked = found.get(drawing.number, {})
        is_told = tells_law or drawing.number == 1  # the first one of a campaign is uniform
        yield AuditedDrawing(
            number=drawing.number,
            drawn_at=drawing.drawn_at,
            dataset_version=drawing.dataset_version if is_told else None,
            dataset_digest=drawing.dataset_digest if is_told else None,
            dataset_unchanged=digests.get(drawing.dataset_version) == drawing.dataset_digest,
            question_count=drawing.question_count if is_told else None,
            first_position=drawing.first_position if is_told else None,
            end_position=drawing.end_position if is_told else None,
            commitment=drawing.commitment,
            seed=drawing.seed if is_public else None,
            draws_match=checked.get("draws_match"),
            commitment_matches=checked.get("commitment_matches"),
            law=_law(drawing) if is_told else None,
        )


def _law(drawing: Drawing) -> Law:
    belief = drawing.belief
    if belief is None:
        return Law(None, None, None, None)
    return Law(belief.model_name, belief.floor_percent, belief.round, belief.digest)


def _seen(
    session: Session, campaign: Campaign, dataset: Dataset, *, now: datetime, recompute: bool
) -> tuple[datetime | None, SeenClasses | None]:
    """What people see in images of each true class, and as of when."""
    if recompute or not is_large(campaign):
        return now, seen_classes(session, campaign, dataset)
    kept = session.get(KeptFigures, campaign.id)
    if kept is None:
        return None, None
    seen = kept.yes_by_true_class
    return kept.computed_at, None if seen is None else tuple(tuple(row) for row in seen)


def _yes_p_value(far: Progress) -> float | None:
    """Of the yes rate against 1 / K: which it is whatever images show, and whatever people see in them."""
    yes, no = far.counts.first_yes, far.counts.first_no
    rate = far.expected_yes_rate
    if rate is None:
        return None
    return chi_square.goodness_of_fit([yes, no], [(yes + no) * rate, (yes + no) * (1 - rate)]).p_value


def _concentrations(session: Session, campaign: Campaign) -> Iterator[NamedConcentration]:
    rows = session.execute(
        select(Tally.user_id, User.name, Tally.candidate_class, Tally.unsure, Tally.unusable, ALL_ANSWERS)
        .join(User, User.id == Tally.user_id)
        .where(Tally.campaign_id == campaign.id)
        .order_by(User.name, Tally.user_id)
    ).all()
    names = {row.user_id: row.name for row in rows}
    places = {user_id: place for place, user_id in enumerate(names)}
    people = list(names.values())
    unsure = np.zeros((len(places), campaign.num_classes), dtype=np.int64)
    unusable, answers = np.zeros_like(unsure), np.zeros_like(unsure)
    for user_id, _, class_, *counts in rows:
        place = places[user_id], class_
        unsure[place], unusable[place], answers[place] = counts
    for answer, skipped in ((AnswerValue.UNSURE, unsure), (AnswerValue.UNUSABLE, unusable)):
        for item in skips.concentrations(skipped, answers):
            yield NamedConcentration(
                answer=answer,
                class_name=None if item.class_ is None else campaign.class_names[item.class_],
                person=None if item.person is None else people[item.person],
                skips=item.skips,
                answers=item.answers,
                expected=item.expected,
            )
