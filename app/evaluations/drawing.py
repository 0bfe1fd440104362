"""What a worker needs to open the campaign of an evaluation."""

from uuid import UUID

import numpy as np
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.annotation.models import Question
from app.campaigns import openings
from app.campaigns.draws import Draws
from app.campaigns.sampling import EVALUATED, draw_evaluation, images_to_mix_in, in_random_order
from app.evaluations.models import EvaluatedImage, Evaluation


def questions_to_ask(session: Session, opening: openings.Opening) -> tuple[Draws, dict[int, int]]:
    """The questions of an evaluation's campaign, and the id of the example at each position."""
    evaluation = session.scalars(
        select(Evaluation).where(Evaluation.campaign_id == opening.campaign_id)
    ).one()
    places = openings.examples_to_label(session, opening.dataset_id, end_position=opening.end_position)
    predicted = dict(
        session.execute(
            select(EvaluatedImage.example_id, EvaluatedImage.class_).where(
                EvaluatedImage.evaluation_id == evaluation.id, ~EvaluatedImage.is_known
            )
        ).all()
    )
    asked = [(position, predicted[id_]) for position, id_ in places if id_ in predicted]
    ordered = in_random_order(evaluation.sample_seed, [position for position, _ in places])
    drawn = draw_evaluation(
        opening.seed,
        np.array([position for position, _ in asked], dtype=np.int64),
        np.array([class_ for _, class_ in asked], dtype=np.int64),
        images_to_mix_in(
            ordered, sample=0 if evaluation.strata else evaluation.sample_size, count=evaluation.drawn_count
        ),
        num_classes=len(opening.class_names),
    )
    return drawn, dict(places)


def name_questions(session: Session, campaign_id: UUID) -> None:
    """Write beside each image which question judges it, once all of them are there."""
    evaluation = select(Evaluation.id).where(Evaluation.campaign_id == campaign_id).scalar_subquery()
    question = (
        select(Question.id)
        .where(
            Question.campaign_id == campaign_id,
            Question.example_id == EvaluatedImage.example_id,
            Question.round == EVALUATED,
        )
        .correlate(EvaluatedImage)
        .scalar_subquery()
    )
    session.execute(
        update(EvaluatedImage)
        .where(EvaluatedImage.evaluation_id == evaluation, ~EvaluatedImage.is_known)
        .values(question_id=question),
        execution_options={"synchronize_session": False},
    )
