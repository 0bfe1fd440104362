"""Labels by the answers of such a round: with the probability of each, weighed, exported, trained on."""

import csv
import io
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Answer
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.labels import service as labelling
from app.quality import precomputed
from app.quality import service as quality
from app.quality.minding import alone
from app.quality.people import people
from app.registry.models import Model
from app.runs.labels import collect, freeze, thaw
from app.runs.models import Run
from app.stores.folder import FolderStorage
from clarinet.files.label_files import load_labels
from clarinet.files.label_table import COMPLEMENTARY, TRUE
from clarinet.recipes.config import TrainConfig
from tests.factories import NOW, answer, make_campaign, make_dataset, make_user, questions_of
from tests.worker.belief_rounds.asking import CLASSES, HTML, answer_all, draw, of_round, truth
from worker.context import Context
from worker.trainer.trial_data import load


def test_labels_keep_the_noes_before_a_yes_with_the_probability_of_each_answer(
    session: Session, storage: FolderStorage, asked_again: Campaign
) -> None:
    answer_all(session, asked_again)
    session.commit()
    second = {q.example_id: q for q in of_round(session, asked_again)}
    right = {id_ for id_, q in second.items() if truth(session, q) == q.candidate_class}
    assert right

    found, facts = collect(session, asked_again)
    labels = thaw(storage, freeze(storage, found), num_classes=4)

    assert facts["by_belief"] == len(second)
    assert labels.probabilities is not None
    assert labels.excluded is not None
    assert labels.example_ids is not None
    for id_, class_, kind, q, gone in zip(
        labels.example_ids, labels.classes, labels.kinds, labels.probabilities, labels.excluded, strict=True
    ):
        question = second.get(int(id_))
        if question is not None and question.candidate_class == class_:
            assert (q, kind == TRUE) == (pytest.approx(question.probability), id_ in right)
            assert gone[0] != -1
        else:
            assert (q, gone[0]) == (pytest.approx(1 / 4), -1)
    beside = [
        int(id_) for id_, kind in zip(labels.example_ids, labels.kinds, strict=True) if kind == COMPLEMENTARY
    ]
    assert right <= set(beside)

    uniform, facts = collect(session, asked_again, uniform_only=True)
    assert (uniform.probabilities, uniform.excluded, facts["left_out"]) == (None, None, len(second))
    assert len(uniform) == 24


def test_a_round_that_waits_leaves_the_weights_of_the_first_alone(
    context: Context, session: Session, campaign: Campaign, model: Model, admin: User
) -> None:
    before = labelling.derive(session, campaign.id).labels.weights
    draw(session, context, model, campaign, admin)

    after = labelling.derive(session, campaign.id)

    assert after.is_unfinished
    assert after.labels.weights.tolist() == before.tolist() == [1.0] * 24


@pytest.mark.parametrize("loss", ["inverse", "bounded"])
def test_what_weighs_by_1_q_trains_on_every_answer_and_other_losses_on_one_kind_an_image(
    session: Session, storage: FolderStorage, asked_again: Campaign, model: Model, loss: str
) -> None:
    answer_all(session, asked_again)
    session.commit()
    found, facts = collect(session, asked_again)
    run = session.get_one(Run, model.run_id)
    run.snapshot_digest, run.snapshot_facts = freeze(storage, found), facts
    run.config = {**run.config, "losses": {**run.config["losses"], "complementary_loss": loss}}
    session.commit()

    data = load(session, storage, run, TrainConfig.from_dict(run.config | {"seed": 0})).data

    assert data.example is not None
    both = set(data.example[data.true >= 0].tolist()) & set(data.example[data.complementary >= 0].tolist())
    assert bool(both) == (loss == "inverse")
    assert data.probabilities is not None
    assert data.excluded is not None


def test_a_run_by_a_loss_that_cannot_use_them_is_refused_or_rests_on_uniform_questions(
    context: Context, session: Session, client: TestClient, model: Model, admin: User
) -> None:
    storage = context.storage
    many = make_campaign(session, dataset=make_dataset(session, storage, class_names=CLASSES, train=80))
    answer_all(session, many)
    session.get_one(Run, model.run_id).campaign_id = many.id
    session.commit()
    draw(session, context, model, many, admin)
    answer_all(session, many)
    session.commit()
    target = make_dataset(session, storage, class_names=CLASSES, train=20)
    session.commit()

    def start(**asked: Any) -> Any:
        body = {"target_dataset_id": str(target.id), "method": "clarinet-plus", **asked}
        return client.post(f"/api/v1/campaigns/{many.id}/runs", json=body)

    refused, pc = start(setting="cc"), start(setting="pc")
    uniform = start(setting="cc", uniform_only=True)
    inverse = start(setting="pc", config={"complementary_loss": "inverse"})

    assert refused.status_code == 422
    assert "Of the losses only inverse takes their probabilities" in refused.text
    assert [answered.status_code for answered in (pc, uniform, inverse)] == [202, 202, 202], inverse.text
    assert inverse.json()["labels"]["by_belief"] > 0
    assert "left_out" in uniform.json()["labels"]
    page = client.get(f"/runs/{uniform.json()['id']}", headers=HTML).text
    assert "this run rests on uniform questions alone" in page
    assert 'name="uniform_only"' in client.get(f"/campaigns/{many.id}/runs/new", headers=HTML).text


def test_exports_tell_the_probability_of_each_question(
    session: Session, client: TestClient, asked_again: Campaign
) -> None:
    other = make_campaign(session)
    session.commit()
    plain = client.get(f"/api/v1/campaigns/{other.id}/labels?format=csv").text
    answer_all(session, asked_again)
    session.commit()

    text = client.get(f"/api/v1/campaigns/{asked_again.id}/labels?format=csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    lines = client.get(f"/api/v1/campaigns/{asked_again.id}/labels?format=jsonl").text.splitlines()
    data = client.get(f"/api/v1/campaigns/{asked_again.id}/labels?format=npz").content

    assert "probability" not in plain
    second = {q.example_id: q for q in of_round(session, asked_again)}
    for row in rows:
        question = second.get(int(row["example_id"]))
        is_second = question is not None and question.candidate_class == int(row["class"])
        assert float(row["probability"]) == pytest.approx(
            question.probability if is_second and question else 1 / 4
        )
    assert all('"probability"' in line for line in lines)
    with np.load(io.BytesIO(data)) as arrays:
        assert len(arrays["probabilities"]) == len(rows)


def test_answers_by_belief_weigh_as_their_people_do_by_uniform_questions(
    context: Context, session: Session, model: Model, admin: User
) -> None:
    dataset = make_dataset(session, context.storage, class_names=CLASSES, train=80)
    weighed = make_campaign(session, dataset=dataset, consensus="dawid-skene")
    session.get_one(Run, model.run_id).campaign_id = weighed.id
    careful, careless, newcomer = (make_user(session) for _ in range(3))
    for number, question in enumerate(questions_of(session, weighed)):
        is_yes = truth(session, question) == question.candidate_class
        if number % 2 and number % 3 == 0 and not is_yes:
            is_yes = True
        answer(
            session, weighed, question.id, "yes" if is_yes else "no", by=careless if number % 2 else careful
        )
    session.commit()
    before = quality.judge_of(session, weighed, num_classes=4).reliability
    draw(session, context, model, weighed, admin)
    second = of_round(session, weighed)
    said = dict(zip([q.id for q in second], [careful, careless, newcomer] * len(second), strict=False))
    for number, question in enumerate(second):
        answer(session, weighed, question.id, "no" if number % 6 < 3 else "yes", by=said[question.id])
    session.commit()

    judge = quality.judge_of(session, weighed, num_classes=4)
    rows = {row.id: row for row in session.execute(quality.question_answers(weighed.id))}

    assert before is not None
    assert judge.reliability is not None
    rates = judge.reliability.rates()
    for by, place in before.places.items():
        assert rates[by][:2] == pytest.approx(
            (before.sensitivity[place], before.specificity[place]), abs=1e-4
        )
    assert [UUID(person) for person, told in rates.items() if not told[3]] == [newcomer.id]
    for question in second:
        given, q, row = judge(rows[question.id]), question.probability, rows[question.id]
        if said[question.id] is newcomer:
            assert (given.kind, given.weight) == (None, 0)
            continue
        sensitivity, specificity = rates[row.by][:2]
        if row.yes:
            right = q * sensitivity / (q * sensitivity + (1 - q) * (1 - specificity))
            expected = (right - q) / (1 - q)
        else:
            right = (1 - q) * specificity / ((1 - q) * specificity + q * (1 - sensitivity))
            expected = (right - (1 - q)) / q
        assert given.weight == pytest.approx(expected)
        assert 0 < given.weight < 1
    by_name = {by: told for by, told in rates.items() if told[3]}
    assert len({round(told[1], 2) for told in by_name.values()}) == 2


def test_a_no_that_became_a_yes_since_takes_the_answer_by_belief_along(
    session: Session, asked_again: Campaign
) -> None:
    answer_all(session, asked_again)
    first = {q.example_id: q for q in questions_of(session, asked_again) if q.drawing == 1}
    taken_back, *others = of_round(session, asked_again)
    session.execute(
        update(Answer).where(Answer.question_id == first[taken_back.example_id].id).values(value="yes")
    )
    session.commit()

    found = labelling.derive(session, asked_again.id)

    assert found.labels.example_ids is not None
    about = found.labels.at(np.flatnonzero(found.labels.example_ids == taken_back.example_id))
    assert (about.classes.tolist(), about.kinds.tolist()) == (
        [first[taken_back.example_id].candidate_class],
        [TRUE],
    )
    assert found.by_belief_count == len(others)


def test_the_page_tells_as_many_questions_as_would_be_asked_again(
    session: Session, asked_again: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_all(session, asked_again)
    session.commit()
    campaign = campaigns.any_campaign(session, asked_again.id)

    told = {person.user_id: person.alone for person in people(session, campaign)}

    assert len(told) == 2  # one answered the first drawing, another the round
    assert told == {id_: len(alone(session, campaign, id_)) for id_ in told}
    assert sum(number or 0 for number in told.values()) == campaign.question_count
    # Of a large campaign a job keeps it: no view counts anew.
    monkeypatch.setattr(precomputed, "LARGE", 1)
    quality.keep_figures(session, quality.precompute(session, campaign, now=NOW), took_s=1.0)
    session.execute(update(Answer).values(superseded_at=NOW))
    assert {person.user_id: person.alone for person in people(session, campaign)} == told


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "npz"])
def test_an_exported_file_is_read_as_a_run_freezes_the_labels(
    session: Session, client: TestClient, asked_again: Campaign, tmp_path: Path, ending: str
) -> None:
    answer_all(session, asked_again)
    session.commit()
    frozen, _ = collect(session, asked_again)
    path = tmp_path / f"labels.{ending}"
    path.write_bytes(client.get(f"/api/v1/campaigns/{asked_again.id}/labels?format={ending}").content)

    read = load_labels(path, images=24, num_classes=4)

    assert frozen.excluded is not None
    for name in ("positions", "kinds", "classes", "weights", "probabilities", "excluded"):
        np.testing.assert_allclose(getattr(read, name), getattr(frozen, name), err_msg=name)
    alone = read.true_alone()
    assert alone.positions is not None
    assert len(alone) < len(read)
    true = set(alone.positions[alone.kinds == TRUE].tolist())
    assert not true & set(alone.positions[alone.kinds == COMPLEMENTARY].tolist())
    assert alone.counts(TRUE) == read.counts(TRUE)
