"""Dirty pages and the numbers on cgroup v2 of Debian's 6.1: a writer against a slow disk."""

import json
from typing import Any

import pytest
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20
CACHE_BYTES, HELD_BYTES = 24 * MIB, 16 * MIB

ASK = r"""
import json, sys, time
from seawall.accounts.cache.dirty import Dirty
from seawall.host.live import LiveHost
from seawall.readings.snapshot import Snapshot
from seawall.views.documents.cache_document import DIRTY
from seawall.views.documents.document_fields import object_of
from seawall.views.dirty_text import lines
from seawall.views.terminal import Console

best = None
for _ in range(int(sys.argv[1])):
    dirty = Snapshot(LiveHost()).get(Dirty)
    page = object_of(dirty, DIRTY)
    is_throttled = any(row["is_throttled"] for row in page["waiters"])
    if best is None or is_throttled:
        best = {**page, "text": "\n".join(lines(dirty, Console()))}
    # The kernel adds up what cgroups have every two seconds only.
    told = sum(row["dirty_bytes"] + row["writeback_bytes"] for row in page["workloads"][:1])
    if is_throttled and told > 1 << 20:
        break
    time.sleep(0.1)
print(json.dumps(best))
"""

JOB = r"""
cd /root
g=/sys/fs/cgroup
python3.11 -c "import time" # its pages are the root's then
mkdir $g/still $g/writer
echo 134217728 > $g/still/memory.max
(echo 0 > $g/still/cgroup.procs
 dd if=/dev/zero of=/root/still bs=1M count=24 conv=fsync 2> /dev/null
 exec python3.11 -c "x = bytearray(16 << 20); import time; time.sleep(600)") &
sleep 6
seawall numbers /still --json > $OUT/numbers.json
cat $g/still/memory.current > $OUT/current
seawall numbers --node > $OUT/node.txt
python3.11 $JOB/ask.py 1 > $OUT/quiet.json
echo 16777216 > /proc/sys/vm/dirty_bytes
echo 8388608 > /proc/sys/vm/dirty_background_bytes
echo 67108864 > $g/writer/memory.max
echo "$(cat /sys/block/vda/dev) wbps=1048576" > $g/writer/io.max
(echo 0 > $g/writer/cgroup.procs; exec dd if=/dev/zero of=/root/slow bs=64k count=1600) &
writer=$!
sleep 1
python3.11 $JOB/ask.py 80 > $OUT/busy.json
kill $writer
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("job")
    files = {"ask.py": ASK.encode()}
    return run_job(image, JOB, folder, files=files, memory_mib=768)


def document(node: Outcome, name: str) -> dict[str, Any]:
    page = json.loads(node.text(name))
    assert isinstance(page, dict)
    return page


def test_limits_are_those_of_the_kernel(node: Outcome) -> None:
    page = document(node, "quiet.json")
    for key in ("background_bytes", "stop_bytes"):
        assert page["computed_limits"][key] == pytest.approx(page["limits"][key], rel=0.005)
    # 20 % of what may be dirty, which is less than the memory that is there.
    assert page["limits"]["stop_bytes"] == pytest.approx(page["dirtyable_bytes"] * 0.2, rel=0.01)


def test_settings_in_bytes(node: Outcome) -> None:
    page = document(node, "busy.json")
    assert page["limits"] == page["computed_limits"]
    assert page["limits"]["stop_bytes"] == 16 * MIB
    assert page["limits"]["slowed_from_bytes"] == 12 * MIB


def test_the_writer_is_seen_and_its_limits_are_a_share_of_its_own(node: Outcome) -> None:
    page = document(node, "busy.json")
    first = page["workloads"][0]
    assert first["workload"] == "/writer", page["text"]
    assert first["dirty_bytes"] + first["writeback_bytes"] > MIB
    share = 16 * MIB / page["dirtyable_bytes"]
    # 64 MiB of its own, less what it holds besides page cache.
    assert first["limits"]["stop_bytes"] <= 64 * MIB * share * 1.01
    assert first["limits"]["stop_bytes"] > 64 * MIB * share / 3
    assert "io_stalled_fraction" in first


def test_the_writer_is_caught_in_balance_dirty_pages(node: Outcome) -> None:
    page = document(node, "busy.json")
    throttled = [row for row in page["waiters"] if row["is_throttled"]]
    assert throttled, (page["waiters"], page["text"])
    assert throttled[0]["comm"] == "dd"
    assert throttled[0]["workload"] == "/writer"


def test_numbers_of_a_still_container(node: Outcome) -> None:
    page = document(node, "numbers.json")
    assert page["cgroup_version"] == 2
    shown = {row["name"]: row["bytes"] for row in page["values"]}
    current = int(node.text("current"))
    assert abs(shown["container_memory_usage_bytes"] - current) < MIB
    assert abs(shown["container_memory_cache"] - CACHE_BYTES) < 3 * MIB
    assert HELD_BYTES < shown["container_memory_rss"] < HELD_BYTES + 12 * MIB
    inactive = shown["container_memory_total_inactive_file_bytes"]
    assert inactive > CACHE_BYTES - MIB
    working_set = shown["container_memory_working_set_bytes"]
    assert working_set == shown["container_memory_usage_bytes"] - inactive
    assert "20.10 and later" not in shown, "Docker does not know this cgroup"
    parts = page["parts"]
    known = sum(parts[f"{name}_bytes"] for name in (
        "anonymous", "inactive_file", "active_file", "shmem", "kernel", "rest"))  # fmt: skip
    assert abs(known - shown["container_memory_usage_bytes"]) < MIB
    assert parts["rest_bytes"] < 4 * MIB


def test_node_form(node: Outcome) -> None:
    text = node.text("node.txt")
    assert "kubelet (memory.available)" in text
    assert "root working set" in text
