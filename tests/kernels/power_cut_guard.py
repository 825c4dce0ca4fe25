"""Power cuts under the whole guard: how much of the last minutes is in its black box?

A node runs `seawall guard run` with the box on a disk with a volatile cache; a driver-memory bomb
triggers it.  In peace and after the trigger, at random moments, it is drawn what a power cut would
leave, and at the last QEMU is killed.  Measured: the guest's time at the cut less the time of
the newest frame, or of the newest tick within the newest frame when that is later.
"""

import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.kernels import vm
from tests.kernels.guard_node import GUARD, killer_spec, packet_diag
from tests.kernels.power_cut_node import Node, empty_ext4, files_of
from tests.kernels.volatile_disk import Remains, VolatileDisk

from seawall.blackbox.reader import Box

HERE = Path(__file__).parent
BOX = "/blackbox/box"
MEMORY_MIB = 1024
READY_SECONDS = 300
DECISION_SECONDS = 90
BURST_SECONDS = 50
"""So long after the trigger a cut surely falls into the burst."""
PEACE_MOST_SECONDS = 30.0
TRIGGERED_MOST_SECONDS = 1.0
TOML = f"""mode = "enforce"
blackbox = "/mnt/box{BOX}"
blackbox_size = "8MiB"
"""
_JOB = """
echo -1000 > /proc/$$/oom_score_adj
mkdir -p /mnt/box /etc/seawall /var/log/pods
mount -t ext4 /dev/vdd /mnt/box || exit 1
mkdir -m 700 /mnt/box/blackbox
cp guard.toml /etc/seawall/
insmod af_packet_diag.ko
KILLER="$(cat killer.json)" exec python3.11 -S -E -s power_cut_guard.py SECONDS
"""


def run_boot(image: vm.Image, seed: int, in_peace: int, after: int) -> Iterator[dict[str, Any]]:
    """A row for each cut: so many in peace, so many after the trigger; the last kills QEMU."""
    chance = random.Random(seed)
    files = {path.name: path.read_bytes() for path in (HERE / "guest").glob("*guard*.py")}
    files["kernel_loads.py"] = (HERE.parent / "end_to_end/kernel_loads.py").read_bytes()
    files["killer.json"] = json.dumps(killer_spec(GUARD)).encode()
    files["guard.toml"] = TOML.encode()
    files["af_packet_diag.ko"] = packet_diag(image)
    peace_seconds = 12 * in_peace
    with tempfile.TemporaryDirectory(prefix="seawall-cut-") as name:
        folder = Path(name)
        job = _JOB.replace("SECONDS", str(peace_seconds + 2))
        late: TimeoutError | None = None
        with (
            VolatileDisk(
                empty_ext4(folder), f"{name}/box.nbd", lambda: chance.uniform(0, 0.01)
            ) as disk,
            Node(image, folder, job, (disk,), files=files, memory_mib=MEMORY_MIB) as node,
        ):
            ready = node.wait_for("box of", READY_SECONDS)
            drawn: list[Drawn] = [
                (None, cut) for cut in _moments(disk, chance, ready, in_peace, peace_seconds)
            ]
            try:
                drawn += _after_trigger(node, disk, chance, after, peace_seconds)
            except TimeoutError as error:  # what was drawn in peace counts all the same
                late = error
            offset = clock_offset(node)
            for number, (trigger, cut) in enumerate(drawn):
                yield {
                    "seed": seed, "number": number, "kind": "guard",
                    "how": "killed" if after and number == len(drawn) - 1 else "moment",
                    "after_trigger": None if trigger is None else round(cut.at - trigger, 2),
                    **judged(cut, cut.at - offset, folder),
                }  # fmt: skip
            if late:
                raise late


Drawn = tuple[float | None, Remains]
"""When the trigger was, and what a cut left."""


def _after_trigger(
    node: Node, disk: VolatileDisk, chance: random.Random, count: int, peace_seconds: float
) -> list[Drawn]:
    """The last is the one that kills QEMU."""
    if not count:
        return []
    decided = node.wait_for("guard decided", peace_seconds + DECISION_SECONDS)
    cuts = [*_moments(disk, chance, decided + 0.5, count - 1, BURST_SECONDS - 10)]
    time.sleep(chance.uniform(0, 10))
    at = node.kill()
    return [(decided, cut) for cut in (*cuts, replace(disk.cut(chance.randrange(1 << 32)), at=at))]


def _moments(
    disk: VolatileDisk, chance: random.Random, begin: float, count: int, seconds: float
) -> Iterator[Remains]:
    """Images at ``count`` random moments of the ``seconds`` from ``begin``."""
    for at in sorted(begin + chance.uniform(0, seconds) for _ in range(count)):
        time.sleep(max(0.0, at - time.monotonic()))
        yield disk.cut(chance.randrange(1 << 32))


def clock_offset(node: Node) -> float:
    """This host's monotonic clock less the guest's Unix time, by the line that came fastest."""
    found = [
        stamp - float(match[1])
        for stamp, line in node.lines
        if (match := re.fullmatch(r"clock (\d+\.\d+)", line))
    ]
    return min(found)


def judged(remains: Remains, guest_unix: float, folder: Path) -> dict[str, Any]:
    """What a cut left, and how much older than the cut that is."""
    files = files_of(remains.image, [BOX], folder)
    box = Box.open(str(files[BOX]))
    kinds: dict[str, int] = {}
    for head in box.heads:
        kinds[head.kind] = kinds.get(head.kind, 0) + 1
        box.frame(head)
    newest = max((head.unix_seconds for head in box.heads), default=0.0)
    ticks = max((head.unix_seconds for head in box.heads if head.kind == "tick"), default=0.0)
    sizes = [head.size for head in box.heads]
    row = {
        "cut_seed": remains.seed, "unflushed": remains.unflushed, "torn": box.torn,
        "frames": len(box.heads), "kinds": kinds, "lost_seconds": round(guest_unix - newest, 3),
        "lost_tick_seconds": round(guest_unix - ticks, 3),
        "frame_bytes": round(statistics.mean(sizes)) if sizes else 0,
    }  # fmt: skip
    box.close()
    return row


def is_good(row: dict[str, Any]) -> bool:
    """At most 1 s lost after a trigger, 30 s in peace."""
    most = PEACE_MOST_SECONDS if row["after_trigger"] is None else TRIGGERED_MOST_SECONDS
    return bool(row["lost_seconds"] <= most)
