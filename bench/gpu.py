"""``seawall gpu`` over 100 containers of runc with 8 devices each.

Root's.  The devices stand in for GPUs' (tests/containers/gpu_node.py): each container has nodes,
rules and a promise in the kubelet's checkpoint, so all five layers are asked of 800 devices.
"""

import os
import tempfile
import time
from pathlib import Path

from tests.containers import node as nodes
from tests.containers.gpu_node import GpuNode, Wanted, set_up

CONTAINERS = 100
GPUS = 6
ROUNDS = 3
MARK_SECONDS = 2.0
NODES = {
    **{f"/dev/nvidia{number}": (195, number) for number in range(GPUS)},
    "/dev/nvidiactl": (195, 255),
    "/dev/nvidia-uvm": (510, 0),
}


def missing() -> str | None:
    """What keeps it from being measured here."""
    if os.geteuid():
        return "containers are root's to make"
    return nodes.missing("runc")


def measure() -> dict[str, float]:
    """Seconds of the whole process at its best; how many devices were tried."""
    with tempfile.TemporaryDirectory() as name, nodes.node(Path(name)) as plain:
        set_up(plain, NODES)
        made = GpuNode(plain, Path(name))
        try:
            for number in range(CONTAINERS):
                made.start(Wanted(name=f"train-{number}", nodes=NODES, promised=tuple(NODES)))
            rounds = [_once(made) for _ in range(ROUNDS)]
        finally:
            made.end()
    best = min(rounds)
    return {"seconds": best[0], "devices": best[1], "mark": MARK_SECONDS}


def _once(made: GpuNode) -> tuple[float, int]:
    """RuntimeError unless every device of every container was tried and works."""
    began = time.monotonic()
    page = made.gpu()
    seconds = time.monotonic() - began
    tried = [row["errno"] for one in page["containers"] for row in one["devices"]]
    if tried != [0] * (CONTAINERS * len(NODES)):
        raise RuntimeError(f"{tried.count(0)} of {CONTAINERS * len(NODES)} devices answered")
    return seconds, len(tried)


def main() -> None:
    """Print what was measured."""
    if why := missing():
        print(f"left out: {why}")
        return
    found = measure()
    where = f"{os.uname().release}, load {os.getloadavg()[0]:.1f}"
    print(f"{CONTAINERS} containers, {found['devices']:.0f} devices, best of {ROUNDS}, {where}")
    print(f"  seawall gpu, whole process  {found['seconds']:6.2f} s (mark: {MARK_SECONDS:g})")


if __name__ == "__main__":
    main()
