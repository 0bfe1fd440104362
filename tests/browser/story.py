"""One of everything in a database, with names as long as they may be, and the pages that show it."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.datasets.models import Dataset, DatasetState
from app.journal import service as journal
from app.journal.models import Action
from app.labels.models import LabelImport
from app.members import service as members
from app.registry import service as registry
from app.registry.models import Model
from app.runs.models import Run, TrialState
from app.stores.folder import FolderStorage
from tests.factories import answer, make_campaign, make_dataset, make_run, make_user, questions_of

CLASSES = 3
NAME, CLASS_NAME = 100, 80  # characters; a class has no more


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a length, in one word or in several."""

    pattern: str

    def of(self, what: str, length: int = NAME) -> str:
        """A name that begins with what it is for."""
        return (what + self.pattern * length)[:length].strip().ljust(length, "x")


ONE_WORD, WORDS = Names("Abcdefghij"), Names(" quite long")


def tell(session: Session, storage: FolderStorage, names: Names, *, admin: User) -> dict[str, str]:
    """Make one of everything and commit; gives the paths of its pages by name."""
    now = utc_now()
    classes = [names.of(f"Class{number}", CLASS_NAME) for number in range(CLASSES)]
    source, target = (
        make_dataset(session, storage, name=names.of(kind), class_names=classes, train=30, test=6, by=admin)
        for kind in ("Source", "Target")
    )
    source.description = names.of("Description")
    target.faults = [{"file": names.of("File"), "why": "is no picture"}]
    failed = Dataset(
        name=names.of("Failed"),
        state=DatasetState.FAILED,
        failure=f"“{names.of('file')}” is no picture.",
        created_by_id=admin.id,
        created_at=now,
    )
    session.add(failed)
    opened = make_campaign(session, dataset=source, name=names.of("Campaign"))
    draft = make_campaign(session, dataset=source, name=names.of("Draft"), state="draft")
    for campaign in (opened, draft):
        campaign.instructions = names.of("Instructions")
        campaign.class_language = "en"
        for item in campaign.classes:
            item.description = names.of("Meaning")
    person = make_user(session)
    person.name = names.of("Person")
    asked = questions_of(session, opened)
    for question, value in zip(asked, ("yes", "no", "unsure"), strict=False):
        answer(session, opened, question.id, value, by=person, now=now)
    accounts.create_token(session, person, names.of("Token"), now=now)
    model = _trained(session, storage, opened, target, note=names.of("Note"), admin=admin)
    members.add_member(session, opened, person.id, by=admin)
    members.make_link(
        session, opened, answers_needed=50, max_workers=9, note_=names.of("Study"), by=admin, now=now
    )
    counts = {"yes": 1, "no": 1, "unsure": 0}
    session.add(
        LabelImport(
            campaign_id=opened.id,
            filename=names.of("labels"),
            digest="d" * 64,
            created_by_id=admin.id,
            created_at=now,
            **counts,
        )
    )
    journal.write(
        session,
        Action.CAMPAIGN_CREATED,
        by=admin,
        campaign_id=opened.id,
        details={"campaign": opened.name, "classes": ", ".join(classes)},
    )
    session.commit()
    return _pages(source, target, failed, opened, draft, person, model)


def _trained(
    session: Session, storage: FolderStorage, campaign: Campaign, target: Dataset, *, note: str, admin: User
) -> Model:
    """A run over a campaign that has ended, and its model."""
    run = make_run(session, storage, state=TrialState.SUCCEEDED, target=target)
    unused = campaigns.any_campaign(session, run.campaign_id)
    run.campaign_id, run.note = campaign.id, note
    session.flush()
    session.delete(unused)
    names = campaign.class_names
    counts = [10] * len(names)
    run.snapshot_facts = run.snapshot_facts | {"classes": names, "complementary": counts, "true": counts}
    matrix = [[5 if row == column else 1 for column in range(len(names))] for row in range(len(names))]
    trial = run.trials[0]
    trial.target_accuracy = 0.8
    trial.result = {"per_class_accuracy": [0.8] * len(names), "confusion": matrix}
    card = _card(run) | {"classes": names, "confusion": matrix, "per_class_accuracy": [0.8] * len(names)}
    key = registry.key_of(trial.id, 1)
    digest = storage.put(f"{key}/{registry.WEIGHTS}", b"weights")
    journal.write(session, Action.RUN_STARTED, by=admin, campaign_id=campaign.id, details={"note": note})
    return registry.publish_model(
        session, trial_id=trial.id, key=key, digest=digest, size_bytes=7, card=card, now=utc_now()
    )


def _card(run: Run) -> dict[str, object]:
    return {
        "run": run.number,
        "run_id": str(run.id),
        "seed": 0,
        "method": run.method,
        "setting": run.setting,
        "preset": run.preset,
        "config": run.config,
        "labels": run.snapshot_facts,
        "label_snapshot": run.snapshot_digest,
        "target_accuracy": 0.8,
        "scored_on": 6,
        "epochs": 2,
        "seconds": 1.5,
        "versions": {"torch": "2.15"},
    }


def _pages(  # noqa: PLR0917  # one of everything
    source: Dataset,
    target: Dataset,
    failed: Dataset,
    opened: Campaign,
    draft: Campaign,
    person: User,
    model: Model,
) -> dict[str, str]:
    at = f"/campaigns/{opened.id}"
    datasets: dict[str, UUID] = {"source": source.id, "target": target.id, "failed": failed.id}
    return {
        "annotate-list": "/annotate",
        "annotate": f"/annotate/{opened.id}?mode=card",
        "annotate-pages": f"/annotate/{opened.id}?mode=grid",
        "campaigns": "/campaigns",
        "campaign": at,
        "campaign-draft": f"/campaigns/{draft.id}",
        "campaign-edit": f"/campaigns/{draft.id}/edit",
        "campaign-pictures": f"/campaigns/{draft.id}/pictures",
        **{
            f"campaign-{part}": f"{at}/{part}"
            for part in ("audit", "quality", "review", "plan", "imports", "members")
        },
        "run-new": f"{at}/runs/new",
        "datasets": "/datasets",
        "dataset-new": "/datasets/new",
        **{f"dataset-{name}": f"/datasets/{id_}" for name, id_ in datasets.items()},
        "runs": "/runs",
        "runs-of-campaign": f"/runs?campaign_id={opened.id}",
        "run": f"/runs/{model.card['run_id']}",
        "models": "/models",
        "models-of-dataset": f"/models?dataset_id={source.id}",
        "model": f"/models/{model.id}",
        "weights": "/weights",
        "people": "/people",
        "person": f"/people/{person.id}",
        "journal": f"/journal?campaign_id={opened.id}",
        "account": "/account",
        "second-factor": "/account/second-factor",
        "problem": "/problems/campaign-not-open",
        "not-found": "/nothing-here",
    }
