"""The table of runs: filters, order, names, tags, archive, columns."""

from html import unescape

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.runs.describing import describe, put_away
from app.runs.finding import Sort, Wanted, find_runs, known_tags
from app.runs.models import Run, TrialState
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_run

HTML = {"accept": "text/html"}


@pytest.fixture
def runs(session: Session, storage: FolderStorage, admin: User) -> list[Run]:
    """Four, whose accuracies are 0.5, 0.9, none and 0.7; the third waits, the last lost a seed."""
    states = ["succeeded", "succeeded", "queued", "succeeded"]
    made = [
        make_run(session, storage, seeds=(0, 1), state=state, method=method, preset=preset, train=2)
        for state, (method, preset) in zip(
            states, [("clarinet-plus", "digits"), ("gac", "paper")] * 2, strict=True
        )
    ]
    for run, accuracy in zip(made, (0.5, 0.9, None, 0.7), strict=True):
        for trial in run.trials:
            trial.target_accuracy = accuracy
    made[3].trials[1].state, made[3].trials[1].target_accuracy = TrialState.FAILED, 0.1
    describe(session, made[0], name="First try", tags=["paper", '50 % "a_b"'], by=admin)
    describe(session, made[1], note="a TRY", tags=["paper too", "50 x a b"], by=admin)
    session.commit()
    return made


def numbers(session: Session, runs: list[Run], by: User, **wanted: object) -> list[int]:
    """Places among `runs` of those that are found."""
    found, _ = find_runs(session, Wanted(**wanted), by=by, limit=10)  # type: ignore[arg-type]  # checked by it
    places = {run.id: place for place, run in enumerate(runs)}
    return [places[run.id] for run in found]


@pytest.mark.dialects
def test_runs_are_found_by_what_they_are(session: Session, admin: User, runs: list[Run]) -> None:
    put_away(session, runs[2], away=True, by=admin, now=NOW)

    assert numbers(session, runs, admin) == [3, 2, 1, 0]
    assert numbers(session, runs, admin, archived=False) == [3, 1, 0]
    assert numbers(session, runs, admin, archived=True) == [2]
    assert numbers(session, runs, admin, method="gac") == [3, 1]
    assert numbers(session, runs, admin, state=TrialState.FAILED) == [3]
    assert numbers(session, runs, admin, state=TrialState.QUEUED) == [2]
    assert numbers(session, runs, admin, state=TrialState.SUCCEEDED) == [1, 0]
    assert numbers(session, runs, admin, text="try") == [1, 0]
    assert numbers(session, runs, admin, text=f"run {runs[3].number}") == [3]
    assert numbers(session, runs, admin, tag="paper") == [0]
    assert numbers(session, runs, admin, tag='50 % "a_b"') == [0]
    assert numbers(session, runs, admin, dataset_id=runs[1].target_dataset_id) == [1]
    assert known_tags(session, by=admin) == ['50 % "a_b"', "50 x a b", "paper", "paper too"]


@pytest.mark.dialects
@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (Sort.HIGHEST, [1, 3, 0, 2]),
        (Sort.LOWEST, [2, 0, 3, 1]),
        (Sort.METHOD, [0, 2, 1, 3]),
        (Sort.NAME, [1, 2, 3, 0]),
    ],
)
def test_every_order_goes_on_where_a_page_ended(
    session: Session, admin: User, runs: list[Run], sort: Sort, order: list[int]
) -> None:
    found: list[Run] = []
    after = None
    for _ in runs:
        page, after = find_runs(session, Wanted(), by=admin, sort=sort, after=after, limit=1)
        found += page

    assert [runs.index(run) for run in found] == order
    assert after is None


class TestPage:
    def test_the_table_is_filtered_sorted_and_has_the_columns_that_were_chosen(
        self, client: TestClient, runs: list[Run]
    ) -> None:
        asked = {"method": "gac", "state": "", "sort": "-accuracy", "columns": ["tags", "learning_rate"]}

        page = unescape(client.get("/runs", params=asked, headers=HTML).text)
        table = client.get("/runs/table.csv", params=asked).text.splitlines()

        assert page.index(f"Run {runs[1].number}<") < page.index(f"Run {runs[3].number}<")
        assert f"Run {runs[0].number}<" not in page
        assert "columns=tags&columns=learning_rate" in page
        assert table[0] == "number,name,campaign,target,tags,learning_rate"
        assert table[1].endswith('"paper too, 50 x a b",0.00005')

    @pytest.mark.usefixtures("runs")
    def test_what_no_run_is_and_what_cannot_be_asked_for_is_said(self, client: TestClient) -> None:
        nothing = client.get("/runs", params={"text": "nowhere"}, headers=HTML)
        wrong = client.get("/runs", params={"state": "lost"}, headers=HTML)

        assert "No such run" in nothing.text
        assert (nothing.status_code, wrong.status_code) == (200, 422)
        assert "queued" in unescape(wrong.text)

    def test_marked_runs_get_a_tag_are_put_away_and_compared(
        self, client: TestClient, session: Session, runs: list[Run]
    ) -> None:
        marked = [str(run.id) for run in runs[:2]]

        tagged = client.post("/runs/marked", data={"run": marked, "act": "tag", "new_tag": "kept"})
        away = client.post("/runs/marked", data={"run": marked[:1], "act": "archive"})
        compared = client.post("/runs/marked", data={"run": marked, "act": "compare"})
        none = client.post("/runs/marked", data={"act": "archive"}, headers=HTML)

        session.expire_all()
        assert [tagged.status_code, away.status_code, none.status_code] == [303, 303, 422]
        assert [run.tags[-1:] for run in runs[:3]] == [["kept"], ["kept"], []]
        assert [run.archived_at is not None for run in runs[:2]] == [True, False]
        assert compared.headers["location"].endswith("/runs/compare?run=" + "&run=".join(marked))
        assert "Mark some runs first" in none.text

    def test_a_run_gets_its_name_and_tags_on_its_own_form(
        self, client: TestClient, session: Session, runs: list[Run]
    ) -> None:
        url = f"/runs/{runs[2].id}/about"

        kept = client.post(url, data={"name": "Third", "tags": " a, b,,a ", "note": "n"}, headers=HTML)
        refused = client.post(url, data={"name": "x" * 121, "tags": "y" * 41}, headers=HTML)
        away = client.post(f"/runs/{runs[2].id}/archive")

        session.expire_all()
        assert (kept.status_code, refused.status_code, away.status_code) == (303, 422, 303)
        assert (runs[2].name, runs[2].tags, runs[2].note) == ("Third", ["a", "b"], "n")
        assert runs[2].archived_at is not None
        assert "At most 20 tags of at most 40 characters fit here." in refused.text


class TestApi:
    def test_a_run_is_named_tagged_and_put_away(self, client: TestClient, runs: list[Run]) -> None:
        change = {"name": "Named", "tags": ["one"], "archived": True}

        made = client.patch(f"/api/v1/runs/{runs[0].id}", json=change).json()
        listed = client.get("/api/v1/runs").json()["items"]
        away = client.get("/api/v1/runs", params={"archived": True, "tag": "one"}).json()["items"]
        refused = client.patch(f"/api/v1/runs/{runs[0].id}", json={"tags": ["a,b"]})

        assert (made["name"], made["tags"], made["archived_at"] is not None) == ("Named", ["one"], True)
        assert (len(listed), [item["number"] for item in away]) == (3, [runs[0].number])
        assert refused.status_code == 422
