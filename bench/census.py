"""How many page frames a second a census looks at, and how much memory it takes.

    python -m bench.census [--seconds N]

Root's.  All frames of this machine, flags and cgroups joined, the best of ROUNDS; then a
sample as a host of 1 TiB would get it in the same time; the peer is a plain read of both files
without looking at what is in them.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"
ROUNDS = 3
MARK_FRAMES_A_SECOND = 2_000_000.0
MARK_MIB = 100.0
_CHUNK_BYTES = 1 << 20

_COUNT = """
import json, resource, sys
from seawall.host.page_census.page_census_probe import page_census
answer = page_census(sys.argv[1])
kept = {name: answer[name] for name in ("frames", "frames_read", "seconds", "classes",
        "classes_read", "chunk_frames")}
kept["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(kept))
"""


def measure(seconds: float = 60.0) -> dict[str, float]:
    """``frames_per_second`` of a whole count, ``sample_frames_per_second``, ``mib`` at most."""
    whole = [_count({"seconds": seconds}) for _ in range(ROUNDS)]
    thin = [_count({"seconds": 0.2}) for _ in range(ROUNDS)]
    return {
        "frames": whole[0]["frames"],
        "frames_per_second": max(map(_rate, whole)),
        "sample_frames_per_second": max(map(_rate, thin)),
        "read_frames_per_second": max(_plain_read() for _ in range(ROUNDS)),
        "mib": max(one["mib"] for one in (*whole, *thin)),
    }


def missing() -> str | None:
    """Why nothing can be measured here."""
    if not os.path.exists("/proc/kpageflags"):
        return "no /proc/kpageflags: a kernel with CONFIG_PROC_PAGE_MONITOR"
    return "/proc/kpageflags is root's" if os.geteuid() else None


def _count(asked: dict[str, float]) -> dict[str, float]:
    """In a process of its own, for its memory."""
    found: dict[str, float] = json.loads(
        subprocess.run(
            [sys.executable, "-c", _COUNT, json.dumps(asked)],
            check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(SOURCES)},
        ).stdout
    )  # fmt: skip
    return found


def _rate(one: dict[str, float]) -> float:
    return one["frames_read"] / one["seconds"]


def _plain_read() -> float:
    """Frames a second of both files read from end to end."""
    began = time.perf_counter()
    frames = 0
    for path in ("/proc/kpageflags", "/proc/kpagecgroup"):
        with open(path, "rb", buffering=0) as file:
            frames = 0
            while data := file.read(_CHUNK_BYTES):
                frames += len(data) // 8
    return frames / (time.perf_counter() - began)


def main(argv: list[str]) -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.census")
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args(argv)
    if why := missing():
        print(why)
        return 2
    found = measure(arguments.seconds)
    where = f"{os.uname().release}, load {os.getloadavg()[0]:.1f}"
    print(f"{found['frames']:,.0f} page frames, best of {ROUNDS}, {where}")
    print(f"  all, flags and cgroups joined {found['frames_per_second']:12,.0f} frames a second")
    print(f"  a sample in chunks of 64      {found['sample_frames_per_second']:12,.0f}")
    print(f"  both files only read          {found['read_frames_per_second']:12,.0f}")
    print(f"  memory of the counting process, at most {found['mib']:.1f} MiB")
    met = found["frames_per_second"] >= MARK_FRAMES_A_SECOND and found["mib"] <= MARK_MIB
    marks = f"at least {MARK_FRAMES_A_SECOND:,.0f} frames a second, at most {MARK_MIB:g} MiB"
    print(f"marks ({marks}): {'met' if met else 'missed'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
