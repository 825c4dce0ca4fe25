"""``seawall memory --census`` on Debian's 6.1 under cgroup v2.

There the tails of huge pages tell neither their list nor their cgroup: the census has to take
both from the head.  tmpfs of huge pages and anonymous huge pages are planted for that.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.kernels.guest import warm_guest
from tests.kernels.guest.warm_guest import ASK
from tests.kernels.vm import Image, Outcome, run_job
from tests.views.test_memory_census_views import SCHEMA

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20
PLANTED = 64 * MIB
GUEST = Path(warm_guest.__file__)

HUGE = b"""
import mmap, time
size = 64 << 20
area = mmap.mmap(-1, size + (2 << 20), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
area.madvise(mmap.MADV_HUGEPAGE)
for at in range(0, size, 4096):
    area[at] = 1
open("/huge/file", "wb").write(bytes(size))
print("ready", flush=True)
time.sleep(600)
"""
JOB = r"""
echo always > /sys/kernel/mm/transparent_hugepage/shmem_enabled
mkdir /huge && mount -t tmpfs -o huge=always huge /huge
census() { ask $1 memory --census --exact --json --timeout 60; }
# What the boot itself took is given back a while later.
free() { sed -n 's/^MemFree: *//p' /proc/meminfo | cut -d' ' -f1; }
tries=0; last=0; echo 3 > /proc/sys/vm/drop_caches
until now=$(free); [ $((now - last)) -lt 512 -a $((last - now)) -lt 512 ] || [ $((tries+=1)) -gt 9 ]
do last=$now; sleep 1; done
census before
mkdir -p /sys/fs/cgroup/pods/huge /sys/fs/cgroup/pods/gone /sys/fs/cgroup/planter
echo +memory > /sys/fs/cgroup/pods/cgroup.subtree_control
sh -c 'echo $$ > /sys/fs/cgroup/pods/huge/cgroup.procs; exec python3.11 huge.py' > $OUT/huge &
sh -c 'echo $$ > /sys/fs/cgroup/pods/gone/cgroup.procs
    exec head -c 33554432 /dev/zero' > /run/left
rmdir /sys/fs/cgroup/pods/gone
sh -c 'echo $$ > /sys/fs/cgroup/planter/cgroup.procs
    exec python3.11 planters.py "packet rings" 67108864 /run/planted' > $OUT/ring &
until grep -q . $OUT/huge && grep -q . $OUT/ring; do sleep 0.2; done
sleep 2
census after
seawall memory --census > $OUT/text 2>&1
ask short memory --census --json --timeout 2
stat -c %i /sys/fs/cgroup/pods/huge > $OUT/inode
cat /sys/fs/cgroup/pods/huge/memory.current > $OUT/current
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    planters = Path(__file__).parents[1] / "end_to_end/planters.py"
    files = {
        "huge.py": HUGE, "planters.py": planters.read_bytes(), "warm_guest.py": GUEST.read_bytes()
    }  # fmt: skip
    return run_job(image, ASK + JOB, tmp_path_factory.mktemp("job"), files=files, memory_mib=1024)


def document(node: Outcome, name: str) -> dict[str, Any]:
    assert not node.text(f"{name}.err"), node.text(f"{name}.err")
    page = json.loads(node.text(f"{name}.json"))
    jsonschema.validate(page, SCHEMA)
    assert isinstance(page, dict)
    assert sum(page["pages"].values()) == page["total_bytes"]
    return page


@pytest.mark.parametrize("name", ["before", "after"])
def test_it_agrees_with_the_ledger(node: Outcome, name: str) -> None:
    """Within 0.5 % of MemTotal, without and with a ring that no counter has."""
    page = document(node, name)
    assert page["sampled"] is None
    assert page["agreement"]["largest_difference_fraction"] <= 0.005, page["agreement"]
    assert page["agreement"]["agrees"]


def test_planted_memory_is_on_its_kind(node: Outcome) -> None:
    before, after = document(node, "before")["pages"], document(node, "after")["pages"]
    moves = {kind: after.get(kind, 0) - before.get(kind, 0) for kind in {*before, *after}}
    assert 0 <= moves["anonymous"] - PLANTED <= 24 * MIB, moves
    assert abs(moves["tmpfs and shared"] - PLANTED - 32 * MIB) <= 2 * MIB, moves
    # Lists of free pages are not counted in the same instant as the frames.
    rings = moves["kernel pages"] + moves["per-cpu lists"]
    assert abs(rings - PLANTED) <= 24 * MIB, json.dumps([before, after])


def test_huge_pages_are_paid_for_whole(node: Outcome) -> None:
    page = document(node, "after")
    row = next(row for row in page["by_cgroup"] if row["cgroup"] == "/pods/huge")
    assert row["inode"] == int(node.text("inode"))
    assert row["kinds"]["anonymous"] >= PLANTED
    assert 0 <= row["kinds"]["tmpfs and shared"] - PLANTED < MIB
    assert page["of_which"]["transparent_huge_bytes"] >= 2 * PLANTED
    assert abs(row["bytes"] - int(node.text("current"))) <= 4 * MIB


def test_memory_of_a_removed_cgroup_is_with_the_one_above(node: Outcome) -> None:
    rows = {row["cgroup"]: row for row in document(node, "after")["by_cgroup"]}
    assert rows["/pods"]["state"] == "removed below"
    assert rows["/pods"]["kinds"]["tmpfs and shared"] == 32 * MIB
    assert "/pods/gone" not in rows


def test_a_short_time_is_a_sample_or_all(node: Outcome) -> None:
    page = document(node, "short")
    assert page["sampled"] is None or page["error_bytes"] > 0
    assert page["agreement"]["agrees"], page["agreement"]


def test_text(node: Outcome) -> None:
    words = node.text("text")
    assert "page frames" in words
    assert "/pods/huge" in words
    assert max(map(len, words.splitlines())) <= 80
