"""What the guard's processes hold together, by PSS: each page counted once, a shared one by shares.

And the processor time that they take at rest.  A guard of each source tree that is named (this one
where none is; twice is twice), in observe mode, with a black box and a scope that is nobody's; one
after the other, in the same run.  Anonymous memory beside it, for pages of the interpreter's files
are shared with every other Python of the machine.
``python -m bench.guard_shares [SECONDS] [SOURCES ...]``, as root; Debian's python3.11 where it is
there.  While the watcher follows pages it holds up to 16 MiB more (``is_armed``): measure at peace.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.pods import PYTHON, SOURCES

SECONDS = 20.0
START_SECONDS = 60.0
SETTLE_SECONDS = 25.0
"""From ready to rest: the first self-test, the watcher's first ledger and base."""
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from seawall.guard import launcher
launcher.run(sys.argv[2], sys.argv[3])
"""
_FIELDS = ("Rss", "Pss", "Anonymous", "Private_Dirty")


def shares(pid: int) -> dict[str, dict[str, int]]:
    """KiB of it and of all that descend from it, by name and pid, and of all together."""
    found: dict[str, dict[str, int]] = {}
    for one in (pid, *descendants(pid)):
        try:
            rows = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()[1:]
            name = Path(f"/proc/{one}/comm").read_text().strip()
        except OSError:  # it has ended
            continue
        table = {row.split(":")[0]: int(row.split()[1]) for row in rows}
        found[f"{name} {one}"] = {field: table[field] for field in _FIELDS}
    whole = {field: sum(one[field] for one in found.values()) for field in _FIELDS}
    return {**found, "together": whole}


def cpu_seconds(pid: int) -> dict[str, float]:
    """Of it and of all that descend from it, so far, by name and pid."""
    found: dict[str, float] = {}
    for one in (pid, *descendants(pid)):
        try:
            threads = [file.read_text() for file in Path(f"/proc/{one}/task").glob("*/schedstat")]
            name = Path(f"/proc/{one}/comm").read_text().strip()
        except OSError:  # it has ended
            continue
        found[f"{name} {one}"] = sum(int(row.split()[0]) for row in threads) / 1e9
    return found


def descendants(pid: int) -> list[int]:
    """Children and theirs, as far as they live."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [one for child in map(int, children) for one in (child, *descendants(child))]


def measure(sources: str, seconds: float = SECONDS) -> dict[str, Any]:
    """Seconds until it is ready; at rest, over ``seconds``: processor time a minute, memory."""
    subprocess.run([PYTHON, "-m", "compileall", "-q", sources], check=False)
    folder = Path(tempfile.mkdtemp(prefix="seawall-bench-", dir="/run"))
    config = folder / "guard.toml"
    config.write_text(
        f'mode = "observe"\nblackbox = "{folder}/blackbox"\nscope = ["/seawall-nobody"]\n'
    )
    config.chmod(0o600)
    began = time.monotonic()
    process = subprocess.Popen(
        [PYTHON, "-I", "-c", _PROGRAM, sources, str(config), str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not (folder / "status.json").exists():
            if process.poll() is not None or time.monotonic() > began + START_SECONDS:
                return {"problem": "no guard that is ready: it needs root"}
            time.sleep(0.01)
        ready = time.monotonic() - began
        time.sleep(SETTLE_SECONDS)
        before, since = cpu_seconds(process.pid), time.monotonic()
        time.sleep(seconds)
        after, minutes = cpu_seconds(process.pid), (time.monotonic() - since) / 60
        spent = {name: 1000 * (after[name] - before.get(name, 0.0)) / minutes for name in after}
        spent["together"] = sum(spent.values())
        return {
            "ready_seconds": round(ready, 2),
            "cpu_ms_per_minute": {name: round(spent[name], 1) for name in spent},
            "kib": shares(process.pid),
        }
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


def main(argv: list[str]) -> int:
    """Print what was measured, one JSON document."""
    seconds = float(argv[0]) if argv and argv[0][0].isdigit() else SECONDS
    trees = [word for word in argv if not word[0].isdigit()] or [str(SOURCES)]
    print(json.dumps([{"sources": tree, **measure(tree, seconds)} for tree in trees], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
