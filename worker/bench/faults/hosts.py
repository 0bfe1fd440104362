"""Machines on one machine: each is a network namespace with a folder, and its processes are hit."""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SKEWED = Path(__file__).parent / "skewed"  # what makes a Python process go by its host's own clock
GRACE_S = 15.0
TRAINER = "worker.trainer"


class Seen(NamedTuple):
    """A live process: its parent and its command."""

    parent: int
    command: str


def processes() -> dict[int, Seen]:
    """All processes of the machine that have not ended, by id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError):  # it may end meanwhile
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if state != "Z":
                found[int(entry.name)] = Seen(int(parent), command)
    return found


def trainers_in(folder: Path) -> list[int]:
    """Training processes whose data lie below a folder, whoever their parent is by now."""
    found = []
    for pid, seen in processes().items():
        with suppress(OSError):
            if TRAINER in seen.command and f"CLARINET_DATA_DIR={folder}".encode() in _environ(pid):
                found.append(pid)
    return found


def _environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


class Network:
    """A bridge into which hosts are plugged. Without root or `ip` hosts share 127.0.0.1 and cannot be cut."""

    def __init__(self) -> None:
        self.can_cut = os.geteuid() == 0 and shutil.which("ip") is not None
        self._bridge = f"clb{os.getpid()}"
        self._net = f"10.{100 + os.getpid() // 256 % 100}.{os.getpid() % 256}"
        self._plugs: list[Plug] = []
        self.address = f"{self._net}.1" if self.can_cut else "127.0.0.1"
        if self.can_cut:
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("address", "add", f"{self.address}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")

    def plug(self) -> "Plug | None":
        """A new namespace on the bridge."""
        if not self.can_cut:
            return None
        number = len(self._plugs) + 2  # the bridge has the first address
        plug = Plug(
            f"{self._bridge}-{number}", f"clv{os.getpid()}-{number}", self._bridge, f"{self._net}.{number}"
        )
        plug.make()
        self._plugs.append(plug)
        return plug

    def close(self) -> None:
        """Take all of it away; the processes inside must have ended."""
        for plug in self._plugs:
            plug.remove()
        if self.can_cut:
            _ip("link", "delete", self._bridge)


class Plug(NamedTuple):
    """A namespace and its cable to the bridge."""

    namespace: str
    cable: str
    bridge: str
    address: str

    def make(self) -> None:
        """As a machine that starts: nothing of a former one's connections is left."""
        _ip("netns", "add", self.namespace)
        _ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        self.heal()
        _ip("link", "set", self.cable, "up")
        _ip("-n", self.namespace, "address", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _ip("-n", self.namespace, "link", "set", device, "up")

    def remove(self) -> None:
        """As a machine that is switched off."""
        for what, name in (("link", self.cable), ("netns", self.namespace)):
            _ip(what, "delete", name, check=False)  # it may be off already

    def cut(self) -> None:
        """Lose every packet from now on, without a word to either side."""
        _ip("link", "set", self.cable, "nomaster")

    def heal(self) -> None:
        """Let packets through."""
        _ip("link", "set", self.cable, "master", self.bridge)


@dataclass
class Host:
    """A machine with processes that are started again when they end, as systemd does it."""

    name: str
    folder: Path
    address: str
    plug: Plug | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    user: str | None = None
    _start: dict[str, Callable[[], subprocess.Popen[bytes]]] = field(default_factory=dict)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _is_on: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Make the folder, and set the clock right."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.skew(0)
        path = os.pathsep.join([str(SKEWED), self.environment.get("PYTHONPATH", "")])
        own = {"CLARINET_DATA_DIR": str(self.folder), "CLOCK_AHEAD_S": str(self.clock), "PYTHONPATH": path}
        self.environment = {**self.environment, **own}

    @property
    def clock(self) -> Path:
        """By how many seconds its clock is ahead."""
        return self.folder / "clock-ahead-s"

    def run(self, role: str, *command: str | Path) -> None:
        """Start a process that stays."""
        inside = ["ip", "netns", "exec", self.plug.namespace] if self.plug else []

        def start() -> subprocess.Popen[bytes]:
            with (self.folder / f"{role}.log").open("ab") as log:
                return subprocess.Popen(
                    [*inside, *command],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    user=self.user,
                )

        with self._lock:
            self._start[role] = start
            self._running[role] = start()

    def tend(self) -> None:
        """Start again what has ended."""
        with self._lock:
            for role, process in self._running.items():
                if self._is_on and process.poll() is not None:
                    self._running[role] = self._start[role]()

    def pids(self) -> list[int]:
        """What runs here: the processes that stay, and all below them."""
        seen = processes()
        found = [process.pid for process in self._running.values() if process.pid in seen]
        for pid in found:  # which grows meanwhile
            found += [child for child, about in seen.items() if about.parent == pid]
        return found

    def kill(self, part: str = "main") -> None:
        """kill -9 of the main process, of what trains, of its supervisor, or of all."""
        self._signal(self._part(part), signal.SIGKILL)

    def _part(self, part: str) -> Sequence[int]:
        pids, seen = self.pids(), processes()
        trainers = [pid for pid in pids if pid in seen and TRAINER in seen[pid].command]
        return {
            "main": pids[:1],
            "trainer": trainers,
            "supervisor": [seen[pid].parent for pid in trainers],
            "all": pids,
        }[part]

    def power_off(self) -> None:
        """Everything ends at once, and nobody is told: the cable is cut before the sockets are closed."""
        with self._lock:
            self._is_on = False
        self.cut()
        self.kill("all")
        if self.plug:
            self.plug.remove()

    def power_on(self) -> None:
        """Come back."""
        if self.plug:
            self.plug.make()
        with self._lock:
            self._is_on = True

    def cut(self) -> None:
        """Lose the network, where there is one."""
        if self.plug:
            self.plug.cut()

    def heal(self) -> None:
        """Have it again."""
        if self.plug:
            self.plug.heal()

    def pause(self) -> None:
        """Stand still."""
        self._signal(self.pids(), signal.SIGSTOP)

    def go_on(self) -> None:
        """Run again."""
        self._signal(self.pids(), signal.SIGCONT)

    def skew(self, ahead_s: float) -> None:
        """Set the clock wrongly, or right."""
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(str(ahead_s))
        fresh.replace(self.clock)

    def end(self) -> None:
        """End everything, gently first."""
        with self._lock:
            self._is_on = False
        self.go_on()
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        self.kill("all")
        for process in self._running.values():
            process.kill()
            process.wait()

    @staticmethod
    def _signal(pids: Sequence[int], number: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
