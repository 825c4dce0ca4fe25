"""What the black box costs on the disk, and how fast it answers.

A day of peace: a guard that observes this host with 250 pods of our own writes its box for some
seconds; the frames' sizes by kind give the day by the recorder's own cadence.  atop writes the
same host beside it: as many samples, bytes each.  Then a full ring of 64 MiB is asked why, and the
journals of a hundred nodes for their report.  As root.  ``python -m bench.blackbox [SECONDS]``.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.guard_peace import guard
from bench.pods import PODS, SOURCES, real_tree
from tests.blackbox.box_maker import MIB, Plot, tell, write
from tests.replay.report_nodes import month

from seawall.blackbox.reader import Box
from seawall.recorder import recording_policy

SECONDS = 75.0
"""A full round a minute is among them."""
DAY = 86_400
RING_BYTES = 64 * MIB
NODES = 100
ATOP_SAMPLES = (5, 25)
"""The difference of the two: what a file begins with is not counted."""


def frame_bytes(seconds: float = SECONDS) -> dict[str, float]:
    """Of each kind of frame in peace, the mean, as it lies in the file."""
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        real_tree(PODS) as mount,
    ):
        if mount is None:
            return {}
        os.chmod(folder, 0o700)
        path = f"{folder}/box"
        with guard(20.0, "/" + os.path.basename(mount), path):
            time.sleep(seconds)
        return mean_bytes(path)


def mean_bytes(path: str) -> dict[str, float]:
    """By kind; those that need nothing before them are ``key``."""
    sizes: dict[str, list[int]] = {}
    box = Box.open(path)
    for head in box.heads:
        body = box.frame(head).body
        kind = f"{body['of']} round" if head.kind == "round" else head.kind
        kind += ", key" if body.get("key") is True else ""
        sizes.setdefault(kind, []).append(head.size)
    box.close()
    return {kind: statistics.mean(found) for kind, found in sizes.items()}


def day_bytes(kinds: dict[str, float]) -> float:
    """By the recorder's cadence; a kind that did not come counts as its key."""

    def of(kind: str) -> float:
        return kinds.get(kind, kinds.get(f"{kind}, key", 0.0))

    keys, fulls = DAY / recording_policy.KEY_SECONDS, DAY / recording_policy.FULL_PEACE_SECONDS
    frames = DAY / recording_policy.PEACE_SECONDS
    return (
        frames * of("tick")
        + (frames - fulls) * of("light round")
        + (fulls - keys) * of("full round")
        + keys * (kinds.get("full round, key", of("full round")) + of("start") + of("tick, key"))
    )


def atop_bytes() -> float | None:
    """Of one sample of this host; None: it is not installed."""
    if shutil.which("atop") is None:
        return None
    sizes = []
    with tempfile.TemporaryDirectory() as folder:
        for samples in ATOP_SAMPLES:
            path = f"{folder}/{samples}"
            subprocess.run(["atop", "-w", path, "1", str(samples)], check=True)
            sizes.append(os.path.getsize(path))
    return (sizes[1] - sizes[0]) / (ATOP_SAMPLES[1] - ATOP_SAMPLES[0])


def answers() -> dict[str, float]:
    """Seconds on the wall, the best of three."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        box, nodes = f"{name}/box", Path(name) / "nodes"
        told = tell(Plot(pods=PODS, peace_seconds=300, trouble_seconds=180))
        told.is_repeated = True
        write(told, Path(box), RING_BYTES)
        month(nodes, NODES, time.time())
        files = [str(path) for path in sorted(nodes.iterdir())]
        return {
            "why --at, ring of 64 MiB": timed(["why", "--from", box, "--at", "-45s"]),
            "blackbox show, ring of 64 MiB": timed(["blackbox", "show", box]),
            "guard report, 100 nodes": timed(["guard", "report", "--since", "40d", *files]),
        }


def timed(words: list[str]) -> float:
    took = []
    for _ in range(3):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "seawall", *words], capture_output=True, check=False,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )  # fmt: skip
        if len(done.stdout) < 500:
            raise RuntimeError(f"seawall {words} did not answer: {done.stderr.decode()}")
        took.append(time.monotonic() - began)
    return min(took)


def main(argv: list[str]) -> int:
    """Print what was measured, one JSON document."""
    kinds = frame_bytes(float(argv[0]) if argv else SECONDS)
    found = {
        "frame_bytes": {kind: round(size) for kind, size in kinds.items()},
        "day_mib": round(day_bytes(kinds) / MIB, 1) if kinds else "no cgroups can be made here",
        "atop_sample_bytes": atop_bytes() or "atop is missing: apt-get install atop",
        "seconds": {name: round(value, 2) for name, value in answers().items()},
    }
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
