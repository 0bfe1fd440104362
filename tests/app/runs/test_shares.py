"""What is said of a model that takes nearly every picture of the target for one class."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.runs import trials
from app.runs.models import Run, Trial
from app.runs.shares import FACTS, has_collapsed, odd_shares
from app.stores.folder import FolderStorage
from tests.app.registry.conftest import publish
from tests.factories import NOW, make_dataset, make_run

HTML = {"accept": "text/html"}
CLASSES = ("dog", "giraffe", "guitar", "house")
SAID = (
    "takes 79 of 80 pictures of Paintings for “guitar”, 1 for “giraffe” and none for “dog” or “house”. "
    "Unless nearly all of them do show “guitar”, the model has collapsed"
)


@pytest.fixture
def run(session: Session, storage: FolderStorage) -> Run:
    """One that took 79 of 80 paintings without classes for guitars."""
    target = make_dataset(session, storage, name="Paintings", train=4, class_names=None)
    run = make_run(session, storage, train=8, target=target, classes=CLASSES)
    facts = {FACTS: [0, 1, 79, 0], "merged_class": 0}
    unmeasured = {"target_accuracy": None, "per_class_accuracy": None, "confusion": None, "scored_on": 0}
    publish(session, storage, run.trials[0], classes=list(CLASSES), **unmeasured, **facts)
    claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
    assert claim is not None
    trials.succeed_trial(session, claim, target_accuracy=None, result=facts, now=NOW)
    session.commit()
    session.expire_all()
    return run


def test_a_collapse_is_told_by_what_the_pictures_are_taken_for(
    client: TestClient, session: Session, run: Run
) -> None:
    trial_id = session.scalars(select(Trial.id)).one()
    page = client.get(f"/runs/{run.id}", headers=HTML).text
    model = client.get(f"/trials/{trial_id}/model", headers=HTML, follow_redirects=True).text

    assert f"Seed 0 {SAID}" in page
    assert "hardly any picture" not in page
    assert f"It {SAID}" in model
    assert f'href="/trials/{trial_id}/pictures"' in model
    assert f'href="/trials/{trial_id}/map"' in model


@pytest.mark.parametrize(
    ("counts", "collapsed"),
    [
        ([17, 3], True),
        ([16, 4], False),
        ([15, 0], False),  # too few to tell
        ([25, 25, 25, 25], False),
        ([10, 10, 77, 3], False),
        ([10, 9, 78, 3], True),
        ([73, *[3] * 9], True),
    ],
)
def test_unequal_classes_alone_are_no_collapse(counts: list[int], *, collapsed: bool) -> None:
    assert has_collapsed({FACTS: counts}) is collapsed
    assert bool(odd_shares({FACTS: counts}, [str(place) for place in range(len(counts))], "x")) is collapsed


def test_every_class_that_is_hardly_seen_is_named() -> None:
    facts = {FACTS: [2, 90, 90, 3], "merged_class": 0}

    said = odd_shares(facts, CLASSES, "Paintings")

    assert said.startswith(
        "takes hardly any picture of Paintings for “dog” and “house”. Each may have merged"
    )
    assert "for “dog”. It may have merged" in odd_shares({"merged_class": 0}, CLASSES, "Paintings")


def test_an_earlier_result_tells_it_of_the_pictures_that_score_it() -> None:
    facts = {"confusion": [[0, 30], [1, 29]]}

    assert odd_shares(facts, ("cat", "dog"), "Far").startswith(
        "takes 59 of 60 pictures of Far for “dog” and 1"
    )
    assert odd_shares({}, ("cat", "dog"), "Far") == ""


def test_of_many_classes_a_few_are_named() -> None:
    names = [f"c{place}" for place in range(40)]

    said = odd_shares({FACTS: [900, *range(1, 9), *[0] * 31]}, names, "Far")

    assert "“c8”, 7 for “c7”, 6 for “c6”, 5 for “c5”, 10 for other classes and none for “c9”" in said
    assert "“c12” or 27 other classes. Unless" in said
