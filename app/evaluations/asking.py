"""Laying out an evaluation: how many images, which of them, what is known of them, what is left to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import openings
from app.campaigns import service as campaigns
from app.campaigns.classes import ClassDetails, checked_classes
from app.campaigns.draws import new_seed
from app.campaigns.models import Campaign, CampaignKind, CampaignState, Consensus, Modes
from app.campaigns.sampling import in_random_order, strata_of
from app.datasets import versions
from app.datasets.models import Dataset
from app.evaluations.errors import PredictionsDoNotFit
from app.evaluations.estimating import questions_needed
from app.evaluations.judging import settled_questions
from app.evaluations.models import EvaluatedImage, Evaluation
from app.journal import service as journal
from app.journal.models import Action
from app.languages import choose, speaking
from app.languages import gettext as _

CHUNK = 2_000  # rows of one statement
MOST_BASE = 110  # characters of a campaign's name, before its number


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A model and what it takes the target's images for."""

    name: str  # what people call it: "run 7, seed 0"
    run_id: UUID
    model_id: UUID
    dataset_id: UUID
    dataset_version: int
    classes: tuple[ClassDetails, ...]
    class_language: str
    instructions: str  # of the campaign that it learnt from
    digest: str  # of the file of predictions
    predicted: Mapping[int, int]  # class by id of the example

    @property
    def class_names(self) -> list[str]:
        """In the order of the predictions."""
        return [item.name for item in self.classes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What an admin chooses.

    Args:
        half_width: of the interval, as a fraction.
        expected: accuracy that they expect, which takes fewer questions than none; None: whatever it is.
        drawn_share: questions about drawn classes, per question about a prediction; at most 1.
        overlap: people who are asked each question.
        asks_which: after each no they name what the picture shows; answers of evaluations that did not ask
            this are not used again.
        by_class: draw from each predicted class by itself, so that rare ones are met.
    """

    half_width: float = 0.05
    expected: float | None = None
    drawn_share: float = 1.0
    overlap: int = 1
    asks_which: bool = False
    by_class: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an evaluation would take."""

    wishes: Wishes
    population: int  # images that the model predicted
    sample: int  # of these, drawn at random
    known: int  # of these, whose answer earlier evaluations have
    drawn: int  # questions about drawn classes
    earlier: int  # evaluations whose draw it shares

    @property
    def asked(self) -> int:
        """Questions about predictions."""
        return self.sample - self.known

    @property
    def answers(self) -> int:
        """That people give in all, at least."""
        return (self.asked + self.drawn) * self.wishes.overlap

    @property
    def is_whole(self) -> bool:
        """Whether every image is judged, so that nothing is left to chance but people's errors."""
        return self.sample == self.population


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every evaluation of a model stands on."""

    ordered: list[int]  # ids of the target's images, in random order
    sample_seed: str
    known: dict[tuple[int, int], int]  # question that is answered, by example and class
    earlier: int


@dataclass(frozen=True, slots=True)
class _Layout:
    plan: Plan
    sample_seed: str
    strata: list[list[int]] | None
    rows: list[tuple[int, int, int | None]]  # example, predicted class, question that is answered


def plans(session: Session, judged: Judged, wishes: Sequence[Wishes], *, by: User) -> list[Plan]:
    """How many questions each of these takes; nothing is stored.

    Raises:
        NotAllowed: `by` is no admin.
        PredictionsDoNotFit: the predictions are of other images.
    """
    accounts.require_admin(by)
    asks = {each.asks_which for each in wishes}
    grounds = {asks_which: _ground(session, judged, asks_which=asks_which) for asks_which in asks}
    return [_lay_out(grounds[each.asks_which], judged, each).plan for each in wishes]


def create_evaluation(
    session: Session, judged: Judged, wishes: Wishes, *, name: str = "", by: User, now: datetime
) -> Evaluation:
    """Draw the sample and draft the campaign in which people are asked, if anything is left to ask.

    `name`: of the campaign; "": one that tells what is judged.

    Raises:
        NotAllowed: `by` is no admin.
        PredictionsDoNotFit: the predictions are of other images.
        CampaignNameTaken: nothing was made.
    """
    accounts.require_admin(by)
    layout = _lay_out(_ground(session, judged, asks_which=wishes.asks_which), judged, wishes)
    campaign = None
    if layout.plan.asked:
        campaign = _draft(session, judged, layout, name=name or _free_name(session, judged), by=by, now=now)
    evaluation = Evaluation(
        run_id=judged.run_id,
        model_id=judged.model_id,
        campaign_id=campaign.id if campaign else None,
        dataset_id=judged.dataset_id,
        dataset_version=judged.dataset_version,
        class_names=judged.class_names,
        predictions_digest=judged.digest,
        half_width=wishes.half_width,
        population=layout.plan.population,
        sample_seed=layout.sample_seed,
        sample_size=layout.plan.sample,
        strata=layout.strata,
        known_count=layout.plan.known,
        drawn_count=layout.plan.drawn,
        created_by_id=by.id,
        created_at=now,
    )
    session.add(evaluation)
    session.flush()  # its images need its id
    for start in range(0, len(layout.rows), CHUNK):
        session.execute(
            insert(EvaluatedImage),
            [
                {
                    "evaluation_id": evaluation.id,
                    "example_id": example_id,
                    "class_": class_,
                    "question_id": question_id,
                    "is_known": question_id is not None,
                }
                for example_id, class_, question_id in layout.rows[start : start + CHUNK]
            ],
        )
    facts: dict[str, object] = {
        "model": judged.name,
        "pictures": layout.plan.sample,
        "known": layout.plan.known,
        "half_width": wishes.half_width,
        "by_class": wishes.by_class,
        "asks_which": wishes.asks_which,
    }
    facts |= {"campaign": campaign.name} if campaign else {}
    journal.write(
        session,
        Action.EVALUATION_MADE,
        by=by,
        campaign_id=campaign.id if campaign else None,
        details=facts,
    )
    return evaluation


def _ground(session: Session, judged: Judged, *, asks_which: bool) -> _Ground:
    version = versions.version(session, judged.dataset_id, judged.dataset_version)
    places = openings.examples_to_label(session, judged.dataset_id, end_position=version.image_count)
    example_ids = dict(places)
    if set(example_ids.values()) != judged.predicted.keys():
        raise PredictionsDoNotFit
    seeds = session.scalars(
        select(Evaluation.sample_seed)
        .where(Evaluation.dataset_id == judged.dataset_id)
        .order_by(Evaluation.created_at, Evaluation.id)
    ).all()
    seed = seeds[0] if seeds else new_seed()
    return _Ground(
        ordered=[example_ids[position] for position in in_random_order(seed, list(example_ids)).tolist()],
        sample_seed=seed,
        known=settled_questions(
            session, judged.dataset_id, class_names=judged.class_names, asks_which=asks_which
        ),
        earlier=len(seeds),
    )


def _lay_out(ground: _Ground, judged: Judged, wishes: Wishes) -> _Layout:
    population = len(ground.ordered)
    sample = min(population, questions_needed(wishes.half_width, wishes.expected))
    about = [(id_, judged.predicted[id_]) for id_ in ground.ordered]
    strata = None
    if wishes.by_class:
        strata = strata_of([class_ for _, class_ in about], sample=sample, num_classes=len(judged.classes))
        about = [one for place, one in enumerate(about) if place < strata[one[1]].end]
        sample = len(about)
    about = about[:sample]
    rows = [(id_, class_, ground.known.get((id_, class_))) for id_, class_ in about]
    known = sum(question_id is not None for *_, question_id in rows)
    found = Plan(
        wishes=wishes,
        population=population,
        sample=sample,
        known=known,
        drawn=min(population, int(wishes.drawn_share * (sample - known))),
        earlier=ground.earlier,
    )
    kept = None if strata is None else [list(stratum) for stratum in strata]
    return _Layout(found, ground.sample_seed, kept, rows)


def _draft(
    session: Session, judged: Judged, layout: _Layout, *, name: str, by: User, now: datetime
) -> Campaign:
    campaign = Campaign(
        name=name,
        kind=CampaignKind.EVALUATION,
        dataset_id=judged.dataset_id,
        dataset_version=judged.dataset_version,
        state=CampaignState.DRAFT,
        confirm_yes=False,
        overlap=layout.plan.wishes.overlap,
        consensus=Consensus.MAJORITY,
        asks_again=False,
        class_language=judged.class_language,
        instructions=judged.instructions,
        # A page takes every picture that is not tapped for a no.
        modes=Modes.CARD if layout.plan.wishes.asks_which else Modes.BOTH,
        asks_which=layout.plan.wishes.asks_which,
        seed=new_seed(),
        sample_seed=layout.sample_seed,
        sample_size=layout.plan.sample,
        sample_strata=layout.strata,
        created_by_id=by.id,
        created_at=now,
        classes=checked_classes(session, judged.dataset_id, judged.classes, rounds=1),
    )
    campaigns.add_campaign(session, campaign)
    return campaign


def _free_name(session: Session, judged: Judged) -> str:
    """ "What do you see? Shop photos", with a number where that is taken: it tells nothing of the model.

    In the language of its classes, where people can be spoken to in it.
    """
    with speaking(choose(None, judged.class_language)):
        asked = _("What do you see?")
    base = f"{asked} {session.get_one(Dataset, judged.dataset_id).name}"[:MOST_BASE]
    taken = set(session.scalars(select(Campaign.name).where(Campaign.name.startswith(base, autoescape=True))))
    names = (base if number == 1 else f"{base} ({number})" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)
