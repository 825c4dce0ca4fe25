"""Dirty limits as the kernel computes them, and whose dirty pages they are."""

import pytest
from tests.case_host import parse_case
from tests.readings.kernel_files import DEBIAN_6_1, this_machine, tree

from seawall.accounts.cache.dirty import Dirty
from seawall.accounts.cache.dirty_thresholds import (
    DirtyLimits,
    DirtySettings,
    dirtyable_bytes,
    group_limits,
    node_limits,
)
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot
from seawall.readings.zoneinfo import Zone

PAGE = 4096
MIB = 1 << 20
DEFAULT = DirtySettings(ratio_percent=20, background_ratio_percent=10, bytes=0, background_bytes=0)


def settings(**changed: int) -> DirtySettings:
    values = {
        "ratio_percent": 20,
        "background_ratio_percent": 10,
        "bytes": 0,
        "background_bytes": 0,
    }
    return DirtySettings(**(values | changed))


def dirty_of(text: bytes) -> Dirty:
    found = Snapshot(parse_case(text).rounds[0]).get(Dirty)
    assert isinstance(found, Dirty), found
    return found


# --- limits ----------------------------------------------------------------------------


def test_shares_are_rounded_to_page_size_parts() -> None:
    """20 * 4096 / 100 is 819, not 819.2: of 1,000,000 pages 199,951 and not 200,000."""
    limits = node_limits(DEFAULT, 1_000_000 * PAGE, PAGE)
    assert limits == DirtyLimits(409 * 1_000_000 // 4096 * PAGE, 819 * 1_000_000 // 4096 * PAGE)
    assert limits.limit == 199_951 * PAGE
    old = node_limits(DEFAULT, 1_000_000 * PAGE, PAGE, is_old=True)
    assert old == DirtyLimits(100_000 * PAGE, 200_000 * PAGE)
    assert old.freerun == 150_000 * PAGE


def test_bytes_count_before_the_ratio_and_are_rounded_up() -> None:
    limits = node_limits(settings(bytes=10_000, background_bytes=1), 1_000_000 * PAGE, PAGE)
    assert limits == DirtyLimits(1 * PAGE, 3 * PAGE)


def test_background_stays_below() -> None:
    limits = node_limits(settings(background_ratio_percent=50), 1_000_000 * PAGE, PAGE)
    assert limits.background == 199_951 // 2 * PAGE
    same = node_limits(settings(bytes=40_960, background_bytes=40_960), 1_000_000 * PAGE, PAGE)
    assert same == DirtyLimits(5 * PAGE, 10 * PAGE)


def test_a_container_of_512_mib() -> None:
    limits = group_limits(DEFAULT, 512 * MIB, 64 << 30, PAGE)
    # 131,072 pages: 409/4096 and 819/4096 of them.
    assert limits == DirtyLimits(13_088 * PAGE, 26_208 * PAGE)


def test_bytes_become_a_share_for_a_cgroup() -> None:
    """1 GiB of 16 GiB that may be dirty: 256 of 4096, so 32 MiB of 512 MiB."""
    limits = group_limits(settings(bytes=1 << 30), 512 * MIB, 16 << 30, PAGE)
    assert limits.limit == 32 * MIB


def test_dirtyable_is_free_and_file_pages_less_reserves() -> None:
    zone = Zone(node=0, name="Normal", free=0, min=1, low=2, high=30, boost=None, spanned=0,
                present=1, managed=10_000, cma=None, protection=(0, 0, 70), counters={},
                pagesets=())  # fmt: skip
    meminfo = Meminfo(
        mem_total=1, mem_free=1000 * PAGE, active_file=50 * PAGE, inactive_file=7 * PAGE
    )
    assert dirtyable_bytes(meminfo, [zone], PAGE) == (1000 - 100 + 57 + 1) * PAGE
    assert dirtyable_bytes(meminfo, [], PAGE) is None
    poor = Meminfo(mem_total=1, mem_free=PAGE, active_file=0, inactive_file=0)
    assert dirtyable_bytes(poor, [zone], PAGE) == PAGE


def test_this_machine_computes_what_its_kernel_prints() -> None:
    """Three tries: meminfo and vmstat are not read at one moment."""
    for _ in range(5):
        with this_machine() as host:
            found = Snapshot(host).get(Dirty)
        assert isinstance(found, Dirty), found
        if found.printed is None or found.computed is None:
            pytest.skip("this kernel prints no thresholds, or hides its settings")
        far = abs(found.printed.limit - found.computed.limit)
        if far <= found.printed.limit / 500:
            return
    pytest.fail(f"printed {found.printed}, computed {found.computed}")


def test_debian_6_1_recorded() -> None:
    """The files of one machine, read within a second: within 1 %."""
    with tree(DEBIAN_6_1) as host:
        found = Snapshot(host).get(Dirty)
    assert isinstance(found, Dirty), found
    assert found.printed is not None
    assert found.computed is not None
    assert found.computed.limit == pytest.approx(found.printed.limit, rel=0.01)
    assert found.computed.background == pytest.approx(found.printed.background, rel=0.01)


# --- whose they are --------------------------------------------------------------------

NODE = b"""=== /proc/meminfo
MemTotal: 4000000 kB
MemFree: 2000000 kB
Active(file): 100000 kB
Inactive(file): 300000 kB
Dirty: 90000 kB
Writeback: 10000 kB
=== /proc/vmstat
nr_dirty 22500
nr_writeback 2500
nr_dirty_threshold 119000
nr_dirty_background_threshold 59000
=== /proc/zoneinfo
Node 0, zone Normal
  pages free 500000
        min 100
        low 200
        high 300
        spanned 1000000
        present 1000000
        managed 1000000
        protection: (0, 0)
=== /proc/sys/vm/dirty_ratio
20
=== /proc/sys/vm/dirty_background_ratio
10
=== /proc/sys/vm/dirty_bytes
0
=== /proc/sys/vm/dirty_background_bytes
0
=== /proc/sys/vm/dirty_expire_centisecs
3000
=== /proc/sys/vm/dirty_writeback_centisecs
500
"""
V2 = (
    b"""why: a pod whose container writes, and one that is idle
=== /proc/1/mountinfo
30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
=== /sys/fs/cgroup/cgroup.controllers
memory
=== /sys/fs/cgroup/pod/memory.current
300000000
=== /sys/fs/cgroup/pod/memory.max
536870912
=== /sys/fs/cgroup/pod/memory.stat
file_dirty 80000000
file_writeback 4000000
inactive_file 200000000
active_file 0
=== /sys/fs/cgroup/pod/c/memory.current
290000000
=== /sys/fs/cgroup/pod/c/memory.max
max
=== /sys/fs/cgroup/pod/c/memory.stat
file_dirty 79000000
file_writeback 4000000
inactive_file 200000000
active_file 0
=== /sys/fs/cgroup/pod/c/io.pressure
some avg10=40.00 avg60=1.00 avg300=0.00 total=2500000
full avg10=30.00 avg60=1.00 avg300=0.00 total=2500000
=== /sys/fs/cgroup/pod/c/cgroup.procs
7
8
=== /sys/fs/cgroup/idle/memory.current
5000000
=== /sys/fs/cgroup/idle/memory.stat
file_dirty 0
file_writeback 0
=== /proc/7/stat
7 (dd) D 1 7 7 0 -1 4194560 1 0 1 0 1 6 0 0 20 0 1 0 1 1 2 18446744073709551615 1 1 0 0 0 0
=== /proc/7/wchan
balance_dirty_pages
=== /proc/8/stat
8 (x) D 1 8 8 0 -1 4194560 1 0 1 0 1 6 0 0 20 0 1 0 1 1 2 18446744073709551615 1 1 0 0 0 0
=== /proc/8/wchan
0
"""
    + NODE
)


def test_limits_of_a_cgroup_are_a_share_of_its_own_memory() -> None:
    found = dirty_of(V2)
    assert found.cgroup_version == 2
    (one,) = found.groups
    assert one.group.path == "/pod/c"
    assert (one.dirty, one.writeback, one.io_stalled) == (79_000_000, 4_000_000, 0.4)
    # 200,000,000 of page cache, and what the pod may still take: 536,870,912 - 300,000,000.
    pages = (200_000_000 + 236_870_912) // 4096
    assert one.limits == DirtyLimits(pages * 409 // 4096 * 4096, pages * 819 // 4096 * 4096)


def test_the_node() -> None:
    found = dirty_of(V2)
    assert (found.dirty, found.writeback) == (22_500 * PAGE, 2_500 * PAGE)
    assert found.waits == 25_000 * PAGE
    assert found.printed == DirtyLimits(59_000 * PAGE, 119_000 * PAGE)
    # 500,000 free, 300 in reserve, 100,000 file pages, and one that keeps it from being none.
    assert found.dirtyable == (500_000 - 300 + 100_000 + 1) * PAGE
    assert found.computed == DirtyLimits(599_701 * 409 // 4096 * PAGE, 599_701 * 819 // 4096 * PAGE)
    assert (found.expire_seconds, found.wakeup_seconds) == (30.0, 5.0)


def test_who_waits_and_who_may_not_be_looked_at() -> None:
    found = dirty_of(V2)
    assert found.waiting == 2
    (one,) = found.waiters
    assert (one.pid, one.comm, one.where) == (7, "dd", "balance_dirty_pages")
    assert one.is_throttled
    assert one.workload == "/pod/c"


def test_cgroup_v1_has_no_limits_of_its_own() -> None:
    text = (
        b"""why: v1
=== /sys/fs/cgroup/memory/a/memory.usage_in_bytes
9000000
=== /sys/fs/cgroup/memory/a/memory.stat
total_cache 8000000
total_dirty 7000000
total_writeback 0
"""
        + NODE
    )
    (one,) = dirty_of(text).groups
    assert (one.dirty, one.limits, one.io_stalled) == (7_000_000, None, None)


def test_before_3_14_the_base_is_not_computed() -> None:
    """Anonymous memory counted as dirtyable then."""
    found = dirty_of(V2 + b"=== /proc/sys/kernel/osrelease\n3.10.0-1160.el7.x86_64\n")
    assert found.computed is None
    assert found.limits == found.printed


def test_nothing_readable_but_the_counters() -> None:
    text = b"why: a report\n" + NODE[: NODE.index(b"=== /proc/zoneinfo")]
    found = dirty_of(text)
    assert found.computed is None
    assert found.settings is None
    assert found.example is None
    assert found.groups == ()
    assert found.limits is not None
    assert found.limits.limit == 119_000 * PAGE


def test_unread_without_vmstat() -> None:
    found = Snapshot(parse_case(b"why: none\n").rounds[0]).get(Dirty)
    assert isinstance(found, Unread)
