"""Planting on Debian's 6.1 under cgroup v2, where the charge itself tells of pipes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernels.guest import warm_guest
from tests.kernels.guest.warm_guest import ASK
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20
PLANTED = 64 * MIB
GUEST = Path(warm_guest.__file__)

JOB = r"""
mkdir /sys/fs/cgroup/planter
measure() { for n in 1 2 3; do ask $1.$n memory --json; sleep 1; done; }
plant() {
    sh -c 'echo $$ > /sys/fs/cgroup/planter/cgroup.procs; exec python3.11 '$JOB/planters.py' "$@"' \
        sh "$1" "$2" /dev/shm/planted > $OUT/said &
    until grep -q . $OUT/said; do sleep 0.2; done
    sleep 3
    measure "$3"
    kill $(cat /sys/fs/cgroup/planter/cgroup.procs); wait
}
plant pipes 0 pipes-before
plant pipes 67108864 pipes-after
plant 'packet rings' 0 rings-before
plant 'packet rings' 67108864 rings-after
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    planters = Path(__file__).parents[1] / "end_to_end/planters.py"
    files = {"planters.py": planters.read_bytes(), "warm_guest.py": GUEST.read_bytes()}
    return run_job(image, ASK + JOB, tmp_path_factory.mktemp("job"), files=files, memory_mib=1024)


def values(node: Outcome, name: str) -> dict[str, int]:
    """Lines and residual, with the error it prints, of the measurement with the median one."""
    pages: list[dict[str, Any]] = [json.loads(node.text(f"{name}.{n}.json")) for n in (1, 2, 3)]
    page = sorted(pages, key=lambda p: int(p["residual_bytes"]))[1]
    lines = {line["name"]: int(line["bytes"]) for line in page["lines"]}
    assert page["residual_error_bytes"] <= 2 * MIB
    return {**lines, "residual": page["residual_bytes"], "error": page["residual_error_bytes"]}


def moved(node: Outcome, kind: str) -> dict[str, int]:
    before, after = values(node, f"{kind}-before"), values(node, f"{kind}-after")
    moves = {name: after[name] - before[name] for name in after}
    return {**moves, "error": (before["error"] + after["error"]) // 2}


def test_pipes_are_charged_kernel_pages(node: Outcome) -> None:
    moves = moved(node, "pipes")
    assert abs(moves["residual"]) <= MIB + moves["error"], moves
    assert abs(moves["charged kernel pages"] - PLANTED) <= 2 * MIB, moves
    assert "pipes" not in moves, "the charge has them already"


def test_packet_rings_are_the_residual(node: Outcome) -> None:
    moves = moved(node, "rings")
    assert abs(moves["residual"] - PLANTED) <= MIB + moves["error"], moves
    assert abs(moves["charged kernel pages"]) <= MIB, moves
