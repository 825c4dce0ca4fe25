"""Power cuts: does the black box hold what its writer said that it holds?

``make power-cuts``, or ``python -m tests.kernels.power_cut --cuts 50 --seed 1 --journal FILE``.
A node writes frames ten times a second: its black box on one disk with a volatile cache, and two
controls (O_DIRECT alone; buffered) on another.  A boot ends with SIGKILL of QEMU at a random
moment; before that, as many further images are drawn at random moments, half of them while
a write of the box was not flushed yet: what a power cut leaves hangs on nothing later.  Only what
the host had read as acknowledged before the moment counts.  Half of the boots thrash.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kernels import power_cut_guard, vm
from tests.kernels.guard_boots import say
from tests.kernels.power_cut_node import DamagedFileSystem, Node, empty_ext4, files_of
from tests.kernels.volatile_disk import Remains, VolatileDisk

from seawall.blackbox.frame import MAGIC, body_of, head_at
from seawall.blackbox.reader import Box

GUEST = Path(__file__).parent / "guest"
BOX = "/blackbox/box"
SLOT_BYTES, SLOTS = 24 << 10, 160
TEXT_MIB = 96
MEMORY_MIB = 320
BOOT_SECONDS = 180
CUTS_A_BOOT = 10
WRITE_WAIT_SECONDS = 5.0
KINDS = ("ring", "direct", "buffered")
Acknowledged = dict[str, list[int]]

_JOB = f"""
echo -1000 > /proc/$$/oom_score_adj
mkdir -p /mnt/box /mnt/control
mount -t ext4 /dev/vdd /mnt/box && mount -t ext4 /dev/vde /mnt/control || exit 1
mkdir -m 700 /mnt/box/blackbox
python3.11 power_cut_writer.py ring /mnt/box{BOX} &
python3.11 power_cut_writer.py direct /mnt/control/direct &
python3.11 power_cut_writer.py buffered /mnt/control/buffered &
"""
_THRASH = """
echo 500 > /proc/$$/oom_score_adj
cat /opt/text > /dev/null
sleep 4
python3.11 thrash.py hold 24 > /run/held &
until [ -s /run/held ]; do sleep 0.5; done
python3.11 thrash.py walk /opt/text 12 &
echo thrashing
while :; do sleep 2; grep -E "^(workingset_refault_file|pgmajfault) " /proc/vmstat | xargs; done
"""
_QUIET = "sleep 100000\n"


def add_text(root: Path) -> None:
    """What the programs of a thrash run."""
    (root / "opt/text").write_bytes(random.Random(1).randbytes(TEXT_MIB << 20))


# --- one boot --------------------------------------------------------------------------


def run_boot(image: vm.Image, seed: int, cuts: int, *, is_thrash: bool) -> Iterator[dict[str, Any]]:
    """A row for each cut; the last is the one that kills QEMU."""
    chance = random.Random(seed)
    files = {name: (GUEST / name).read_bytes() for name in ("power_cut_writer.py", "thrash.py")}

    def slowness() -> float:
        return chance.uniform(0, 0.03) if is_thrash else chance.uniform(0, 0.004)

    with tempfile.TemporaryDirectory(prefix="seawall-cut-") as name:
        folder = Path(name)
        empty = empty_ext4(folder)
        job = _JOB + (_THRASH if is_thrash else _QUIET)
        with (
            VolatileDisk(empty, f"{name}/box.nbd", slowness) as box,
            VolatileDisk(empty, f"{name}/control.nbd") as control,
            Node(image, folder, job, (box, control), files=files, memory_mib=MEMORY_MIB,
                 root_iops=2000 if is_thrash else None) as node,
        ):  # fmt: skip
            for kind in KINDS:
                node.wait_for(f"ack {kind} 5", BOOT_SECONDS)
            if is_thrash:
                node.wait_for("thrashing", BOOT_SECONDS)
            for number in range(cuts):
                time.sleep(chance.uniform(0.2, 3))
                cut = _CUTS[2 if number == cuts - 1 else number % 2]
                remains = cut(node, box, control, chance.randrange(1 << 32))
                yield {
                    "seed": seed, "number": number, "is_thrash": is_thrash, "how": cut.__name__,
                    "refaults": refaults(node),
                    **judged(remains, acknowledged(node, remains[0].at), folder),
                }  # fmt: skip


Pair = tuple[Remains, Remains]


def killed(node: Node, box: VolatileDisk, control: VolatileDisk, seed: int) -> Pair:
    """QEMU dies, and the disks lose their caches."""
    node.kill()
    return box.cut(seed), control.cut(seed)


def moment(node: Node, box: VolatileDisk, control: VolatileDisk, seed: int) -> Pair:
    """Any moment."""
    return box.cut(seed), control.cut(seed)


def in_a_write(node: Node, box: VolatileDisk, control: VolatileDisk, seed: int) -> Pair:
    """The disk has a write that is not flushed yet."""
    found: list[Remains] = []
    box.when_unflushed = lambda: found.append(box.cut(seed))
    until = time.monotonic() + WRITE_WAIT_SECONDS
    while not found and time.monotonic() < until:
        time.sleep(0.005)
    box.when_unflushed = None
    remains = found[0] if found else box.cut(seed)
    return remains, control.cut(seed)


_CUTS = (moment, in_a_write, killed)


def acknowledged(node: Node, before: float) -> Acknowledged:
    """Sequence numbers whose line had been read by then: their write had surely returned."""
    found: Acknowledged = {kind: [] for kind in KINDS}
    for stamp, line in list(node.lines):
        match = re.fullmatch(r"ack (ring|direct|buffered) (\d+)", line)
        if match and stamp < before:
            found[match[1]].append(int(match[2]))
    return found


def refaults(node: Node) -> int:
    """Pages of the page cache that were read back, as the node said last; 0: it is no thrash."""
    for _, line in reversed(node.lines):
        if match := re.search(r"workingset_refault_file (\d+)", line):
            return int(match[1])
    return 0


# --- judging ---------------------------------------------------------------------------


def judged(remains: Pair, acks: Acknowledged, folder: Path) -> dict[str, Any]:
    """What a cut left, in figures."""
    box, control = remains
    whole = files_of(box.whole, [BOX], folder)
    oldest = oldest_in(whole[BOX]) if BOX in whole else 1
    files = files_of(box.image, [BOX], folder)
    row: dict[str, Any] = {
        "cut_seed": box.seed, "unflushed": box.unflushed, "dropped": box.dropped,
        "torn_requests": box.torn, "acknowledged": len(acks["ring"]),
        **judged_box(files.get(BOX), acks["ring"], oldest),
    }  # fmt: skip
    names = ["/direct", "/buffered"]
    try:
        slots = files_of(control.image, names, folder)
    except DamagedFileSystem:
        slots = {}  # a control may lose all of it
    for name in names:
        wanted = acks[name[1:]][-SLOTS + 10 :]
        there = in_slots(slots[name].read_bytes()) if name in slots else set()
        row[name[1:]] = {"acknowledged": len(wanted), "lost": len({*wanted} - there)}
    return row


def oldest_in(path: Path) -> int:
    box = Box.open(str(path))
    return min((head.sequence for head in box.heads), default=1)


def judged_box(path: Path | None, acks: list[int], oldest: int) -> dict[str, Any]:
    """Lost: acknowledged, not there, and not what the write on its way was to overwrite.

    ``oldest``: the oldest frame that this write was to leave; it may have hit any sector of those
    before, in any order, so that one is gone and an older one is still there.
    """
    if path is None:
        return {"lost": len(acks), "torn": 0, "frames": 0, "unreadable": 0, "newest": 0,
                "oldest": 0, "missing": [], "kept_share": 0.0}  # fmt: skip
    box = Box.open(str(path))
    there = {head.sequence for head in box.heads}
    unreadable = sum(box.frame(head).body["n"] != head.sequence for head in box.heads)
    kept = sum(-(-head.size // 512) * 512 for head in box.heads) / box.size_bytes
    box.close()
    missing = [n for n in acks if n >= min(there, default=0) and n not in there]
    lost = [n for n in acks if n >= oldest and n not in there]
    return {"lost": len(lost), "torn": box.torn, "frames": len(there), "unreadable": unreadable,
            "newest": max(there, default=0), "oldest": oldest, "missing": missing,
            "kept_share": round(kept, 3)}  # fmt: skip


def in_slots(data: bytes) -> set[int]:
    """Sequence numbers of the whole frames of a control."""
    found = set()
    for at in range(0, len(data), SLOT_BYTES):
        if data[at : at + 4] != MAGIC:
            continue
        piece = data[at : at + SLOT_BYTES]
        if (head := head_at(piece, 0)) and body_of(piece, head)["n"] == head.sequence:
            found.add(head.sequence)
    return found


def is_good(row: dict[str, Any]) -> bool:
    """Nothing acknowledged is gone, nothing wrong is shown, and the ring keeps most of itself."""
    has_wrapped = row.get("oldest", 0) > 1
    return bool(row["frames"]) and not row["lost"] and not row["unreadable"] and (
        not has_wrapped or row["kept_share"] > 0.8
    )  # fmt: skip


# --- the campaign ----------------------------------------------------------------------


def run_all(image: vm.Image, cuts: int, seed: int, a_boot: int) -> Iterator[dict[str, Any]]:
    """In quiet and in a thrash by turns; a boot that never came is told and counted as none."""
    done = number = 0
    while done < cuts:
        left = min(a_boot, cuts - done)
        yield from run_boot(image, seed * 1000 + number, left, is_thrash=bool(number % 2))
        done, number = done + left, number + 1


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all cuts."""
    lost = {kind: sum(row[kind]["lost"] for row in rows) for kind in ("direct", "buffered")}
    return {
        "cuts": len(rows), "killed": sum(row["how"] == "killed" for row in rows),
        "in_thrash": sum(row["is_thrash"] for row in rows),
        "unflushed_at_cut": sum(bool(row["unflushed"]) for row in rows),
        "acknowledged": sum(row["acknowledged"] for row in rows),
        "lost": sum(row["lost"] for row in rows), "torn": sum(row["torn"] for row in rows),
        "unreadable": sum(row["unreadable"] for row in rows),
        "bad": sum(not is_good(row) for row in rows),
        "control_acknowledged": sum(
            row[kind]["acknowledged"] for row in rows for kind in ("direct", "buffered")
        ),
        "control_lost": lost,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--guard-cuts", type=int, default=0, help="further cuts, of whole guards")
    parser.add_argument("--a-boot", type=int, default=CUTS_A_BOOT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--journal", type=Path, help="a line of JSON for each cut")
    given = parser.parse_args()
    if why := vm.missing():
        say(why)
        return 2
    rows: list[dict[str, Any]] = []
    guards: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="seawall-power-cuts-") as folder:
        image = vm.build_image(Path(folder) / "image", add_text)
        cuts = run_all(image, given.cuts, given.seed, given.a_boot)
        rows += [keep(row, given.journal) for row in cuts]
        cuts = run_guards(image, given.guard_cuts, given.seed)
        guards += [keep(row, given.journal) for row in cuts]
    found = totals(rows)
    say(json.dumps(found))
    if guards:
        say(json.dumps(guard_totals(guards)))
    bad = found["bad"] + sum(not power_cut_guard.is_good(row) for row in guards)
    return int(bool(bad) or (bool(rows) and not all(found["control_lost"].values())))


def keep(row: dict[str, Any], journal: Path | None) -> dict[str, Any]:
    say(json.dumps(row))
    if journal:
        with open(journal, "a") as file:
            file.write(json.dumps(row) + "\n")
    return row


def run_guards(image: vm.Image, cuts: int, seed: int) -> Iterator[dict[str, Any]]:
    """Four cuts in peace and six after the trigger in each boot."""
    for number in range(-(-cuts // 10)):
        yield from power_cut_guard.run_boot(image, seed * 1000 + number, in_peace=4, after=6)


def guard_totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The most that was lost, in seconds."""
    peace = [row["lost_seconds"] for row in rows if row["after_trigger"] is None]
    after = [row["lost_seconds"] for row in rows if row["after_trigger"] is not None]
    return {"guard_cuts": len(rows), "peace_cuts": len(peace),
            "peace_lost_most_seconds": max(peace, default=None),
            "triggered_cuts": len(after), "triggered_lost_most_seconds": max(after, default=None),
            "torn": sum(row["torn"] for row in rows)}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
