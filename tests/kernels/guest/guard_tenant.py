"""What the guard costs a tenant: page faults and forks, with it and without, in turns.

``guard_tenant.py SPEC``: rounds of some seconds; $OUT/tenant.json has a row for each turn.
"""

import gc
import json
import mmap
import os
import sys
import time
from pathlib import Path

import guard_tree
from guard_killers import Killer

OUT = Path(os.environ.get("OUT", "/run/out"))
TURNS, TURN_SECONDS, SETTLE_SECONDS = 6, 5.0, 3.0
PAGES = 512
PAGE = mmap.PAGESIZE


def faults() -> float:
    """Seconds for one of PAGES first touches."""
    area = mmap.mmap(-1, PAGES * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    began = time.perf_counter()
    area[::PAGE] = b"x" * PAGES
    return (time.perf_counter() - began) / PAGES


def fork() -> float:
    began = time.perf_counter()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return time.perf_counter() - began


def turn(is_on: bool) -> dict[str, object]:
    rows: dict[str, list[float]] = {"fault": [], "fork": []}
    until = time.monotonic() + TURN_SECONDS
    while time.monotonic() < until:
        rows["fault"].append(faults())
        rows["fork"].append(fork())
    told: dict[str, object] = {"is_on": is_on, "count": len(rows["fork"])}
    for name, seconds in rows.items():
        seconds.sort()
        told[f"{name}_p50"] = seconds[len(seconds) // 2]
        told[f"{name}_p99"] = seconds[len(seconds) * 99 // 100]
    return told


def main(path: str) -> None:
    killer = Killer(json.loads(Path(path).read_text())["killer"])
    pod = guard_tree.Pod("tenant", "tenant", "burstable")
    guard_tree.make("/system.slice")
    pod.make(200, None)
    gc.disable()
    told = []
    for number in range(TURNS):
        is_on = number % 2 == 1
        if is_on and not killer.start():
            raise SystemExit("the guard does not get ready")
        time.sleep(SETTLE_SECONDS)
        child = os.fork()
        if not child:
            guard_tree.enter(pod.path)
            (OUT / f"turn-{number}").write_text(json.dumps(turn(is_on)))
            os._exit(0)
        os.waitpid(child, 0)
        told.append(json.loads((OUT / f"turn-{number}").read_text()))
        if is_on:
            killer.stop()
    (OUT / "tenant.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
