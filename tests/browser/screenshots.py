"""Make a screenshot of every page: desk and phone, light and dark.

    python -m tests.browser.screenshots --url http://127.0.0.1:8000 --email ... --password ...

takes what `clarinet demo --json` printed. The pictures go to ./screenshots/NAME.FORM.png.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
QUIET = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-gpu",
    "--disable-quic",
)
FORMS: dict[str, tuple[Literal["light", "dark"], int, int]] = {
    "desk-light": ("light", 1366, 768),
    "desk-dark": ("dark", 1366, 768),
    "phone-light": ("light", 390, 844),
    "phone-dark": ("dark", 390, 844),
}
PICTURES_SHOWN = """() => [...document.images].every(
    image => image.complete || image.getBoundingClientRect().top > innerHeight
)"""
SIGNED_OUT = {"sign-in": "/sign-in", "forgotten": "/forgotten-password"}


def main() -> None:
    """Read the arguments, visit everything four times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--email", required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--only", nargs="*", help="names of pages, as in the file names")
    parser.add_argument("--forms", nargs="*", choices=FORMS, default=list(FORMS))
    parser.add_argument("--whole", action="store_true", help="the whole page, not only what fits the window")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        faults = [fault for form in given.forms for fault in visit(browser, form, given)]
        browser.close()
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    sys.exit(bool(faults))


def visit(browser: Browser, form: str, given: argparse.Namespace) -> Iterator[str]:
    """Screenshots of all pages in one form; gives a line for each that scrolls sideways or has errors."""
    scheme, width, height = FORMS[form]
    is_phone = form.startswith("phone")
    context = browser.new_context(
        base_url=given.url,
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        is_mobile=is_phone,
        has_touch=is_phone,
        device_scale_factor=2 if is_phone else 1,
    )
    page = context.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: messages.append(str(error)))

    def capture(name: str, path: str) -> Iterator[str]:
        if given.only and name not in given.only:
            return
        messages.clear()
        show(page, path)
        page.screenshot(path=given.out / f"{name}.{form}.png", full_page=given.whole)
        if page.evaluate("document.documentElement.scrollWidth") > width:  # innerWidth grows with the page
            yield f"{name} {form}: scrolls sideways"
        if name != "not-found":
            yield from (f"{name} {form}: {message}" for message in messages)

    for name, path in SIGNED_OUT.items():
        yield from capture(name, path)
    sign_in(page, given.email, given.password)
    for name, path in addresses(context).items():
        yield from capture(name, path)
    context.close()


def show(page: Page, path: str) -> None:
    """Open a page and wait until what it shows at first is there. Live pages never become idle."""
    page.goto(path)
    if page.locator("[data-annotate]").count():
        page.wait_for_selector("[data-shown], [data-pause]:not([hidden])", state="attached")
    page.wait_for_function(PICTURES_SHOWN)
    page.wait_for_timeout(500)


def sign_in(page: Page, email: str, password: str) -> None:
    """Fill the form."""
    page.goto("/sign-in")
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)


def addresses(context: BrowserContext) -> dict[str, str]:
    """Every page by name; datasets, campaigns and runs by the first in each state."""

    def listed(what: str) -> list[dict[str, Any]]:
        answer = context.request.get(f"/api/v1/{what}")
        return list(answer.json()["items"]) if answer.ok else []

    found = {
        "annotate-list": "/annotate",
        "datasets": "/datasets",
        "dataset-new": "/datasets/new",
        "campaigns": "/campaigns",
        "campaign-new": "/campaigns/new",
        "runs": "/runs",
        "weights": "/weights",
        "models": "/models",
        "people": "/people",
        "disk": "/disk",
        "workers": "/workers",
        "groups": "/groups",
        "journal": "/journal",
        "account": "/account",
        "second-factor": "/account/second-factor",
        "api": "/docs",
        "problem": "/problems/campaign-not-open",
        "not-found": "/nothing-here",
    }
    for person in listed("users")[:1]:
        found["person"] = f"/people/{person['id']}"
    for dataset in listed("datasets"):
        found.setdefault(f"dataset-{dataset['state']}", f"/datasets/{dataset['id']}")
    for campaign in listed("campaigns"):
        path = f"/campaigns/{campaign['id']}"
        state = campaign["state"]
        found.setdefault(f"campaign-{state}", path)
        if state != "draft":
            found.setdefault(f"campaign-{state}-audit", f"{path}/audit")
            found.setdefault("run-new", f"{path}/runs/new")
            for part in ("quality", "review", "plan", "imports", "members"):
                found.setdefault(f"campaign-{part}", f"{path}/{part}")
        if state == "open":
            found.setdefault("annotate", f"/annotate/{campaign['id']}")
            found.setdefault("annotate-pages", f"/annotate/{campaign['id']}?mode=grid")
    beside = "&".join(f"run={run['id']}" for run in listed("runs")[:4])
    if "&" in beside:
        found["compare"] = f"/runs/compare?{beside}"
    for evaluation in listed("evaluations")[:1]:
        found["evaluation"] = f"/evaluations/{evaluation['id']}"
    for run in listed("runs"):
        found.setdefault(f"run-{run['state']}", f"/runs/{run['id']}")
        if run["state"] == "succeeded" and "map" not in found:
            whole = context.request.get(f"/api/v1/runs/{run['id']}").json()
            found["evaluation-new"] = f"/runs/{run['id']}/evaluations/new"
            trial = f"/trials/{whole['trials'][0]['id']}"
            found |= {
                "pictures": f"{trial}/pictures",
                "map": f"{trial}/map",
                "map-classes": f"{trial}/map?by=class",
            }
            found |= {"pictures-mistakes": f"{trial}/pictures?only=mistakes"}
            for picture in context.request.get(f"/api/v1{trial}/predictions?only=mistakes").json()["items"][
                :1
            ]:
                found["picture"] = f"{trial}/pictures/{picture['example_id']}?only=mistakes"
    for model in listed("models")[:1]:
        found["model"] = f"/models/{model['id']}"
        found["model-predictions"] = f"/models/{model['id']}/predictions"
    return found


if __name__ == "__main__":
    main()
