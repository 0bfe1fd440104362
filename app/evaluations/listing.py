"""Finding evaluations."""

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.evaluations.errors import EvaluationNotFound
from app.evaluations.models import Evaluation


def get_evaluation(session: Session, evaluation_id: UUID, *, by: User) -> Evaluation:
    """One evaluation.

    Raises:
        NotAllowed: `by` is no admin.
        EvaluationNotFound: there is none.
    """
    accounts.require_admin(by)
    evaluation = session.get(Evaluation, evaluation_id)
    if evaluation is None:
        raise EvaluationNotFound
    return evaluation


def evaluation_of(session: Session, campaign_id: UUID, *, by: User) -> Evaluation:
    """The one for which a campaign asks people.

    Raises:
        NotAllowed: `by` is no admin.
        EvaluationNotFound: it collects labels.
    """
    accounts.require_admin(by)
    evaluation = session.scalar(select(Evaluation).where(Evaluation.campaign_id == campaign_id))
    if evaluation is None:
        raise EvaluationNotFound
    return evaluation


def list_evaluations(
    session: Session,
    *,
    by: User,
    run_id: UUID | None = None,
    model_id: UUID | None = None,
    dataset_id: UUID | None = None,
    after: UUID | None = None,
    limit: int,
) -> tuple[list[Evaluation], UUID | None]:
    """Evaluations, newest first, and the id to give as `after` for the next page.

    Args:
        run_id, model_id: only those of this run, or of this model.
        dataset_id: only those whose images are of this dataset.

    Raises:
        NotAllowed: `by` is no admin.
        EvaluationNotFound: `after` is none.
    """
    accounts.require_admin(by)
    query = select(Evaluation).order_by(Evaluation.created_at.desc(), Evaluation.id.desc())
    wanted = {Evaluation.run_id: run_id, Evaluation.model_id: model_id, Evaluation.dataset_id: dataset_id}
    for column, value in wanted.items():
        if value is not None:
            query = query.where(column == value)
    if after is not None:
        last = get_evaluation(session, after, by=by)
        older = Evaluation.created_at < last.created_at
        query = query.where(older | ((Evaluation.created_at == last.created_at) & (Evaluation.id < last.id)))
    found = list(session.scalars(query.limit(limit + 1)))
    return found[:limit], found[limit - 1].id if len(found) > limit else None
