"""What operators deploy fits the program: its commands, settings and metrics; and systemd takes the units."""

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import SecretStr
from typer.main import get_command
from typer.testing import CliRunner

from app.clock import utc_now
from app.db import connect
from app.disk.models import DiskKind, DiskUse
from app.metrics import Metrics
from app.migrate import upgrade
from app.runs.workers import UPKEEP, Machine, record_service, record_worker
from app.settings import Settings
from worker.cli.main import app

ROOT = Path(__file__).parents[1]
# Of a service, as the Compose specification has them; a misspelt one is refused, or worse, ignored.
KEYS = {
    *("build", "command", "depends_on", "deploy", "entrypoint", "env_file", "environment", "healthcheck"),
    *("image", "init", "logging", "mem_limit", "pids_limit", "ports", "profiles", "read_only", "restart"),
    *("shm_size", "stop_grace_period", "tmpfs", "volumes"),
}
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

    @pytest.mark.parametrize("name", sorted(services()))
    def test_a_strict_reading_finds_what_compose_would_refuse(self, name: str) -> None:
        whole = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
        service = whole["services"][name]
        assert {key for key in whole if not key.startswith("x-")} == {"services", "volumes"}
        assert service.keys() <= KEYS
        assert "image" in service or "build" in service
        assert service.get("build", {}).keys() <= {"context", "target"}
        for other, told in service.get("depends_on", {}).items():
            assert told["condition"] in {"service_healthy", "service_completed_successfully"}
            there = whole["services"][other]
            assert ("healthcheck" in there) == (told["condition"] == "service_healthy")
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in whole["volumes"], volume
        check = service.get("healthcheck", {})
        assert check.keys() <= {"test", "interval", "timeout", "retries", "start_period"}
        assert not check or check["test"][0] in {"CMD", "CMD-SHELL"}
        times = [check[key] for key in ("interval", "timeout", "start_period") if key in check]
        assert all(re.fullmatch(r"\d+s", time) for time in [*times, service.get("stop_grace_period", "1s")])
        if target := service.get("build", {}).get("target"):
            assert f" AS {target}\n" in (ROOT / "Dockerfile").read_text()
        # What is not set has a default or stops the start with a sentence.
        for variable in re.findall(r"\$\{([^}]*)\}", str(service)):
            assert re.fullmatch(r"\w+(:-\w+|:\?set \w+ in \.env)", variable), variable

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


MANIFESTS = ROOT / "deploy" / "kubernetes"


class TestJobs:
    def test_a_job_of_kubernetes_runs_a_command_of_ours_as_the_other_pods_do(self) -> None:
        text = (MANIFESTS / "trial.yaml").read_text()
        job = yaml.safe_load(text.replace("$TRIAL", str(UUID(int=1))).replace("$PROCESSES", "2"))
        kubernetes_validate.validate(job, "1.37", strict=True)
        pod = job["spec"]["template"]["spec"]
        [container] = pod["containers"]
        require_command(container["command"][1:])
        ours = {f"CLARINET_{name.upper()}" for name in Settings.model_fields}
        assert {entry["name"] for entry in container["env"]} <= ours
        [worker] = [each for name, each in pods() if name == "worker-gpu"]
        [beside] = worker["containers"]
        assert container["image"].split("/")[-1].split(":")[0] == beside["image"]
        for told in ("envFrom", "securityContext"):
            assert container[told] == beside[told]
        # The namespace takes no pod that could be root.
        for told in ("securityContext", "automountServiceAccountToken"):
            assert pod[told] == worker[told]

    def test_a_job_of_slurm_runs_a_command_of_ours(self) -> None:
        text = (ROOT / "deploy" / "slurm" / "trial.sh").read_text()
        [started] = re.findall(r"^exec clarinet (.+)$", text, flags=re.MULTILINE)
        require_command(started.replace("$TRIAL", str(UUID(int=1))).split())


def manifests() -> list[dict[str, Any]]:
    """Every object that the kustomization joins."""
    names = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"]
    return [each for name in names for each in yaml.safe_load_all((MANIFESTS / name).read_text())]


def pods() -> list[tuple[str, dict[str, Any]]]:
    """The specification of each kind of pod, by name."""
    found = []
    for each in manifests():
        spec = each.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            found.append((each["metadata"]["name"], spec["template"]["spec"]))
    return found


class TestKubernetes:
    def test_all_files_are_joined_and_fit_the_published_schemas(self) -> None:
        joined = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"]
        assert {*joined, "kustomization.yaml", "trial.yaml"} == {path.name for path in MANIFESTS.iterdir()}
        for each in manifests():
            kubernetes_validate.validate(each, "1.37", strict=True)

    @pytest.mark.parametrize(("name", "pod"), pods())
    def test_each_pod_is_bounded_and_starts_a_command_of_ours(self, name: str, pod: dict[str, Any]) -> None:
        [box] = pod["containers"]
        require_command(box["args"])
        assert box["image"] in {"clarinet-web", "clarinet-worker"}
        assert box["resources"]["limits"]["memory"]
        assert box["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["securityContext"]["runAsNonRoot"] is True
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in box["volumeMounts"]} == volumes >= {"data", "tmp"}
        if pod.get("restartPolicy") is None:  # it is to run for ever
            probe = box["livenessProbe"]
            if name != "web":
                command = probe["exec"]["command"]
                assert command[0] == "clarinet"
                require_command(command[1:])

    def test_settings_are_ours_and_no_secret_stands_there(self) -> None:
        ours = {f"CLARINET_{name.upper()}": name for name in Settings.model_fields}
        told = {key for each in manifests() if each["kind"] == "ConfigMap" for key in each["data"]}
        told |= {
            item["name"] for _, pod in pods() for box in pod["containers"] for item in box.get("env", [])
        }
        told = {key for key in told if key.startswith("CLARINET_")}
        secret = set(re.findall(r"from-literal=(\w+)=", (ROOT / "deploy" / "README.md").read_text()))

        assert told | secret <= ours.keys()
        assert told & secret == set()
        hidden = {key for key, name in ours.items() if Settings.model_fields[name].annotation is SecretStr}
        assert told & hidden == set()
        assert [each for each in manifests() if each["kind"] == "Secret"] == []


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_takes_the_proxys_file(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a", "-keyout"]
    subprocess.run([*made, str(key), "-out", str(certificate)], check=True, capture_output=True)
    text = (ROOT / "deploy" / "nginx" / "clarinet.conf").read_text()
    text = text.replace("/etc/ssl/clarinet/fullchain.pem", str(certificate))
    text = text.replace("/etc/ssl/clarinet/privkey.pem", str(key))
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {text} }}")
    done = subprocess.run(["nginx", "-t", "-c", whole], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `/metrics` says of a new installation."""
    folder = tmp_path_factory.mktemp("metrics")
    database = connect(f"sqlite:///{folder / 'a.db'}")
    upgrade(database.engine)
    metrics = Metrics(database, folder)
    metrics.note("GET", "/api/v1/campaigns/{campaign_id}/questions", 200, 0.1)
    with database.write.begin() as session:
        record_service(session, "one", UPKEEP, version="", now=utc_now())
        session.add(DiskUse(kind=DiskKind.DATASETS, size_bytes=1, files=1, measured_at=utc_now()))
    text = asyncio.run(metrics.text()).decode()
    database.dispose()
    return text


def assert_asks_for_what_is_measured(query: str, measured: str) -> None:
    names = set(re.findall(r"^(clarinet_\w+)", measured, flags=re.MULTILINE))
    labels = set(re.findall(r"(\w+)=\"", measured)) | {"job", "instance"}
    assert set(re.findall(r"clarinet_\w+", query)) <= names, query
    assert set(re.findall(r"(\w+)=~?\"", query)) <= labels, query
    by = {name.strip() for group in re.findall(r"by \(([^)]*)\)", query) for name in group.split(",")}
    assert by <= labels, query


def test_alerts_ask_for_what_is_measured(measured: str) -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "clarinet.rules.yml").read_text())
    for rule in rules["groups"][0]["rules"]:
        assert_asks_for_what_is_measured(rule["expr"], measured)
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["labels"]["severity"] in ("page", "ticket")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_takes_the_alerts() -> None:
    rules = ROOT / "deploy" / "prometheus" / "clarinet.rules.yml"
    done = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_asks_for_what_is_measured(measured: str) -> None:
    board = json.loads((ROOT / "deploy" / "grafana" / "clarinet.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        assert panel["description"].endswith(".")
        for target in panel["targets"]:
            assert_asks_for_what_is_measured(target["expr"], measured)


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
