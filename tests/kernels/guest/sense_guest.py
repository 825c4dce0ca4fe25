"""The guard's eyes in a VM: a container at its own limit, then a node that is really filled."""

import json
import mmap
import os
import subprocess
import sys
import time
from typing import Any

from seawall.actions.orders import Mounts
from seawall.guard.sense.sense import Sense
from seawall.guard.settings import Settings

MIB = 1 << 20
VERSION = int(sys.argv[1])
MOUNT = "/sys/fs/cgroup" if VERSION == 2 else "/sys/fs/cgroup/memory"
LIMIT = "memory.max" if VERSION == 2 else "memory.limit_in_bytes"
STEP = 4 * MIB
HURTS_SECONDS = 2.0
PAGE = mmap.PAGESIZE
_IN = "import os; open('{}/cgroup.procs', 'w').write(str(os.getpid()))\n"
# Holds 40 MiB and reads a file that does not fit beside it, over and over.
_THRASH = """
held = b'x' * (40 << 20)
print('ready', flush=True)
while True:
    with open('/opt/text', 'rb', buffering=0) as file:
        while file.read(1 << 20): pass
"""
# All of it becomes page cache of its cgroup.
_READ = """
with open('/opt/text', 'rb', buffering=0) as file:
    while file.read(1 << 20): pass
print('ready', flush=True)
import sys; sys.stdin.read()
"""
# A byte on standard input: four MiB more.
_FILL = """
import mmap, sys
held = []
print('ready', flush=True)
while sys.stdin.buffer.read(1):
    area = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area[::4096] = b'x' * 1024
    held.append(area)
    print('took', flush=True)
"""


def start(program: str, cgroup: str, limit: int = 0) -> "subprocess.Popen[bytes]":
    folder = MOUNT + cgroup
    os.mkdir(folder)
    if limit:
        with open(f"{folder}/{LIMIT}", "w") as file:
            file.write(str(limit))
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _IN.format(folder) + program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout.readline() == b"ready\n"
    return child


def at_its_limit(sense: Sense) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Five seconds of it."""
    hog = start(_THRASH, "/full", 64 * MIB)
    rows, until = [], time.monotonic() + 6
    while time.monotonic() < until:
        sense.wait(0.25, ())
        node = sense.look(time.monotonic())
        group = sense.groups["/full"]
        sense.detail(group)
        rows.append({
            "stalls": node.stalls_per_second, "headroom": node.headroom_bytes, "low": node.is_low,
            "at_limit": group.at_limit_seconds, "events": group.events_max, "stall": group.stall,
            "charge": group.charge_bytes, "limit": group.limit_bytes,
            "gives_back": group.gives_back_bytes, "protected": node.protected_stall,
            "progress": group.progress_per_second,
        })  # fmt: skip
    hog.kill()
    hog.wait()
    os.rmdir(f"{MOUNT}/full")
    sense.wait(0.25, ())
    node = sense.look(time.monotonic())
    return rows, {"exits": node.exits, "left": "/full" in sense.groups}


def fill(sense: Sense) -> dict[str, Any]:
    """Until a step takes seconds, a kill, or nothing is left; every step with what was taken."""
    with open("/opt/text", "rb") as file:
        text = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    mapped = sum(text[at] for at in range(0, 24 * MIB, PAGE)) >= 0
    with open("/opt/text", "rb", buffering=0) as file:
        while file.read(MIB):
            pass
    return {**take(sense, "/filler"), "mapped": mapped}


def take(sense: Sense, cgroup: str) -> dict[str, Any]:
    for _ in range(5):
        sense.wait(0.2, ())
        began = sense.look(time.monotonic())
    hog = start(_FILL, cgroup)
    rows, taken = [], 0
    head = sense.headroom
    for _ in range(600):
        asked = time.monotonic()
        if not asked_for_more(hog):
            break
        taken += STEP
        took = time.monotonic() - asked
        sense.wait(0.05, ())
        node = sense.look(time.monotonic())
        if node.kernel_kills:
            break  # of the filler: what it took is back
        rows.append({
            "taken": taken, "headroom": node.headroom_bytes, "stalls": node.stalls_per_second,
            "low": node.is_low, "min": node.is_min, "slope": node.slope_bytes_per_second,
            "residual": node.residual_bytes,
            "pause": sense.pause_seconds, "took": took,
            "parts": [head.free_bytes, head.cache_bytes, head.slab_bytes],
        })  # fmt: skip
        if node.headroom_bytes == 0 or took > HURTS_SECONDS:
            break
    hog.kill()
    hog.wait()
    return {"began": began.headroom_bytes, "total": began.total_bytes, "rows": rows}


def asked_for_more(hog: "subprocess.Popen[bytes]") -> bool:
    """False: the kernel killed it, in a step or between two."""
    try:
        hog.stdin.write(b".")
        hog.stdin.flush()
    except BrokenPipeError:
        return False
    return hog.stdout.readline() == b"took\n"


def kept(sense: Sense) -> dict[str, Any]:
    """The node is filled beside page cache that memory.min keeps."""
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")
    os.mkdir(f"{MOUNT}/keep")
    for name, text in (("cgroup.subtree_control", "+memory"), ("memory.min", str(200 * MIB))):
        with open(f"{MOUNT}/keep/{name}", "w") as file:
            file.write(text)
    keeper = start(_READ, "/keep/db")
    with open(f"{MOUNT}/keep/db/memory.min", "w") as file:
        file.write(str(200 * MIB))
    until = time.monotonic() + 30.0  # limits are read every ten seconds
    while not sense.table.protected_bytes and time.monotonic() < until:
        sense.wait(0.5, ())
        sense.look(time.monotonic())
    told = sense.table.protected_bytes
    found = take(sense, "/beside")
    keeper.kill()
    keeper.wait()
    with open(f"{MOUNT}/keep/db/memory.stat") as file:
        stat = dict(line.split() for line in file)
    left = int(stat["active_file"]) + int(stat["inactive_file"])
    return {**found, "told": told, "left": left}


def main() -> None:
    settings = Settings(scope=("/",))
    sense = Sense(settings, Mounts(MOUNT, VERSION), "/")
    sense.open()
    rows, after = at_its_limit(sense)
    found = {"limit": rows, "after": after, "fill": fill(sense), "blind": sense.blind,
             "triggers": list(sense.triggers.by_fd.values()),
             "kept": kept(sense) if VERSION == 2 else None}  # fmt: skip
    with open(f"{os.environ['OUT']}/sense.json", "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
