"""The loop end to end, as people meet it: questions, answers, training, accuracy."""

import json
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, FilePayload, Route, expect
from sklearn.datasets import load_digits

from tests.browser.annotator import counts, new_annotator, shown, wait_for_another
from tests.browser.conftest import sign_in
from tests.live import Live
from tests.pictures import grey_png

pytestmark = pytest.mark.browser


def digits(start: int, stop: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Handwritten digits that ship inside scikit-learn: uint8 (N, 8, 8) and their classes."""
    images, labels = load_digits(return_X_y=True)
    return (images[start:stop].reshape(-1, 8, 8) * 15.9).astype(np.uint8), labels[start:stop].astype(np.uint8)


def photocopied(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Another domain: pale strokes on grey, grainy paper."""
    grain = np.random.default_rng(0).normal(0, 16, pixels.shape)
    copied: np.ndarray[Any, Any] = np.clip(90 + 0.55 * pixels + grain, 0, 255).astype(np.uint8)
    return copied


@pytest.fixture(scope="module")
def source(live: Live) -> Any:
    """A dataset of 900 digits."""
    x, y = digits(0, 900)
    return live.dataset("Digits on paper", {"x_train": x, "y_train": y})


@pytest.fixture(scope="module")
def campaign(live: Live, source: Any) -> Any:
    """An open campaign for people in a browser."""
    return live.open_campaign("Which digit is it?", source)


@pytest.fixture(scope="module")
def answered_campaign(live: Live, source: Any) -> Any:
    """Another one, whose questions simulated annotators have answered."""
    campaign = live.open_campaign("Which digit was it?", source)
    options = ("--annotators", "3", "--error", "0", "--base-url", live.url, "--token", live.token, "--json")
    summary = json.loads(live.clarinet("simulate", campaign["id"], *options).strip().splitlines()[-1])
    assert (summary["wrong"], summary["waiting"]) == (0, 0)
    return campaign


@pytest.fixture(scope="module")
def target(live: Live) -> Any:
    """Other digits, photocopied."""
    x, _ = digits(900, 1400)
    x_test, y_test = digits(1400, 1797)
    arrays = {"x_train": photocopied(x), "x_test": photocopied(x_test), "y_test": y_test}
    return live.dataset("Photocopied digits", arrays)


def test_ten_questions_by_keyboard_with_a_reload_and_an_undo(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = desk.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    new_annotator(page, live)
    page.goto(f"{live.url}/annotate/{campaign['id']}")
    before = sum(counts(live, campaign).values())

    for key in "nynun":
        seen = shown(page)
        page.keyboard.press(key)
        wait_for_another(page, seen)
    sixth = shown(page)
    page.reload()
    assert shown(page) == sixth, "a reload must show the same question"

    for key in "nnynn":
        seen = shown(page)
        page.keyboard.press(key)
        wait_for_another(page, seen)
    tenth = seen
    live.wait(
        f"/campaigns/{campaign['id']}/progress",
        until=lambda p: sum(p["answers"].values()) == before + 10,
    )

    page.keyboard.press("z")
    page.wait_for_function(
        "before => document.querySelector('[data-picture]').getAttribute('src') === before", arg=tenth[0]
    )
    live.wait(
        f"/campaigns/{campaign['id']}/progress",
        until=lambda p: sum(p["answers"].values()) == before + 9,
    )
    assert problems == []


def test_a_phone_answers_by_thumb_and_sees_the_picture_large(
    phone: BrowserContext, live: Live, campaign: Any
) -> None:
    page = phone.new_page()
    new_annotator(page, live)
    page.goto(f"{live.url}/annotate/{campaign['id']}")
    first = shown(page)

    stage = page.locator("[data-stage]").bounding_box()
    yes = page.locator("[data-answer=yes]").bounding_box()
    assert stage is not None
    assert yes is not None
    assert stage["height"] >= 0.6 * 844
    assert yes["height"] >= 44
    assert yes["y"] + yes["height"] <= 844, "the buttons must be in reach without scrolling"

    page.locator("[data-answer=no]").tap()

    wait_for_another(page, first)


def test_a_late_answer_about_one_choice_does_not_undo_the_next(
    desk: BrowserContext, live: Live, answered_campaign: Any, target: Any
) -> None:
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/campaigns/{answered_campaign['id']}/runs/new")
    held: list[Route] = []
    page.route("**/runs/new?*", lambda route: route.continue_() if held else held.append(route))

    page.get_by_label("Target dataset").select_option(target["id"])
    expect(page.locator("#start")).to_be_disabled()  # its settings are on their way
    with page.expect_event("requestfailed") as given_up:
        page.get_by_label("Method and preset").select_option("clarinet-plus/digits-quick")

    assert given_up.value.url == held[0].request.url
    expect(page.locator("[name='config.epochs']")).to_have_value("30")
    expect(page.locator("#start")).to_be_enabled()


def test_an_admin_launches_a_run_watches_the_number_arrive_and_tries_the_model(
    desk: BrowserContext, live: Live, answered_campaign: Any, target: Any
) -> None:
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/campaigns/{answered_campaign['id']}/runs/new")
    page.get_by_label("Target dataset").select_option(target["id"])
    page.get_by_label("Method and preset").select_option("clarinet-plus/digits-quick")
    page.get_by_label("Seeds").fill("0")
    expect(page.locator("#trained")).to_have_text("This trains digits: LeNet at 28 pixels.")
    expect(page.locator("[name='config.epochs']")).to_have_value("30")  # of the preset just chosen
    page.get_by_text("All settings").click()
    page.locator("[name='config.epochs']").fill("5")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/runs/*")
    page.evaluate("window.notReloaded = true")
    page.get_by_text("Cancel this run").click()

    expect(page.locator("main")).not_to_contain_text("after the first epoch", timeout=300_000)
    question = page.get_by_role("button", name=re.compile("^Cancel run"))
    expect(question).to_be_visible()  # still unfolded, though the page fetched itself anew
    expect(page.locator("[data-status=succeeded]").first).to_be_visible(timeout=300_000)

    assert page.evaluate("window.notReloaded"), "the page must not have been reloaded"
    run = live.api("GET", f"/runs/{page.url.rsplit('/', 1)[1]}")
    assert run["config"]["length"]["epochs"] == 5
    accuracy = run["trials"][0]["target_accuracy"]
    expect(page.locator("main")).to_contain_text(f"{100 * accuracy:.1f}")
    assert accuracy > 0.3  # chance is 0.1

    [model] = live.api("GET", f"/models?run_id={run['id']}")["items"]
    page.goto(f"{live.url}/models/{model['id']}")
    sent = [
        FilePayload(name=name, mimeType="image/png", buffer=grey_png(7, side=20))
        for name in ("seven.png", "again.png")
    ]
    page.get_by_label("Pictures").set_input_files(sent)
    expect(page.locator("#predicted li")).to_have_count(2)
    expect(page.locator("#predicted")).to_contain_text("again.png")
    files = page.evaluate_handle(
        "() => { const one = new DataTransfer(); one.items.add(new File(['?'], 'notes.txt')); return one; }"
    )
    page.dispatch_event("#try", "drop", {"dataTransfer": files})
    expect(page.locator("#predicted")).to_contain_text('"notes.txt" is not a')

    page.get_by_role("link", name="Predict a whole dataset").click()
    page.get_by_label("Dataset").select_option(target["id"])
    page.get_by_role("button", name="Predict it").click()
    with page.expect_download() as download:
        page.get_by_role("link", name=re.compile("^CSV")).click(timeout=300_000)
    assert len(download.value.path().read_text().splitlines()) == 1 + 897
