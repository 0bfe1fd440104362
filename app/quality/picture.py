"""One picture of a dataset: what is known of it, and what people said of it in which campaign."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session, selectinload

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation.models import Answer, AnswerValue, Question
from app.campaigns.admission import image_visible_to
from app.campaigns.models import Campaign, CampaignState
from app.datasets import service as datasets
from app.datasets.errors import ExampleNotFound
from app.datasets.models import Dataset, Example, Split
from app.quality.models import Decision


@dataclass(frozen=True, slots=True)
class Said:
    """What people said to one class of a campaign about a picture."""

    class_name: str
    counts: Counter[AnswerValue] = field(default_factory=Counter)
    decision: AnswerValue | None = None  # of a reviewer, in their place


@dataclass(frozen=True, slots=True)
class AskedIn:
    """A campaign that asks about a picture."""

    id: UUID
    name: str
    said: Sequence[Said]  # by class; one without counts was asked of nobody yet


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture of a dataset, and those beside it among the same split and class."""

    dataset: Dataset
    example: Example
    asked: Sequence[AskedIn]
    before: int | None  # example ids
    behind: int | None


def picture(
    session: Session,
    dataset_id: UUID,
    example_id: int,
    *,
    by: User,
    split: Split | None = None,
    true_class: int | None = None,
) -> Shown:
    """A picture with what was said; reviewers see those of datasets over which a campaign was opened.

    Raises:
        NotAllowed: `by` is no reviewer.
        ExampleNotFound: there is no such picture that `by` may see.
    """
    accounts.require_reviewer(by)
    example = session.scalar(
        select(Example)
        .join(Dataset, Dataset.id == Example.dataset_id)
        .where(Dataset.id == dataset_id, Example.id == example_id, image_visible_to(by))
    )
    if example is None:
        raise ExampleNotFound
    before, behind = datasets.beside(session, example, split=split, true_class=true_class)
    dataset = datasets.any_dataset(session, dataset_id)
    return Shown(dataset, example, _asked(session, example), before, behind)


def _asked(session: Session, example: Example) -> list[AskedIn]:
    """By campaign, in the order in which these were made."""
    campaigns = session.scalars(
        select(Campaign)
        .options(selectinload(Campaign.classes))
        .where(Campaign.dataset_id == example.dataset_id, Campaign.state != CampaignState.DRAFT)
        .order_by(Campaign.created_at, Campaign.id)
    ).all()
    questions = session.execute(
        select(
            Question.id, Question.campaign_id, Question.candidate_class, Answer.value, func.count(Answer.id)
        )
        .outerjoin(Answer, (Answer.question_id == Question.id) & Answer.superseded_at.is_(None))
        .where(
            Question.campaign_id.in_([campaign.id for campaign in campaigns]),
            Question.example_id == example.id,
        )
        .group_by(Question.id, Question.campaign_id, Question.candidate_class, Answer.value)
        .order_by(Question.candidate_class)
    ).all()
    decided = dict(
        session.execute(
            select(Decision.question_id, Decision.value).where(
                Decision.question_id.in_({row.id for row in questions}), Decision.superseded_at.is_(None)
            )
        ).all()
    )
    found = []
    for campaign in campaigns:
        classes: dict[int, Counter[AnswerValue]] = {}
        settled: dict[int, AnswerValue] = {}
        for id_, campaign_id, class_, value, count in questions:
            if campaign_id != campaign.id:
                continue
            counts = classes.setdefault(class_, Counter())
            if value is not None:
                counts[value] += count
            if id_ in decided:
                settled[class_] = decided[id_]
        if classes:
            names = campaign.class_names
            said = [Said(names[class_], counts, settled.get(class_)) for class_, counts in classes.items()]
            found.append(AskedIn(campaign.id, campaign.name, said))
    return found
