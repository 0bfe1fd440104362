"""An installation of many machines: two of each kind, behind a proxy, over shared services."""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.migrate import upgrade
from app.settings import Settings
from worker.bench.faults.hosts import Host, Network
from worker.bench.faults.services import (
    BUCKET,
    start_broker,
    start_database,
    start_proxy,
    start_store,
    wait_for,
)
from worker.bench.web import free_port
from worker.context import Context
from worker.local.processes import environment_of

COMMAND = (sys.executable, "-m", "worker.cli.main")
WORKERS = {"io": ("worker", "--queues", "io"), "gpu": ("worker", "--queues", "gpu"), "upkeep": ("upkeep",)}
EACH = 2  # hosts of a kind
TEND_S = 0.2
SERVICES_USER = "postgres"  # as whom PostgreSQL runs where we are root, which it refuses to be


@dataclass(frozen=True, slots=True)
class Cluster:
    """What runs, by the word that a schedule has for it."""

    network: Network
    hosts: Mapping[str, list[Host]]
    context: Context
    address: str
    port: int  # of the proxy
    web_port: int

    @property
    def url(self) -> str:
        """Where people and programs reach the web processes."""
        return f"http://{self.address}:{self.port}"

    def start_web(self, number: int) -> None:
        """Start one of the web processes, and wait until it serves."""
        host = self.hosts["web"][number]
        where = ("--host", host.address, "--port", str(self.ports[number]), "--no-migrate")
        host.run("web", *COMMAND, "serve", *where)
        wait_for(host.address, self.ports[number])

    def start_workers(self) -> None:
        """Start everything that takes jobs or looks after them."""
        for kind, words in WORKERS.items():
            for host in self.hosts[kind]:
                host.run(kind, *COMMAND, *words)

    @property
    def ports(self) -> tuple[int, ...]:
        """Of the web processes; hosts without an address of their own cannot share one."""
        return tuple(self.web_port + number for number in range(EACH))


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Services, and hosts on which nothing runs yet; nothing of it is left at the end."""
    network = Network()
    folder.chmod(0o755)  # PostgreSQL's user comes through
    with ExitStack() as stack:
        stack.callback(network.close)

        def service(name: str, user: str | None = None) -> Host:
            host = Host(name, folder / name, network.address, user=user)
            stack.callback(host.end)
            return host

        database = service("database", SERVICES_USER if os.geteuid() == 0 else None)
        broker, store, proxy = (service(name) for name in ("broker", "store", "proxy"))
        port = free_port(network.address)
        settings = Settings(
            environment="test",
            data_dir=folder / "bench",
            database_url=start_database(database),
            broker_url=start_broker(broker),
            public_url=f"http://{network.address}:{port}",
            session_secret="x" * 32,
            s3_bucket=BUCKET,
            s3_endpoint=start_store(store),
            s3_access_key_id="key",
            s3_secret_access_key="secret",
            trusted_proxies=network.address,
            device="cpu",
            trainer_threads=1,
            log_format="json",
            _env_file=None,
        )
        context = Context.of(settings)
        stack.callback(context.database.dispose)
        upgrade(context.database.engine)
        told = environment_of(settings) | {"OMP_NUM_THREADS": "1"}
        hosts = {kind: _hosts(network, kind, folder, told, stack) for kind in ("web", *WORKERS)}
        found = Cluster(
            network,
            hosts | {host.name: [host] for host in (database, broker, store, proxy)},
            context,
            network.address,
            port,
            free_port(network.address),
        )
        start_proxy(
            proxy,
            port,
            [(host.address, number) for host, number in zip(hosts["web"], found.ports, strict=True)],
        )
        over = threading.Event()
        tender = threading.Thread(target=_tend, args=(found, over), daemon=True)
        tender.start()
        stack.callback(tender.join)
        stack.callback(over.set)
        yield found


def _hosts(
    network: Network, kind: str, folder: Path, environment: Mapping[str, str], stack: ExitStack
) -> list[Host]:
    made = []
    for number in range(1, EACH + 1):
        name = f"{kind}{number}"
        plug = network.plug()
        address = plug.address if plug else network.address
        made.append(Host(name, folder / name, address, plug, environment))
        stack.callback(made[-1].end)
    return made


def _tend(found: Cluster, over: threading.Event) -> None:
    while not over.wait(TEND_S):
        for hosts in found.hosts.values():
            for host in hosts:
                host.tend()
