"""The demo's second campaign, over photographs: added through the API, as people add theirs, and answered."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from app.errors import AppError
from worker.client import Client
from worker.demo.annotators import Plan, simulate
from worker.demo.perception import read_truth
from worker.demo.photographs import demo_photographs

SOURCE, TARGET = "Photographs", "Paintings"
DESCRIBED = {
    SOURCE: "Many views of six photographs, in more and less light.",
    TARGET: "Other views of the same six, as if somebody had painted them.",
}
CAMPAIGN = "What is in the picture?"
INSTRUCTIONS = "Say yes when the picture shows what you are asked about. When you cannot tell, say so."
LEAVE = 120  # questions for the visitor
PLAN = Plan(annotators=5, error=0.02, pace=8, batch=10, seed=2, leave=LEAVE)
LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Pictures:
    """The campaign, and the dataset that its run adapts to."""

    campaign: Mapping[str, Any]
    target_id: str


def add_pictures(client: Client, ended: threading.Event) -> Pictures:
    """Add what is missing of datasets and campaign, and open it; what an earlier start has made stays.

    Raises:
        AppError: the server refuses something, or the demo ends meanwhile.
    """
    known = {row["name"]: row["id"] for row in client.items("/datasets")}
    if not {SOURCE, TARGET} <= known.keys():
        for name, content in zip((SOURCE, TARGET), demo_photographs(), strict=True):
            if name not in known:
                known[name] = _imported(client, name, content, ended)
    found = [row for row in client.items("/campaigns") if row["name"] == CAMPAIGN]
    draft = (
        found[0]
        if found
        else client.post(
            "/campaigns",
            {
                "name": CAMPAIGN,
                "dataset_id": known[SOURCE],
                "instructions": INSTRUCTIONS,
                "class_language": "en",
            },
        )
    )
    path = f"/campaigns/{draft['id']}"
    if draft["state"] == "draft":
        client.post(f"{path}/open")
    opened = _once(client, path, ended, lambda row: row["state"] != "draft" or bool(row["opening_failure"]))
    if opened["state"] == "draft":
        raise AppError(opened["opening_failure"])
    return Pictures(opened, known[TARGET])


def answer_pictures(client: Client, pictures: Pictures, ended: threading.Event, plan: Plan = PLAN) -> None:
    """Let simulated annotators answer all but what the plan leaves for the visitor."""
    if pictures.campaign["state"] == "open":
        truth = read_truth(client, pictures.campaign)
        simulate(client, pictures.campaign, plan, stop=ended, truth=truth, on_progress=lambda _: None)


def _imported(client: Client, name: str, content: BytesIO, ended: threading.Event) -> str:
    made = client.upload(
        "/datasets", content, filename=f"{name.lower()}.zip", name=name, description=DESCRIBED[name]
    )
    path = f"/datasets/{made['id']}"
    row = _once(client, path, ended, lambda row: row["state"] != "importing")
    if row["state"] != "ready":
        raise AppError(f"The images of {name!r} could not be taken in: {row['failure']}")
    return str(row["id"])


def _once(
    client: Client, path: str, ended: threading.Event, is_so: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """The row at a path, once it is as wanted."""
    while True:
        row: dict[str, Any] = client.get(path)
        if is_so(row):
            return row
        if ended.wait(LOOK_S):
            raise AppError("The demo has ended.")
