"""What must hold before the whole application starts in one terminal: port, folder, to be alone there."""

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import AppError
from worker.fitness import folder_trouble

HELD = ".up.lock"  # in the folder of data; the system lets go of it with the process, however that ends


class BadStart(AppError):
    """What the command line or the settings ask for cannot be had on this machine."""


class PortTaken(BadStart):
    """Somebody listens there already."""

    def __init__(self, port: int) -> None:
        super().__init__(f"Port {port} is in use by another program. Choose another one: --port {port + 1}")


class NoSuchAddress(BadStart):
    """This machine has no such address to listen on."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(
            f"This machine cannot listen on {host}: {why}. Choose another address: --host 127.0.0.1"
        )


class FolderInUse(BadStart):
    """Another process runs the application over the same folder."""

    def __init__(self, folder: Path, process: str) -> None:
        who = f"process {process}" if process else "another process"
        super().__init__(
            f"Clarinet runs on {folder} already ({who}). End that one, or choose another folder: --data-dir"
        )


def require_free_port(host: str, port: int) -> None:
    """Raises PortTaken while somebody listens on the port, and NoSuchAddress."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError as error:
            raise BadStart(
                f"Only root may listen on port {port}. Choose one from 1024: --port 8000"
            ) from error
        except socket.gaierror as error:
            raise NoSuchAddress(host, str(error.strerror)) from error
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(port) from error
            raise NoSuchAddress(host, str(error.strerror)) from error


@contextmanager
def alone_on(folder: Path) -> Iterator[None]:
    """Hold the folder of data, which is made, against a second start on this machine.

    Raises:
        BadStart: nothing can be written there.
        FolderInUse: another process holds it.
    """
    if trouble := folder_trouble(folder):
        raise BadStart(f"{trouble} Choose another folder: --data-dir")
    with (folder / HELD).open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise FolderInUse(folder, file.read(20).strip()) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
