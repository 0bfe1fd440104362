"""The demo's second campaign, over photographs: added through the API, as people add theirs, and answered."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

from app.errors import AppError
from clarinet_client import Client, Failed
from clarinet_client.shapes.campaigns import Campaign
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


@dataclass(frozen=True, slots=True)
class Pictures:
    """The campaign, and the dataset that its run adapts to."""

    campaign: Campaign
    target_id: str


def add_pictures(client: Client, ended: threading.Event) -> Pictures:
    """Add what is missing of datasets and campaign, and open it; what an earlier start has made stays.

    Raises:
        ClientError: the server refuses something.
        AppError: images cannot be taken in, or the demo ends meanwhile.
    """
    known = {row["name"]: row["id"] for row in client.datasets.all()}
    if not {SOURCE, TARGET} <= known.keys():
        for name, content in zip((SOURCE, TARGET), demo_photographs(), strict=True):
            if name not in known:
                known[name] = _imported(client, name, content, ended)
    found = [row for row in client.campaigns.all() if row["name"] == CAMPAIGN]
    draft = (
        found[0]
        if found
        else client.campaigns.create(CAMPAIGN, known[SOURCE], instructions=INSTRUCTIONS, class_language="en")
    )
    if draft["state"] == "draft":
        client.campaigns.ask_to_open(draft["id"])
    opened = client.campaigns.wait(draft["id"], on_look=_unless(ended))
    return Pictures(opened, known[TARGET])


def answer_pictures(client: Client, pictures: Pictures, ended: threading.Event, plan: Plan = PLAN) -> None:
    """Let simulated annotators answer all but what the plan leaves for the visitor."""
    if pictures.campaign["state"] == "open":
        truth = read_truth(client, pictures.campaign)
        simulate(client, pictures.campaign, plan, stop=ended, truth=truth, on_progress=lambda _: None)


def _imported(client: Client, name: str, content: BytesIO, ended: threading.Event) -> str:
    made = client.datasets.send(
        content, filename=f"{name.lower()}.zip", name=name, description=DESCRIBED[name]
    )
    try:
        return client.datasets.wait(made["id"], on_look=_unless(ended))["id"]
    except Failed as failed:
        raise AppError(f"The images of {name!r} could not be taken in: {failed.detail}") from failed


def _unless(ended: threading.Event) -> Callable[[object], None]:
    """Ends a wait once the demo ends."""

    def look(_row: object) -> None:
        if ended.is_set():
            raise AppError("The demo has ended.")

    return look
