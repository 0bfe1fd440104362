"""`pip install ARGUMENTS`, and how far it is: pip alone is silent for minutes, or has a line a file."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

# On Linux PyTorch brings CUDA along: measured in an empty environment. Elsewhere: reckoned from that.
WITH_CUDA = sys.platform == "linux"
DOWNLOAD_GB, DISK_GB = (3.2, 6.3) if WITH_CUDA else (0.3, 1.3)
ENVIRONMENT = Path(sys.prefix)
LAST_LINES = 25  # of pip's, told when it fails
TELL_S = 15.0  # between two lines where there is no terminal


def size_gb(folders: list[Path]) -> float:
    """All files below some folders, in 10^9 bytes, while others write and delete there."""
    total = 0
    for path in (Path(parent) / name for f in folders for parent, _, names in os.walk(f) for name in names):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:
            continue
    return total / 1e9


def how_far(lines: list[str], scratch: Path) -> str:
    """One short line, from what pip has said and what lies where it downloads to."""
    last = next((line for line in reversed(lines) if line.startswith(("Collecting", "Installing"))), "")
    if last.startswith("Installing"):
        count = last.count(",") + 1
        unpacked = size_gb([ENVIRONMENT]) - size_gb([scratch])  # the downloads lie there until pip ends
        return f"unpacking {count} packages: {unpacked:.1f} of about {DISK_GB} GB"
    found = len({line.split()[1] for line in lines if line.startswith("Collecting")})
    loaded = size_gb([*scratch.glob("pip-*")])  # beside them lie copies on their way to pip's cache
    name = re.split(r"[^\w.-]", last.removeprefix("Collecting "))[0]
    return f"{found} packages found, {loaded:.1f} of about {DOWNLOAD_GB} GB downloaded: {name}"


def follow(process: "subprocess.Popen[str]", scratch: Path) -> list[str]:
    """Tell how far pip is until it ends: in place on a terminal, else now and then; gives what it said."""
    lines: list[str] = []
    reader = Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
    reader.start()
    shown = sys.stdout.isatty()
    told = time.monotonic()
    while reader.is_alive():
        reader.join(1)
        if shown:
            print(f"\r  {how_far(lines, scratch):.76}\033[K", end="", flush=True)
        elif time.monotonic() - told > TELL_S:
            told = time.monotonic()
            print(f"  {how_far(lines, scratch)}", flush=True)
    if shown:
        print("\r\033[K", end="")
    return lines


def main(arguments: list[str]) -> int:
    """Install; gives pip's exit status."""
    began = time.monotonic()
    if any(ENVIRONMENT.glob("lib*/python*/site-packages/torch/version.py")):
        print("Bringing the Python packages up to date ...", flush=True)
    else:
        print(
            f"Installing Python packages: about {DOWNLOAD_GB} GB to download and {DISK_GB} GB on disk,"
            f" nearly all of it PyTorch{' with CUDA' if WITH_CUDA else ''} ...",
            flush=True,
        )
    # A folder of our own shows what has come. It lies where the packages go: /tmp is often too small.
    with tempfile.TemporaryDirectory(dir=ENVIRONMENT) as scratch:
        process = subprocess.Popen(
            [sys.executable, "-m", "pip", "install", "--progress-bar", "off", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"TMPDIR": scratch},
        )
        lines = follow(process, Path(scratch))
        status = process.wait()
    if status:
        print("".join(lines[-LAST_LINES:]), file=sys.stderr)
    else:
        print(f"Python packages are in {ENVIRONMENT} ({time.monotonic() - began:.0f} s).")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
