"""A model's page and those of operators, by keyboard on a phone: pictures dropped, notices, workers, disk."""

import base64
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.clock import utc_now
from app.db import Base, connect
from app.disk.measuring import measure
from app.main import create_app
from app.registry.models import Model
from app.runs.workers import Machine, record_worker
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.browser.conftest import PHONE, sign_in
from tests.browser.keyboard import tab_to_name
from tests.factories import make_user
from tests.live import PASSWORD, Live, free_port
from tests.onnx_models import make_model
from tests.pictures import grey_png

pytestmark = pytest.mark.browser

DROP = """([field, pictures]) => {
  const dropped = new DataTransfer();
  for (const [name, data] of pictures)
    dropped.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name));
  field.closest("form").dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true }));
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Model]]:
    """A server with a model that tells dark from light, a worker, and a host that may be told of events."""
    port, folder = free_port(), tmp_path_factory.mktemp("served")
    settings = Settings(
        environment="test",
        data_dir=folder,
        public_url=f"http://127.0.0.1:{port}",
        webhook_hosts=("hooks.example.org",),
        _env_file=None,
    )
    database, storage = connect(settings.sqlalchemy_url), FolderStorage(settings.artefact_dir)
    Base.metadata.create_all(database.engine)
    with database.write() as session:
        model = make_model(session, storage)
        make_user(session, role="admin", password=PASSWORD).email = "lead@example.org"
        machine = Machine(
            host="cellar",
            process="cellar:1",
            version="0.2.0",
            memory_bytes=80 * 1024**3,
            memory_free_bytes=60 * 1024**3,
            started_at=utc_now(),
        )
        record_worker(session, "busy", queues="gpu", device="H100", machine=machine, now=utc_now())
        session.commit()
        session.refresh(model)
    measure(database, storage, now=utc_now())
    app = create_app(settings, publish=lambda _job: None)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    yield Live(environment={}, data_dir=folder, url=settings.public_url), model
    server.should_exit = True
    thread.join(300)
    database.dispose()


@pytest.fixture(params=["light", "dark"])
def page(chromium: Browser, request: pytest.FixtureRequest, served: tuple[Live, Model]) -> Iterator[Page]:
    """A phone's page of an admin who is signed in; at the end nothing went wrong in it."""
    context: BrowserContext = chromium.new_context(
        viewport=PHONE,  # type: ignore[arg-type]  # a plain dict is fine
        is_mobile=True,
        has_touch=True,
        color_scheme=request.param,
    )
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    sign_in(page, served[0])
    yield page
    context.close()
    assert [fault for fault in faults if "422" not in fault] == []  # a form that is refused on purpose


def fits(page: Page) -> bool:
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width <= PHONE["width"]


def test_pictures_that_are_dropped_are_predicted_and_admins_pages_work_by_keyboard(
    page: Page, served: tuple[Live, Model], tmp_path: Path
) -> None:
    live, model = served
    page.goto(f"{live.url}/models/{model.id}")
    field = page.get_by_label("Pictures")
    sent = [("light.png", grey_png(250)), ("notes.txt", b"no picture"), ("dark.png", grey_png(3))]
    dropped = [[name, base64.b64encode(data).decode()] for name, data in sent]
    page.evaluate(DROP, [field.element_handle(), dropped])

    said = page.locator("#predicted li")
    expect(said).to_have_count(3)
    expect(said.nth(0)).to_contain_text("light")
    expect(said.nth(1)).to_contain_text("is not a PNG")
    expect(said.nth(2).get_by_role("img", name="What the network sees of dark.png")).to_be_visible()
    assert fits(page)

    file = tmp_path / "chosen.png"
    file.write_bytes(grey_png(250))
    tab_to_name(page, "Pictures")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(file)
    expect(said).to_have_count(1)
    expect(said).to_contain_text("light")

    page.goto(f"{live.url}/subscriptions")
    tab_to_name(page, "Address")
    page.keyboard.type("https://elsewhere.example.org/")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nobody is told more than before.")
    assert fits(page)
    page.goto(f"{live.url}/subscriptions")
    tab_to_name(page, "Address")
    page.keyboard.type("https://hooks.example.org/a-secret")
    page.keyboard.press("Enter")
    expect(page.get_by_label("The secret that signs notices")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="https://hooks.example.org/…").last
    expect(row).to_contain_text("none yet")
    tab_to_name(page, "Send a test: https://hooks.example.org/…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row").filter(has_text="waits to be sent").first).to_be_visible()
    assert "a-secret" not in page.content()
    assert fits(page)

    page.goto(f"{live.url}/runs")
    tab_to_name(page, "Workers")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Workers")).to_be_visible()
    expect(page.get_by_text("H100")).to_be_visible()
    assert fits(page)

    page.goto(f"{live.url}/disk")
    expect(page.get_by_role("row").filter(has_text="Models").first).to_be_visible()
    tab_to_name(page, "What uses the disk")
    assert fits(page)
