"""What the demo starts with."""

import json
import math
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import numpy as np
import pytest

from app.accounts import callers
from app.accounts import service as accounts
from app.campaigns import service as campaigns
from app.campaigns.models import CampaignState
from app.clock import utc_now
from app.settings import Settings
from clarinet_client import Client, Malformed
from worker.context import Context
from worker.demo.images import SIDE, as_npz, demo_domains
from worker.demo.running import RUNS, _Story
from worker.demo.setup import EMAIL, prepare
from worker.local.up import bring_up_to_date

pytestmark = pytest.mark.long


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """An embedded installation with its tables."""
    settings = Settings(environment="test", data_dir=tmp_path, _env_file=None)
    bring_up_to_date(settings)
    return settings


class ScriptedServer:
    """Stands for the API: it refuses the pc run until a true label is there."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.true_labels = 0

    def all(self, **_: str) -> list[dict[str, Any]]:
        return self.runs[::-1]

    def get(self, _run_id: str) -> dict[str, Any]:
        return {"trials": [{"failure": None}, {"failure": "The disk is full.\n\nlast lines"}]}

    def launch(self, _campaign_id: str, _target_dataset_id: str, **body: Any) -> dict[str, Any]:
        if body["setting"] == "pc" and self.true_labels == 0:
            raise Malformed(422, {"type": "/problems/too-few-labels", "detail": "1 more answer"})
        run = {"id": "r", "number": len(self.runs) + 1, "state": "queued", "mean_accuracy": None, **body}
        self.runs.append(run)
        return run


def test_the_second_run_waits_for_the_first_and_for_its_labels() -> None:
    server, said = ScriptedServer(), list[str]()
    story = _Story(
        cast(Client, SimpleNamespace(runs=server)), "http://demo", "campaign", str(uuid4()), RUNS, said.append
    )

    def look() -> None:
        story.looked = -math.inf
        story.go_on()

    look()
    look()
    assert [run["setting"] for run in server.runs] == ["cc"]
    server.runs[0] |= {"state": "succeeded", "mean_accuracy": 0.9}
    look()
    look()  # refused: no true label yet
    assert (len(server.runs), story.is_over) == (1, False)
    server.true_labels = 1
    look()
    assert [run["setting"] for run in server.runs] == ["cc", "pc"]
    server.runs[1] |= {"state": "failed"}
    look()

    assert story.is_over
    assert said == [
        "Run 1 trains on the answers: http://demo/runs/r",
        "Run 1 has succeeded with 90.0 % on the target.",
        "Run 2 trains on the answers: http://demo/runs/r",
        "Run 2 has failed: The disk is full.",
    ]


def test_the_two_domains_share_classes_but_no_digit() -> None:
    source, target = demo_domains()

    assert {len(source["x_train"]), len(target["x_train"]) + len(target["x_test"])} == {900, 897}
    for arrays in (source, target):
        for name in arrays:
            assert arrays[name].dtype == np.uint8
        assert arrays["x_train"].shape[1:] == (SIDE, SIDE)
        assert set(arrays["y_train"]) == set(range(10))
    # White paper is bright at the rim, stone is not: the shift is there to see.
    assert source["x_train"][:, 0].mean() > 250
    assert target["x_train"][:, 0].mean() < 200


def test_the_domains_are_the_same_every_time() -> None:
    (first, _), (again, _) = demo_domains(), demo_domains()

    assert as_npz(first).read() == as_npz(again).read()


def test_a_second_start_goes_on_with_what_the_first_made(settings: Settings) -> None:
    first, target_id, is_new = prepare(settings)
    again, same_target_id, is_new_again = prepare(settings)

    assert (is_new, is_new_again) == (True, False)
    assert first == again
    assert target_id == same_target_id
    context = Context.of(settings)
    with context.reading() as session:
        user = accounts.check_credentials(accounts.user_with_email(session, EMAIL), first.admin_password)
        assert user.is_admin
        asked = callers.caller_by_token(session, first.admin_token, now=utc_now())
        assert asked is not None
        assert asked.user.id == user.id
        found = campaigns.list_campaigns(session, by=user)
        assert [(str(item.id), item.state, item.question_count) for item in found] == [
            (first.campaign_id, CampaignState.OPEN, 900)
        ]
    context.database.dispose()


def test_the_password_is_random_and_for_its_owner_only(settings: Settings) -> None:
    demo, _, _ = prepare(settings)

    path = settings.data_dir / "demo.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["admin_password"] == demo.admin_password
    assert len(demo.admin_password) >= 12


@pytest.mark.long
def test_a_start_that_was_cut_short_is_finished(settings: Settings) -> None:
    demo, _, _ = prepare(settings)
    (settings.data_dir / "demo.json").write_text(
        json.dumps({"admin_password": demo.admin_password, "admin_token": ""})
    )

    again, _, is_new = prepare(settings)

    assert not is_new
    assert again.admin_password == demo.admin_password
    assert again.admin_token.startswith("clt_")
    assert again.admin_token != demo.admin_token
