"""Containers at their limits on Debian's 6.1, made for real, and what is said of each."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernels.guest import warm_guest
from tests.kernels.guest.warm_guest import ASK
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
LIMIT = 64 << 20
FILES = {"warm_guest.py": Path(warm_guest.__file__).read_bytes()}

COMMON = (
    ASK
    + r"""
in_group() { sh -c 'echo $$ > $0/cgroup.procs; exec "$@"' "$@"; }
see() { ask $1 why --json --timeout 60; }
end() { for pid in $(cat $1/cgroup.procs); do kill -9 $pid; done; wait; sleep 1; }
"""
)
V2 = (
    COMMON
    + r"""
cd /sys/fs/cgroup; echo +memory > cgroup.subtree_control
mkdir pod; echo +memory > pod/cgroup.subtree_control; C=$PWD/pod/c; mkdir $C
echo 67108864 > $C/memory.max; echo 67108864 > pod/memory.max

dd if=/dev/zero of=/big bs=1M count=160; sync; echo 3 > /proc/sys/vm/drop_caches
in_group $C sh -c 'while :; do dd if=/big of=/dev/null bs=64k; done 2>/dev/null' &
sleep 4; see stream; end $C

in_group $C python3.11 -c 'import mmap, random
data = mmap.mmap(open("/big").fileno(), 0, prot=mmap.PROT_READ)
while True: data[random.randrange(0, len(data), 4096)]' &
sleep 8; see thrash; end $C

in_group $C sh -c 'while :; do python3.11 -c "bytearray(96 << 20)"; sleep 0.5; done 2>/dev/null' &
sleep 2; see killed; end $C

in_group $C python3.11 -c 'import time; x = bytearray(57 << 20); time.sleep(900)' &
sleep 3; see full; cat $C/memory.current $C/memory.stat $C/cgroup.procs > $OUT/full.stat; end $C

echo max > $C/memory.max; echo max > pod/memory.max; echo 33554432 > $C/memory.high
in_group $C python3.11 -c 'import time
held = []
while True: held.append(bytearray(1 << 16)); time.sleep(0.001)' &
sleep 5; see high; end $C
echo max > $C/memory.high

mkdir -p /dev/shm; mount -t tmpfs tmpfs /dev/shm
in_group $C dd if=/dev/zero of=/dev/shm/left bs=1M count=300; sleep 1; see left
rmdir $C; sleep 1; see moved; cat cgroup.stat > $OUT/cgroup.stat
"""
)
V1 = (
    COMMON
    + r"""
C=/sys/fs/cgroup/memory/c; mkdir $C; echo 67108864 > $C/memory.limit_in_bytes
dd if=/dev/zero of=/big bs=1M count=160; sync; echo 3 > /proc/sys/vm/drop_caches
in_group $C sh -c 'while :; do dd if=/big of=/dev/null bs=64k; done 2>/dev/null' &
sleep 4; see stream; end $C
in_group $C sh -c 'while :; do python3.11 -c "bytearray(96 << 20)"; sleep 0.5; done 2>/dev/null' &
sleep 2; see killed; end $C
echo 1 > $C/memory.oom_control
in_group $C python3.11 -c 'x = bytearray(96 << 20)' &
sleep 4; see waits; end $C
"""
)


@pytest.fixture(scope="module")
def v2(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_job(image, V2, tmp_path_factory.mktemp("v2"), files=FILES, memory_mib=2048)


@pytest.fixture(scope="module")
def v1(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("v1")
    return run_job(image, V1, folder, files=FILES, memory_mib=2048, cgroup="v1")


def said(node: Outcome, moment: str) -> dict[str, dict[str, Any]]:
    """What fired about containers at that moment, by rule; one finding each at most."""
    page = json.loads(node.text(f"{moment}.json"))
    rows = [
        row for row in page["findings"]
        if row["verdict"] == "fires" and row["id"].startswith("SW2")
    ]  # fmt: skip
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), [(row["key"], row["headline"]) for row in rows]
    return found


def number(row: dict[str, Any], name: str) -> float:
    return next(float(e["value"]) for e in row["evidence"] if e["name"] == name)


def test_v2_streaming_is_cache_and_nothing_else(v2: Outcome) -> None:
    found = said(v2, "stream")
    assert set(found) == {"SW201"}
    assert found["SW201"]["workload"] == "/pod/c"
    assert found["SW201"]["severity"] in ("info", "warning")
    assert number(found["SW201"], "file pages that can be dropped") > 0.7 * LIMIT


def test_v2_thrashing_in_its_own_limit(v2: Outcome) -> None:
    found = said(v2, "thrash")
    # Where the reads of what was just dropped are seen to cost time, it is not called a cache.
    assert len({"SW201", "SW212"} & set(found)) == 1
    assert not {"SW202", "SW207"} & set(found)


def test_v2_oom_kills_at_its_own_limit(v2: Outcome) -> None:
    killed = said(v2, "killed")["SW207"]
    assert killed["workload"] == "/pod/c"
    assert killed["severity"] == "warning"
    assert "limit of 64.0 MiB" in killed["headline"]


def test_v2_full_of_anonymous_memory(v2: Outcome) -> None:
    found = said(v2, "full")
    assert "SW202" in found, v2.text("full.stat")
    assert "anonymous" in found["SW202"]["headline"]
    assert not {"SW201", "SW203", "SW207"} & set(found)


def test_v2_slowed_down_at_memory_high(v2: Outcome) -> None:
    assert said(v2, "high")["SW208"]["workload"] == "/pod/c"


def test_v2_shared_memory_outlives_its_processes(v2: Outcome) -> None:
    left = said(v2, "left")["SW205"]
    assert left["workload"] == "/pod/c"
    assert 290 << 20 < number(left, "shmem beyond its children") < 310 << 20


def test_v2_the_charge_moves_up_when_the_cgroup_is_removed(v2: Outcome) -> None:
    assert said(v2, "moved")["SW205"]["workload"] == "/pod"
    assert "nr_dying_descendants 1\n" in v2.text("cgroup.stat")


def test_v1_streaming_is_cache_and_nothing_else(v1: Outcome) -> None:
    assert set(said(v1, "stream")) == {"SW201"}


def test_v1_oom_kills(v1: Outcome) -> None:
    killed = said(v1, "killed")["SW207"]
    assert "while hitting its limit of 64.0 MiB" in killed["headline"]


def test_v1_waits_with_the_killer_off(v1: Outcome) -> None:
    found = said(v1, "waits")
    assert found["SW204"]["severity"] == "critical"
    assert "SW203" not in found
    assert any("python3.11 (state D)" in str(row["value"]) for row in found["SW204"]["evidence"])
