"""What the hosts share: PostgreSQL, Redis, an S3 store and a proxy, as processes that are hit like hosts."""

import http.client
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from app.db import connect
from app.errors import AppError
from worker.bench.faults.hosts import Host
from worker.bench.web import free_port
from worker.outages import keep_trying

START_S = 60.0
BUCKET = "faults"
# What an S3 store asks of who makes a bucket; moto's server checks no signature.
SIGNED = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
PROXY = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx-error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_max_body_size 100m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream web {{ {servers} keepalive 64; }}
  server {{
    listen {address}:{port};
    location / {{
      proxy_pass http://web; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr;
      proxy_connect_timeout 1s; proxy_read_timeout 10s; proxy_send_timeout 10s;
    }}
  }}
}}
"""


class NotHere(AppError):
    """A program that the benchmark needs is not on this machine."""


def program(name: str, *others: Path) -> str:
    """Where a program is; raises NotHere."""
    found = shutil.which(name) or next((str(path) for path in others if path.exists()), None)
    if found is None:
        raise NotHere(f"{name} was not found on this machine. Install it, then try again.")
    return found


def wait_for(address: str, port: int) -> None:
    """Wait until somebody listens there; raises NotHere."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection((address, port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise NotHere(f"What should listen on {address}:{port} did not start.") from None
            time.sleep(0.1)
        else:
            return


def start_database(host: Host) -> str:
    """PostgreSQL with an empty cluster; gives its address for SQLAlchemy. Never runs as root."""
    cluster, port = host.folder / "cluster", free_port(host.address)
    bins = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if host.user:
        shutil.chown(host.folder, host.user)
    subprocess.run(
        [
            program("initdb", *(folder / "initdb" for folder in bins)),
            *("--pgdata", str(cluster), "--username", "postgres", "--auth", "trust", "--no-sync"),
        ],
        check=True,
        capture_output=True,
        user=host.user,
        cwd=host.folder,
    )
    with (cluster / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 10.0.0.0/8 trust\n")
    settings = {
        "listen_addresses": host.address,
        "port": str(port),
        "unix_socket_directories": str(host.folder),
        "max_connections": "300",
    }
    told = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    host.run("database", program("postgres", *(folder / "postgres" for folder in bins)), "-D", cluster, *told)
    url = f"postgresql+psycopg://postgres@{host.address}:{port}/postgres"
    opened = connect(url)
    keep_trying(lambda: opened.engine.connect().close(), patience_s=START_S)
    opened.dispose()
    return url


def start_broker(host: Host) -> str:
    """Redis that keeps nothing; gives its address. Where it is killed, its messages are lost."""
    port = free_port(host.address)
    told = ("--save", "", "--appendonly", "no", "--protected-mode", "no", "--dir", str(host.folder))
    host.run("broker", program("redis-server"), "--bind", host.address, "--port", str(port), *told)
    wait_for(host.address, port)
    return f"redis://{host.address}:{port}/0"


def start_store(host: Host) -> str:
    """moto's S3 server with a bucket; gives its address. It forgets everything at its end."""
    port = free_port(host.address)
    server = program("moto_server", Path(sys.executable).parent / "moto_server")
    host.run("store", server, "-H", host.address, "-p", str(port))
    wait_for(host.address, port)
    with closing(http.client.HTTPConnection(host.address, port, timeout=30)) as connection:
        connection.request("PUT", f"/{BUCKET}", headers={"Authorization": SIGNED})
        connection.getresponse().read()
    return f"http://{host.address}:{port}"


def start_proxy(host: Host, port: int, servers: Sequence[tuple[str, int]]) -> None:
    """nginx before the web processes."""
    listed = " ".join(
        f"server {address}:{number} max_fails=1 fail_timeout=2s;" for address, number in servers
    )
    told = PROXY.format(folder=host.folder, servers=listed, address=host.address, port=port)
    path = host.folder / "nginx.conf"
    path.write_text(told)
    host.run("proxy", program("nginx"), "-c", path, "-e", host.folder / "nginx-error.log", "-p", host.folder)
    wait_for(host.address, port)
