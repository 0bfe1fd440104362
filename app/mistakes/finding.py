"""What is known of a trial picture by picture: its own file, or a prediction of its target in that place."""

from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from app.accounts import service as accounts
from app.accounts.models import User
from app.evaluations import service as evaluations
from app.evaluations.service import Verdict
from app.mistakes.errors import ClassNotFound, PictureNotFound, PicturesNotKept, TrialNotFound
from app.mistakes.listing import Listing, Wanted, groups_of
from app.mistakes.tables import pictures_of_table
from app.registry.kept_pictures import Among, KeptPictures, kept_pictures
from app.registry.models import Model
from app.registry.prediction_models import Prediction, PredictionState
from app.runs.models import Run, Trial, TrialState
from app.storage import Storage

NOT_OVER = "This trial has not ended well, so no model of it says anything of single pictures."
DELETED = (
    "The model of this trial was deleted, and what it said of each picture with it. Repeat the run to see it."
)
OLDER = (
    "This trial ended before Clarinet kept what a model says of each picture. Let its model predict the "
    "target, and the lists are made of that prediction."
)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a trial's model says of pictures.

    Args:
        prediction: from which it is known; None: from the file that the trial's end left.
        verdicts: what people say of its predictions, by example.
    """

    trial: Trial
    model: Model
    kept: KeptPictures
    prediction: Prediction | None
    verdicts: dict[int, Verdict]

    @property
    def run(self) -> Run:
        """The trial's, with all of its trials."""
        return self.trial.run

    @property
    def classes(self) -> list[str]:
        """The run's, in order."""
        return list(self.run.snapshot_facts["classes"])

    @cached_property
    def groups(self) -> dict[Among, int]:
        """How many pictures there are of each kind; those that score first."""
        return groups_of(self.kept)

    @property
    def first_group(self) -> Among:
        """What is shown unless somebody asks for others."""
        return next(iter(self.groups), Among.TRAIN)

    def listing(self, wanted: Wanted) -> Listing:
        """A list of its pictures.

        Raises:
            ClassNotFound: it is limited to a class that the run has not.
        """
        self.check_class(wanted.true_class)
        self.check_class(wanted.predicted_class)
        denied = {example_id for example_id, said in self.verdicts.items() if said.is_right is False}
        return Listing(self.kept, wanted, denied)

    def check_class(self, place: int | None) -> None:
        """Refuse the place of no class of the run; raises ClassNotFound."""
        if place is not None and place >= len(self.classes):
            raise ClassNotFound(place, len(self.classes))

    @property
    def datasets(self) -> set[UUID]:
        """Whose pictures there are."""
        return {self.run.source_dataset_id, self.run.target_dataset_id}

    def dataset_of(self, row: int) -> UUID:
        """Whose picture it is."""
        is_source = self.kept.among[row] == Among.SOURCE.code
        return self.run.source_dataset_id if is_source else self.run.target_dataset_id

    def row_of(self, example_id: int) -> int:
        """The row of a picture.

        Raises:
            PictureNotFound: the model was not asked about it.
        """
        found = np.flatnonzero(self.kept.example_ids == example_id)
        if not len(found):
            raise PictureNotFound
        return int(found[0])


def get_trial(session: Session, trial_id: UUID, *, by: User) -> Trial:
    """One trial with its run and this one's other trials.

    Raises:
        NotAllowed: `by` is no admin.
        TrialNotFound: there is none.
    """
    accounts.require_admin(by)
    whole = joinedload(Trial.run).selectinload(Run.trials)
    trial = session.scalars(select(Trial).where(Trial.id == trial_id).options(whole)).one_or_none()
    if trial is None:
        raise TrialNotFound
    return trial


def model_of(session: Session, trial: Trial) -> Model:
    """What the trial published.

    Raises:
        PicturesNotKept: it has not ended well, or its model was deleted.
    """
    model = session.scalar(select(Model).where(Model.trial_id == trial.id))
    if model is None:
        raise PicturesNotKept(DELETED if trial.state is TrialState.SUCCEEDED else NOT_OVER)
    return model


def look(session: Session, storage: Storage, trial_id: UUID, *, by: User) -> Seen:
    """What is known of a trial's pictures.

    Raises:
        NotAllowed: `by` is no admin.
        TrialNotFound: there is none.
        PicturesNotKept: it has no model, or one that is older than the file and has not predicted its target.
        StoredFileMissing, StoredFileDamaged: the server has lost a file.
    """
    trial = get_trial(session, trial_id, by=by)
    model = model_of(session, trial)
    kept, prediction = kept_pictures(storage, model), None
    if kept is None:
        prediction = newest_prediction(session, trial, model, PredictionState.READY)
        if prediction is None:
            raise PicturesNotKept(OLDER, is_older=True)
        kept = pictures_of_table(session, storage, prediction, list(trial.run.snapshot_facts["classes"]))
    return Seen(trial, model, kept, prediction, evaluations.verdicts_of(session, model.id))


def newest_prediction(
    session: Session, trial: Trial, model: Model, *states: PredictionState
) -> Prediction | None:
    """The last prediction of the run's target by the trial's model that stands like one of these."""
    return session.scalar(
        select(Prediction)
        .where(
            Prediction.model_id == model.id,
            Prediction.dataset_id == trial.run.target_dataset_id,
            Prediction.state.in_(states),
        )
        .order_by(Prediction.created_at.desc(), Prediction.id.desc())
        .limit(1)
    )
