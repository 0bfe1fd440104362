"""What the import contracts cannot see: dynamic imports, names shared as text, marks on routes."""

import subprocess
import sys
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from app import jobs
from app.access import access_of
from app.settings import Settings
from worker.celery_app import TASKS, create_celery

BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"{{name}} is not installed")
sys.meta_path.insert(0, Blocked())
"""


def start_without(names: tuple[str, ...], code: str) -> None:
    """Run code in a fresh interpreter as if some packages were not installed."""
    blocked = BLOCK.format(names=names)
    done = subprocess.run([sys.executable, "-c", blocked + code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


TORCH = ("torch", "torchvision")


@pytest.mark.long(but=["web"])
@pytest.mark.parametrize(
    "start",
    [
        "from app.main import create_app; from app.settings import Settings; "
        "create_app(Settings(environment='test', data_dir='{data_dir}', _env_file=None))",
        "import worker.celery_app, worker.supervisor, worker.upkeep, worker.intake, worker.drawing; "
        "import worker.cli.main, worker.demo.running, worker.demo.annotators, worker.local.up",
        "import clarinet, pkgutil; from clarinet import files, recipes; "
        "found = [m.name for room in (files, recipes) "
        "for m in pkgutil.walk_packages(room.__path__, room.__name__ + '.')]; "
        "assert len(found) > 10; [__import__(name) for name in found]",
    ],
    ids=["web", "worker", "library"],
)
def test_these_start_without_torch(start: str, settings: Settings) -> None:
    start_without(TORCH, start.format(data_dir=settings.data_dir))


def test_servers_and_workers_leave_running_models_to_a_process_of_its_own() -> None:
    start_without(("onnxruntime",), "import app.main, worker.celery_app, worker.predicting, worker.upkeep")


def test_the_command_line_starts_without_the_web_packages() -> None:
    """`clarinet train` is for people who installed the library alone."""
    web = ("fastapi", "starlette", "sqlalchemy", "celery", "uvicorn", "httpx2", "pydantic_settings")

    start_without(web, "import worker.cli.main, clarinet.commands.cli")


def test_every_job_has_a_task_and_a_queue(settings: Settings) -> None:
    names = {value for name, value in vars(jobs).items() if name.isupper() and isinstance(value, str)}

    assert names
    assert names == set(jobs.QUEUE_OF) == set(TASKS)
    assert names <= set(create_celery(settings).tasks)


def test_every_task_can_be_imported() -> None:
    lines = [
        f"from {module} import {function}; assert callable({function})" for module, function in TASKS.values()
    ]
    start_without(TORCH, "\n".join(lines))


LONGEST = 400  # lines of a module: docs/style.md
ROOMS = ("app", "worker", "clarinet", "clarinet_client", "tests")


def test_modules_stay_short() -> None:
    root = Path(__file__).parents[1]
    modules = [path for room in ROOMS for path in (root / room).rglob("*.py")]
    lines = {str(path.relative_to(root)): path.read_bytes().count(b"\n") for path in modules}

    assert len(lines) > 500
    assert {path: count for path, count in lines.items() if count > LONGEST} == {}


def test_every_route_says_who_may_call_it(app: FastAPI) -> None:
    ours = [
        route
        for route in iter_route_contexts(app.routes)
        if route.path not in {"/static", "/api/v1/openapi.json"}
    ]

    assert len(ours) > 30
    assert [route.path for route in ours if access_of(route.endpoint) is None] == []
