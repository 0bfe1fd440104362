"""What operators deploy fits the program: its commands, settings and metrics; and systemd takes the units."""

import asyncio
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from typer.main import get_command
from typer.testing import CliRunner

from app.clock import utc_now
from app.db import connect
from app.metrics import Metrics
from app.migrate import upgrade
from app.runs.workers import UPKEEP, Machine, record_service, record_worker
from app.settings import Settings
from worker.cli.main import app

ROOT = Path(__file__).parents[1]
ENDS = {"migration"}  # services that do something and end


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    return found


def require_command(words: list[str]) -> None:
    """The words are a command of ours, with options that it has."""
    command = get_command(app)
    rest = list(words)
    while commands := getattr(command, "commands", None):
        command = commands[rest.pop(0)]
    with command.make_context(words[0], rest, resilient_parsing=False):
        pass


class TestCompose:
    @pytest.mark.parametrize("name", sorted(services()))
    def test_each_service_is_bounded_watched_and_in_order(self, name: str) -> None:
        service = services()[name]
        assert "mem_limit" in service
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}
        assert service["restart"] == ("no" if name in ENDS else "unless-stopped")
        if name in ENDS | {"backup"}:
            return
        assert "healthcheck" in service
        if "build" in service:
            assert service["read_only"] is True
            assert service["depends_on"] == {"migration": {"condition": "service_completed_successfully"}}
        else:
            assert re.fullmatch(r"\w+:\d+", service["image"])

    def test_commands_and_settings_are_ours(self) -> None:
        ours = {f"CLARINET_{name.upper()}" for name in Settings.model_fields}
        for name, service in services().items():
            if "build" not in service:
                continue
            if "command" in service:
                require_command(service["command"])
            check = service.get("healthcheck", {}).get("test", [])
            if "clarinet" in check:
                require_command(check[check.index("clarinet") + 1 :])
            told = {key for key in service["environment"] if key.startswith("CLARINET_")}
            assert told <= ours, name
        loop = services()["backup"]["entrypoint"][-1]
        require_command(re.findall(r"clarinet ([^;]+);", loop)[0].split())


UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())


class TestSystemd:
    @pytest.mark.parametrize("name", [unit.name for unit in UNITS if unit.suffix == ".service"])
    def test_starts_a_command_of_ours_that_may_write_little(self, name: str) -> None:
        text = (ROOT / "deploy" / "systemd" / name).read_text()
        [started] = re.findall(r"^ExecStart=/opt/clarinet/venv/bin/clarinet (.+)$", text, flags=re.MULTILINE)
        require_command(started.replace("%i", "io").split())
        for line in ("User=clarinet", "NoNewPrivileges=true", "ProtectSystem=strict", "UMask=0027"):
            assert line in text.splitlines()

    @pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
    def test_systemd_finds_nothing_wrong(self, tmp_path: Path) -> None:
        program = tmp_path / "clarinet"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        for unit in UNITS:
            text = unit.read_text().replace("/opt/clarinet/venv/bin/clarinet", str(program))
            name = unit.name.replace("@.", "@io.")
            (tmp_path / name).write_text(text)
        units = sorted(str(path) for path in tmp_path.iterdir() if path.suffix in (".service", ".timer"))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
        )
        ours = [line for line in done.stderr.splitlines() if "clarinet" in line]
        assert ours == []
        assert done.returncode == 0, done.stderr


def test_alerts_ask_for_what_is_measured(tmp_path: Path) -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "clarinet.rules.yml").read_text())
    database = connect(f"sqlite:///{tmp_path / 'a.db'}")
    upgrade(database.engine)
    metrics = Metrics(database)
    metrics.note("GET", "/api/v1/campaigns/{campaign_id}/questions", 200, 0.1)
    with database.write.begin() as session:
        record_service(session, "one", UPKEEP, version="", now=utc_now())
    text = asyncio.run(metrics.text()).decode()
    measured = set(re.findall(r"^(clarinet_\w+)", text, flags=re.MULTILINE))
    labels = set(re.findall(r"(\w+)=\"", text))
    database.dispose()

    for rule in rules["groups"][0]["rules"]:
        assert set(re.findall(r"clarinet_\w+", rule["expr"])) <= measured, rule["alert"]
        assert set(re.findall(r"(\w+)=~?\"", rule["expr"])) <= labels | {"job"}, rule["alert"]
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_alive_says_what_this_host_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLARINET_DATABASE_URL", raising=False)
    monkeypatch.setenv("CLARINET_DATA_DIR", str(tmp_path))
    database = connect(Settings().sqlalchemy_url)
    upgrade(database.engine)
    elsewhere = Machine(
        host="elsewhere",
        process="",
        version="",
        memory_bytes=None,
        memory_free_bytes=None,
        started_at=utc_now(),
    )
    with database.write.begin() as session:
        record_service(session, "here", UPKEEP, version="", now=utc_now())
        record_worker(session, "there", queues="io,gpu", device="CPU", machine=elsewhere, now=utc_now())
    database.dispose()

    codes = {what: CliRunner().invoke(app, ["alive", what]).exit_code for what in ("upkeep", "io", "gpu")}

    assert codes == {"upkeep": 0, "io": 1, "gpu": 1}
