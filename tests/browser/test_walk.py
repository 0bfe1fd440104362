"""The whole way, from two zips of photographs to an accuracy measured by people, its clicks counted."""

import io
import threading
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Request, expect

from clarinet_client import Client
from tests.browser.annotator import new_annotator, shown, wait_for_another, wait_for_answers
from tests.browser.conftest import sign_in
from tests.live import Live
from worker.demo import photographs
from worker.demo.annotators import Plan, simulate
from worker.demo.perception import read_truth

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

MOST_CLICKS = 25
SEEN, PAINTED = 16, 6  # views of each of six photographs, of the source and of the target
# Questions that somebody answers in a browser; the others over the API. About half of them are mixed in
# and judge nothing: of a few all might be.
BY_HAND = 12
# What makes the training a matter of seconds; a person leaves these folded away as they are.
TINY = {"architecture": "timm/test_resnet", "image_size": "32", "epochs": "1", "steps_per_epoch": "2"}


class Hand:
    """A hand on a mouse; a file and a choice in a list take two clicks, a text one before it is typed."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, role: Any, name: str, *, exact: bool = False) -> None:
        """A link or a button of the page, the first of this name."""
        self._count(self.page.get_by_role(role, name=name, exact=exact).first).click()

    def type(self, label: str, text: str) -> None:
        """Into a field."""
        field = self._count(self.page.get_by_label(label, exact=True))
        field.click()
        self.page.keyboard.type(text)

    def choose(self, label: str, value: str) -> None:
        """From a list."""
        self._count(self.page.get_by_label(label), clicks=2).select_option(value)

    def upload(self, name: str, content: bytes, folder: Path) -> None:
        """Choose a file: the button, and the file in the window that opens."""
        path = folder / name
        path.write_bytes(content)
        button = self._count(self.page.locator("#file"), clicks=2)
        with self.page.expect_file_chooser() as chooser:
            button.click()
        chooser.value.set_files(path)

    def _count(self, target: Locator, clicks: int = 1) -> Locator:
        self.clicks += clicks
        return target


@pytest.fixture
def zips(monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes, list[str]]:
    """Photographs in class folders; painted ones, all in one folder; and what the latter show, in order."""
    monkeypatch.setattr(photographs, "SOURCE_VIEWS", SEEN)
    monkeypatch.setattr(photographs, "TARGET_VIEWS", PAINTED)
    source, labelled = photographs.demo_photographs()
    flat, shows = io.BytesIO(), []
    with zipfile.ZipFile(labelled) as files, zipfile.ZipFile(flat, "w") as target:
        for number, path in enumerate(sorted(files.namelist())):
            shows.append(path.split("/")[0])
            target.writestr(f"IMG_{number:04}.jpg", files.read(path))
    return source.getvalue(), flat.getvalue(), shows


def import_dataset(hand: Hand, name: str, content: bytes, folder: Path) -> str:
    """From any page; gives the address of the dataset's own once it is there."""
    hand.click("link", "Datasets", exact=True)
    hand.click("link", "Add a dataset")
    hand.type("Name", name)
    hand.upload(f"{name}.zip", content, folder)
    hand.click("button", "Import")
    expect(hand.page.locator("main")).to_contain_text("Training images", timeout=300_000)
    return hand.page.url


def answer_by_programs(live: Live, name: str) -> None:
    """What `clarinet simulate` does, without a process of its own."""
    with Client(live.url, live.token) as client:
        campaign = client.campaigns.find(name)
        plan, truth = Plan(annotators=3), read_truth(client, campaign)
        told = simulate(
            client, campaign, plan, stop=threading.Event(), truth=truth, on_progress=lambda _: None
        )
    assert told.wrong == 0


def picture(live: Live, path: str) -> bytes:
    """What lies at an address: annotators' ones have names that tell nothing of a picture."""
    answer = httpx.get(f"{live.url}{path}", headers={"Authorization": f"Bearer {live.token}"}, timeout=60)
    assert answer.is_success
    return answer.content


def judge(live: Live, campaign_id: str, class_of: Callable[[dict[str, Any]], str]) -> None:
    """The admin answers what is left, rightly, and says after a no what the picture shows."""
    names = [item["name"] for item in live.api("GET", f"/campaigns/{campaign_id}")["classes"]]
    here = f"/campaigns/{campaign_id}"
    while questions := live.api("POST", f"{here}/questions", json={"count": 100})["questions"]:
        answers = []
        for question in questions:
            right = class_of(question)
            answer = {"question_id": question["id"], "key": str(uuid.uuid4()), "value": "no"}
            answer |= {"shows": names.index(right)} if right != question["class_name"] else {"value": "yes"}
            answers.append(answer)
        live.api("POST", f"{here}/answers", json={"answers": answers})


def judge_by_keyboard(page: Page, live: Live, campaign_id: str, class_of: Callable[[str], str]) -> None:
    """Somebody in a browser, without a mouse: yes, or no and the class by its own key."""
    new_annotator(page, live)
    page.goto(f"{live.url}/annotate/{campaign_id}")
    panel = page.locator("[data-which]")
    named, keys = 0, dict[str, str]()
    sent: list[Any] = []

    def remember(request: Request) -> None:
        if request.url.endswith("/answers"):
            sent.append(request.post_data_json)

    page.on("request", remember)
    for _ in range(BY_HAND):
        seen = shown(page)
        page.wait_for_selector("[data-annotate]:not([data-painting])")
        right = class_of(seen[0])
        if right == seen[1]:
            page.keyboard.press("y")
        else:
            page.keyboard.press("n")
            expect(panel).to_be_visible()
            page.keyboard.press("z")  # back to the question
            expect(panel).to_be_hidden()
            page.keyboard.press("ArrowLeft")
            name = panel.get_by_role("button", name=right)
            expect(name).to_be_in_viewport(ratio=1)
            key = name.locator("kbd").inner_text()
            assert keys.setdefault(right, key) == key  # whatever was asked
            page.keyboard.press(key)
            named += 1
        wait_for_another(page, seen)
    assert named
    wait_for_answers(live, {"id": campaign_id}, BY_HAND)
    answers = [answer for body in sent if body for answer in body["answers"]]
    assert all(("named_ms" in answer) is ("shows" in answer) for answer in answers)
    assert all(0 < answer["named_ms"] < 60_000 for answer in answers if "shows" in answer)
    page.get_by_role("link", name="Leave").click()  # gives back what she holds
    page.wait_for_url("**/annotate")


def test_two_zips_become_an_accuracy_measured_by_people(
    *,
    desk: BrowserContext,
    phone: BrowserContext,
    live: Live,
    zips: tuple[bytes, bytes, list[str]],
    tmp_path: Path,
) -> None:
    page = desk.new_page()
    sign_in(page, live)
    hand = Hand(page)
    source, target, shows = zips

    target_url = import_dataset(hand, "Paintings", target, tmp_path)
    import_dataset(hand, "Photographs", source, tmp_path)
    hand.click("link", "Start a campaign with it")
    hand.type("Name", "What is it?")
    hand.click("button", "Make a draft")
    hand.click("button", "Open the campaign")
    expect(page.get_by_role("link", name="Launch a run")).to_be_visible(timeout=300_000)
    answer_by_programs(live, "What is it?")
    hand.click("link", "Launch a run")
    with page.expect_response(lambda response: "recipe=" in response.url):
        hand.choose("Method and preset", "clarinet-plus/photographs-untrained")
    expect(page.locator("#trained")).to_contain_text("untrained weights")
    for name, value in TINY.items():
        field = page.locator(f"[name='config.{name}']")
        field.evaluate("(field, value) => { field.value = value; }", value)
    expect(page.locator("#trained")).to_contain_text("people can judge its predictions")
    hand.click("button", "Start the run")
    expect(page.locator("[data-status=succeeded]").first).to_be_visible(timeout=300_000)
    run_url = page.url
    hand.click("link", "Ask people how good it is")
    hand.click("checkbox", "After a no")
    hand.click("button", "Draw the pictures")
    evaluation_url = page.url
    evaluation = live.api("GET", f"/evaluations/{evaluation_url.rsplit('/', 1)[1]}")
    campaign_id = evaluation["campaign_id"]
    # Tests answer without a look.
    at_once = {f"least_{what}_ms": 0 for what in ("card", "page", "picture")}
    live.api("PATCH", f"/campaigns/{campaign_id}", json=at_once)
    hand.click("button", "Open it")
    expect(page.get_by_role("link", name="Answer questions")).to_be_visible(timeout=300_000)

    dataset_path = f"/api/v1/datasets/{target_url.rsplit('/', 1)[1]}"
    examples = live.api("GET", f"/datasets/{target_url.rsplit('/', 1)[1]}/examples?limit=100")["items"]
    class_of = {
        picture(live, f"{dataset_path}/examples/{item['id']}/image"): shows[int(item["filename"][4:8])]
        for item in examples
    }

    def of_address(address: str) -> str:
        return class_of[picture(live, address.removeprefix(live.url))]

    judge_by_keyboard(phone.new_page(), live, campaign_id, of_address)
    judge(live, campaign_id, lambda question: of_address(question["image_url"]))
    expect(page.locator("main")).to_contain_text("Every picture is judged", timeout=300_000)
    number = live.api("GET", f"/runs/{run_url.rsplit('/', 1)[1]}")["number"]
    hand.click("link", f"Run {number}")  # other tests may have begun runs of this installation before

    result = live.api("GET", evaluation_url.replace(live.url, ""))
    accuracy = result["result"]["interval"]["estimate"]
    assert page.url == run_url
    expect(page.locator("main")).to_contain_text("measured by 2 people on 36 pictures")
    expect(page.locator("main")).to_contain_text(f"{100 * accuracy:.1f}")
    assert sum(row[place] for place, row in enumerate(result["confusion"]["rows"])) / 36 == accuracy
    assert sum(map(sum, result["confusion"]["rows"])) == 36
    assert hand.clicks <= MOST_CLICKS, hand.clicks
