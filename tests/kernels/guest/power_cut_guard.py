"""The whole guard with its black box on a disk that may lose its cache: ``power_cut_guard.py``.

Three services at work, the guard, and a culprit whose rings take the node's memory once
``SECONDS`` (of the environment) are over.  Says on the console, ten times a second, what the time
is, and when the guard's first decision stood in its journal.
"""

import ctypes
import gc
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import guard_tree
from guard_killers import Killer
from guard_run import Load

EVERY_SECONDS = 0.1
MCL_CURRENT_FUTURE = 3
BOX = Path("/mnt/box/blackbox/box")
BOX_SECONDS = 120
PAGE_BYTES = 4096
TELL_SECONDS = 20
"""Seconds between two states."""
JOURNAL = Path("/run/seawall/decisions.jsonl")
KEYS = {"limit_mib": 160, "request_mib": 100, "cpu": 0.3, "kind": "burstable", "adj": None,
        "is_small": False, "own_network": True, "is_culprit": False}  # fmt: skip


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


def loads() -> list[Load]:
    services = [
        {**KEYS, "name": f"service-{n}", "program": ["guard_loads.py", "service", str(100 << 20)]}
        for n in range(3)
    ]
    hog = {**KEYS, "name": "hog", "program": ["kernel_loads.py", "rings", str(4 << 30), "80", "GO"],
           "cpu": None, "limit_mib": 400, "is_culprit": True}  # fmt: skip
    return [Load(row, "1") for row in (*services, hog)]


def wait_for_box() -> None:
    """Written in full, and a frame behind its first page."""
    until = time.monotonic() + BOX_SECONDS
    while time.monotonic() < until:
        with suppress(FileNotFoundError), open(BOX, "rb") as file:
            file.seek(PAGE_BYTES)
            if file.read(4) == b"SWbb":
                return
        time.sleep(0.2)
    raise SystemExit(f"no frame in the box within {BOX_SECONDS} s")


def journal_bytes() -> int:
    with suppress(FileNotFoundError):
        return JOURNAL.stat().st_size
    return 0


def tell_state(killer: Killer) -> None:
    """For whoever wants to know why nothing happens."""
    with suppress(OSError), open("/proc/meminfo") as file:
        say("state: " + " ".join(" ".join(file.readline().split()) for _ in range(3)))
        say(f"state: {sorted(os.listdir('/run/seawall'))}")
        say("state: " + killer.log.read_text(errors="replace")[-500:].replace("\n", " | "))


def main(peace_seconds: float) -> None:
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    for group in ("/kubepods/burstable", "/system.slice/kubelet.service"):
        guard_tree.make(group)
    killer = Killer(json.loads(os.environ["KILLER"]))
    started = loads()
    for load in started:
        load.start()
    while not all(load.is_ready() for load in started):
        time.sleep(0.1)
    is_ready = killer.start()
    say(f"guard {'ready' if is_ready else 'NOT READY'}")
    if not is_ready:
        tell_state(killer)  # it records all the same
    wait_for_box()
    say(f"box of {BOX.stat().st_size} bytes")
    gc.disable()
    ctypes.CDLL(None).mlockall(MCL_CURRENT_FUTURE)
    go, before, has_acted, told = time.monotonic() + peace_seconds, -1, False, 10.0
    while True:
        say(f"clock {time.time():.3f}")
        if before < 0 and time.monotonic() > go:
            before = journal_bytes()
            started[-1].go.touch()
            say("hog goes")
        if before >= 0 and not has_acted and journal_bytes() > before:
            has_acted = True
            say("guard decided")
        if time.monotonic() > go + told:
            told += TELL_SECONDS
            tell_state(killer)
        time.sleep(EVERY_SECONDS)


if __name__ == "__main__":
    main(float(sys.argv[1]))
