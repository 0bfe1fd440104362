"""Simulated annotators: what they see, and that they answer everything."""

import csv
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import numpy as np
import pytest
from sklearn.datasets import load_digits

from clarinet_client import Client
from tests.live import Live, installation
from worker.demo.annotators import Annotator, Plan, Tally, simulate
from worker.demo.perception import Unanswerable, perceived, read_confusion, read_truth


def seen(truth: int, num_classes: int, error: float, count: int = 20_000) -> Counter[int]:
    """How often each class is seen in images of one class."""
    return Counter(perceived(truth, num_classes, error=error, chance_of=f"0/1/{n}") for n in range(count))


def test_without_errors_everybody_sees_the_truth() -> None:
    assert set(seen(3, 10, 0.0)) == {3}


@pytest.mark.parametrize("num_classes", [2, 3, 10])
def test_errors_are_uniform_over_the_other_classes(num_classes: int) -> None:
    count, error = 20_000, 0.3
    found = seen(1, num_classes, error, count)

    assert set(found) == set(range(num_classes))
    expected = error / (num_classes - 1) * count
    for other in set(range(num_classes)) - {1}:
        assert abs(found[other] - expected) < 5 * expected**0.5  # five standard deviations


def test_an_annotator_who_is_always_wrong_never_sees_the_truth() -> None:
    assert 2 not in seen(2, 4, 1.0)


def test_the_same_annotator_sees_the_same_class_in_an_image() -> None:
    first = [perceived(0, 10, error=0.5, chance_of=f"0/1/{n}") for n in range(200)]

    assert first == [perceived(0, 10, error=0.5, chance_of=f"0/1/{n}") for n in range(200)]
    assert first != [perceived(0, 10, error=0.5, chance_of=f"0/2/{n}") for n in range(200)]


def test_a_confusion_matrix_is_read_by_names_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "confusion.csv"
    path.write_text("true\\seen,cat,dog,bird\ndog,1,3,0\ncat,1,0,0\nbird,0,0,2\n", encoding="utf-8")

    rows = read_confusion(path, ["dog", "cat"])

    assert rows == [[3.0, 4.0], [0.0, 1.0]]
    found = Counter(perceived(0, 2, error=0.0, confusion=rows, chance_of=f"0/1/{n}") for n in range(20_000))
    assert abs(found[0] - 15_000) < 5 * (20_000 * 0.25 * 0.75) ** 0.5
    assert {perceived(1, 2, error=0.0, confusion=rows, chance_of=str(n)) for n in range(1000)} == {1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no row and column for the class 'dog'"),
        ("true,dog\ndog,1\n", "no row and column for the class 'cat'"),
        ("true,dog,cat\ndog,1\ncat,0,1\n", "a number is missing"),
        ("true,dog,cat\ndog,1,x\ncat,0,1\n", "a number is missing"),
        ("true,dog,cat\ndog,1,-1\ncat,0,1\n", "must be positive"),
        ("true,dog,cat\ndog,0,0\ncat,0,1\n", "must be positive"),
    ],
)
def test_a_bad_confusion_matrix_is_refused_in_words(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "confusion.csv"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(Unanswerable, match=reason):
        read_confusion(path, ["dog", "cat"])


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """An installation in processes of its own."""
    folder = tmp_path_factory.mktemp("simulate")
    with installation(folder / "data", folder / "log") as live:
        yield live


@pytest.fixture(scope="module")
def digits(live: Live) -> Any:
    """300 images with their true classes."""
    images, classes = load_digits(return_X_y=True)
    pixels = (images[:300].reshape(-1, 8, 8) * 15.9).astype(np.uint8)
    return live.dataset("Digits", {"x_train": pixels, "y_train": classes[:300].astype(np.uint8)})


def run(live: Live, campaign: Any, plan: Plan) -> Tally:
    """Simulate against the live server until the annotators have nothing left."""
    with Client(live.url, live.token) as client:
        truth = read_truth(client, campaign)
        return simulate(
            client, campaign, plan, stop=threading.Event(), truth=truth, on_progress=lambda _: None
        )


@pytest.mark.long
def test_without_errors_every_answer_is_right(live: Live, digits: Any) -> None:
    campaign = live.open_campaign("Right", digits)

    tally = run(live, campaign, Plan(annotators=3))

    progress = live.api("GET", f"/campaigns/{campaign['id']}/progress")
    assert (tally.wrong, tally.refused, progress["waiting"]) == (0, 0, 0)
    assert progress["answers"] == {"yes": tally.yes, "no": tally.no, "unsure": 0, "unusable": 0}
    assert progress["simulated_answers"] == tally.answers
    # Every yes was said by two people, every no by one. At the end some settled ones are asked again, so that
    # yes stays rare: at most one in twenty.
    assert progress["questions"] == 300
    assert 300 <= tally.no + tally.yes // 2 <= 315
    with Client(live.url, live.token) as client:
        truth = read_truth(client, campaign)
    assert labels_that_are_wrong(live, campaign, truth) == 0


def labels_that_are_wrong(live: Live, campaign: Mapping[str, Any], truth: Mapping[int, int | None]) -> int:
    """How many of the campaign's labels contradict the true classes."""
    answer = httpx2.get(
        f"{live.url}/api/v1/campaigns/{campaign['id']}/labels?format=csv",
        headers={"Authorization": f"Bearer {live.token}"},
    )
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert len(rows) == 300
    return sum(
        (row["kind"] == "true") != (truth[int(row["example_id"])] == int(row["class"])) for row in rows
    )


@pytest.mark.long
def test_one_in_ten_images_is_seen_wrongly(live: Live, digits: Any) -> None:
    campaign = live.open_campaign("Nearly right", digits)

    tally = run(live, campaign, Plan(annotators=5, error=0.1, batch=10))

    assert tally.waiting == 0
    # Wrong when the right class was asked and missed (1/10 * e), or the seen one was asked (e/10).
    expected = tally.answers * 2 * 0.1 / 10
    assert 0 < tally.wrong < expected + 5 * expected**0.5
    assert live.api("GET", f"/campaigns/{campaign['id']}/progress")["waiting"] == 0


@pytest.mark.long
def test_annotators_leave_questions_and_stop_at_a_limit(live: Live, digits: Any) -> None:
    campaign = live.open_campaign("Some left", digits)

    assert run(live, campaign, Plan(annotators=2, limit=50)).answers == 50
    run(live, campaign, Plan(annotators=3, leave=100))

    fresh = live.api("GET", f"/campaigns/{campaign['id']}/progress")["fresh"]
    assert 97 <= fresh <= 100


@pytest.mark.long
def test_the_others_finish_when_one_is_paused(live: Live, digits: Any) -> None:
    campaign = live.open_campaign("One paused", digits)
    path = f"/campaigns/{campaign['id']}"
    run(live, campaign, Plan(annotators=1, limit=1))
    [first] = live.api("GET", f"{path}/quality")["people"]
    live.api("POST", f"{path}/people/{first['user_id']}/pause")

    tally = run(live, campaign, Plan(annotators=3))

    assert tally.waiting == live.api("GET", f"{path}/progress")["waiting"] == 0
    assert (
        next(
            one["answers"]
            for one in live.api("GET", f"{path}/quality")["people"]
            if one["user_id"] == first["user_id"]
        )
        == 1
    )


def test_what_is_left_over_is_to_do_at_the_beginning_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    stands = [{"waiting": 5, "left_over": 2, "fresh": 5}, {"waiting": 0, "left_over": 3, "fresh": 0}]
    seen: list[int] = []

    def at_work(*given: Any) -> Any:
        seen.append(given[5].waiting)
        return SimpleNamespace(work=lambda: None)

    monkeypatch.setattr("worker.demo.annotators.Annotator", at_work)
    client: Any = SimpleNamespace(
        base_url="",
        campaigns=SimpleNamespace(progress=lambda _: stands.pop(0)),
        annotation=SimpleNamespace(make_simulated=lambda _: {}),
    )
    campaign: Any = {"id": "c"}

    tally = simulate(client, campaign, Plan(1), stop=threading.Event(), truth={}, on_progress=lambda _: None)

    assert [*seen, tally.waiting] == [7, 3]


class Replies:
    """A server that leases what it is told to, and stores every answer."""

    def __init__(self, *leases: list[dict[str, Any]]) -> None:
        self.leases = list(leases)

    def lease(self, _campaign_id: str, *, count: int) -> Any:
        assert count > 0
        return {"questions": self.leases.pop(0), "waiting": 0}

    def answer(self, _campaign_id: str, answers: list[Any]) -> Any:
        return [{"status": "stored"} for _ in answers]


def test_who_gets_a_late_question_of_somebody_else_still_ends() -> None:
    plan = Plan(annotators=2)
    tally = Tally(plan.annotators)
    campaign: Any = {"id": "c", "classes": ["cat", "dog"]}
    made: Any = {}
    late = {"id": "q", "image_url": "/datasets/d/examples/7/image", "candidate_class": 0}

    def ask(number: int, *leases: list[dict[str, Any]]) -> bool:
        annotator = Annotator("", made, campaign, plan, {7: 0}, tally, threading.Event(), number, lambda: 0)
        return annotator.take_turn(cast(Client, SimpleNamespace(annotation=Replies(*leases))))

    assert ask(1, [])
    assert not ask(0, []), "both asked in vain: it is over"
    assert ask(1, [late]), "a person's yes came meanwhile"
    assert tally.answers == 1
    assert not ask(1, []), "nobody is left to wait for"


@pytest.mark.long
def test_the_pace_is_kept(live: Live, digits: Any) -> None:
    campaign = live.open_campaign("Slowly", digits)

    tally = run(live, campaign, Plan(annotators=2, pace=10, limit=40))

    assert tally.answers == 40
    assert 1.4 < tally.seconds < 15  # 20 answers each, 0.1 s apart; more on a busy machine


@pytest.mark.long
def test_simulated_annotators_leave_no_tokens_behind(live: Live, digits: Any) -> None:
    campaign = live.open_campaign("Tidy", digits)
    run(live, campaign, Plan(annotators=1, limit=1))

    made = live.api("POST", "/simulated-annotators", json={"name": "Simulated annotator 1"})

    with Client(live.url, made["token"]) as client:
        assert [token["id"] for token in client.request("GET", "/tokens")["items"]] == [made["token_id"]]


@pytest.mark.long
def test_the_command_reports_what_was_answered(live: Live, digits: Any) -> None:
    campaign = live.open_campaign("By command", digits)

    printed = live.clarinet(
        "simulate", "By command", "--annotators", "3", "--base-url", live.url, "--token", live.token, "--json"
    )

    figures = json.loads(printed)
    assert figures["wrong"] == figures["waiting"] == 0
    assert figures["answers"] == figures["yes"] + figures["no"] > 300
    assert figures["answers_per_s"] > 10
    live.api("POST", f"/campaigns/{campaign['id']}/close")
    audit = json.loads(
        live.clarinet("audit", campaign["id"], "--base-url", live.url, "--token", live.token, "--json")
    )
    assert audit["passed"]
    assert audit["draws_match"]
