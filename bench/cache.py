"""What is in the page cache of 60,000 small files, and of one large one; the peer is vmtouch.

Both in the same run, alternately, the best of ROUNDS each, whole processes with the start of
the interpreter: what a person waits for.  Of the large file the scan alone is compared too,
without either's start: vmtouch says itself how long it took, ours is the probe's answer.

    python -m bench.cache [--gib N] [--folder DIR] [--files N]

``--gib`` 8 is the mark's size; the file is made in DIR, filled, measured and removed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seawall.host.live import LiveHost

SOURCES = Path(__file__).resolve().parents[1] / "src"
FILES = 60_000
FILES_A_FOLDER = 200
FILE_BYTES = 3_000
GIB = 2
ROUNDS = 3
MARK_SMALL = 1.2  # times vmtouch's time, at most
MARK_LARGE = 100.0  # times faster than vmtouch, at least
_ELAPSED = re.compile(rb"Elapsed: ([0-9.e-]+) seconds")


def measure_small(folder: str | None = None, files: int = FILES) -> dict[str, float]:
    """Seconds of both for a tree of small files; ``ratio`` is ours to vmtouch's."""
    with _folder(folder) as home:
        for number in range(files):
            part = home / f"{number // FILES_A_FOLDER:04}"
            part.mkdir(exist_ok=True)
            (part / f"{number:05}").write_bytes(b"x" * FILE_BYTES)
        for path in home.rglob("*"):  # whoever is first must not pay for both
            path.stat()
        best = _best({
            "seawall": lambda: _seawall("cache", str(home)),
            "vmtouch": lambda: _run(["vmtouch", str(home)]),
        })  # fmt: skip
        pages = json.loads(_seawall("cache", "--json", "--top=1", str(home)))["totals"]
    if pages["files"] != files:
        raise RuntimeError(f"{pages['files']} of {files} files were counted")
    return {**best, "files": files, "ratio": best["seawall"] / best["vmtouch"], "mark": MARK_SMALL}


def measure_large(folder: str | None = None, gib: float = GIB) -> dict[str, float]:
    """Seconds of both for one file that is wholly in memory; ``times_faster`` of the scan."""
    size = int(gib * (1 << 30))
    with _folder(folder) as home:
        path = home / "large"
        _fill(path, size)
        host = LiveHost()
        host.ask("residency", str(path))  # starts the child
        told: dict[str, float] = {}
        best = _best({
            "seawall_scan": lambda: _keep(told, host.ask("residency", str(path))),
            "vmtouch_scan": lambda: _run(["vmtouch", str(path)]),
            "seawall": lambda: _seawall("cache", str(path)),
        })  # fmt: skip
        host.close()
        # Its own figure leaves out its start.
        said = [_elapsed(_run(["vmtouch", str(path)])) for _ in range(ROUNDS)]
    best["vmtouch"] = best["vmtouch_scan"]
    best["vmtouch_scan"] = min(said)
    cached = told["cached"] * os.sysconf("SC_PAGE_SIZE")
    return {
        **best, "bytes": size, "cached_fraction": cached / size,
        "times_faster": best["vmtouch_scan"] / best["seawall_scan"], "mark": MARK_LARGE,
    }  # fmt: skip


def missing() -> str | None:
    """Why there is no peer, and what would provide it."""
    return None if shutil.which("vmtouch") else "vmtouch is missing: apt-get install vmtouch"


def _fill(path: Path, size: int) -> None:
    """A real file in memory; written out, so that the flusher does not run while we measure."""
    chunk = os.urandom(1 << 20)
    with open(path, "wb") as file:
        file.writelines(chunk for _ in range(size >> 20))
        file.flush()
        os.fsync(file.fileno())
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 22):
            pass


def _keep(told: dict[str, float], answer: object) -> None:
    if not isinstance(answer, dict):
        raise RuntimeError(f"no answer: {answer}")  # noqa: TRY004 - a measurement that failed
    told["cached"] = answer["cached"]


def _best(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def _run(command: list[str]) -> bytes:
    return subprocess.run(command, check=True, capture_output=True).stdout


def _seawall(*words: str) -> bytes:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-m", "seawall", *words]
    return subprocess.run(command, check=True, capture_output=True, env=environment).stdout


def _elapsed(out: bytes) -> float:
    found = _ELAPSED.search(out)
    if found is None:
        raise RuntimeError("vmtouch said no time")
    return float(found[1])


@contextmanager
def _folder(parent: str | None) -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="seawall-bench-cache-", dir=parent))
    try:
        yield home
    finally:
        shutil.rmtree(home)


def main(argv: list[str]) -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.cache")
    parser.add_argument("--gib", type=float, default=GIB)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--folder", help="where the files are made; a disk, not a tmpfs")
    arguments = parser.parse_args(argv)
    if why := missing():
        print(why)
        return 2
    small = measure_small(arguments.folder, arguments.files)
    print(f"{small['files']:.0f} small files, best of {ROUNDS}, {os.uname().release}")
    print(f"  seawall cache FOLDER {small['seawall'] * 1000:8.1f} ms")
    print(f"  vmtouch FOLDER       {small['vmtouch'] * 1000:8.1f} ms")
    print(f"  ratio {small['ratio']:.2f} (mark: at most {MARK_SMALL:g})")
    large = measure_large(arguments.folder, arguments.gib)
    print(
        f"one file of {large['bytes'] / (1 << 30):.1f} GiB, {large['cached_fraction']:.1%} cached"
    )
    print(f"  seawall, the scan    {large['seawall_scan'] * 1000:8.2f} ms")
    print(f"  vmtouch, the scan    {large['vmtouch_scan'] * 1000:8.2f} ms")
    print(f"  {large['times_faster']:.0f} times faster (mark: at least {MARK_LARGE:g})")
    print(f"  whole processes: {large['seawall'] * 1000:.0f} and {large['vmtouch'] * 1000:.0f} ms")
    met = small["ratio"] <= MARK_SMALL and large["times_faster"] >= MARK_LARGE
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
