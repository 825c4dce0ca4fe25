"""memory.available as the kubelet computes it, on both cgroup versions and from seed 1."""

from tests.readings.kernel_files import SEED_5_10, content

from seawall.accounts.node_memory.kubelet_view import account, root_working_set
from seawall.host.host import Unread
from seawall.readings import meminfo as meminfo_file
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.meminfo import Meminfo

NO_MEMCGS = Unread("/sys/fs/cgroup", "absent")
GIB = 1 << 30
NODE = Meminfo(mem_total=64 * GIB, mem_free=GIB, mem_available=GIB, inactive_file=GIB)


def memcgs(root: Memcg) -> Memcgs:
    return Memcgs(root.version, {"/": root}, "/sys/fs/cgroup", ())


def test_seed_1_the_kubelet_sees_34_gib_where_the_kernel_sees_16_mib() -> None:
    meminfo = meminfo_file.parse(content(SEED_5_10, "/proc/meminfo"))
    view = account(meminfo, NO_MEMCGS)
    kb = 63596320 - (27100712 + 26580 + 852 + 0 - 9076)
    assert view.available_bytes == kb * 1024
    assert view.available_bytes > 34 * GIB
    assert meminfo.mem_available == 16240 * 1024
    # The library before 2023 took MemTotal - MemFree and would not have evicted either.
    assert view.older_available_bytes == (433348 + 9076) * 1024


def test_v2_root_is_anon_plus_file_less_inactive_file() -> None:
    root = Memcg(path="/", version=2, usage=None, limit=None, anon=20 * GIB, file=10 * GIB,
                 inactive_file=6 * GIB, stat={}, events={}, events_local={})  # fmt: skip
    view = account(NODE, memcgs(root))
    assert view.available_bytes == (64 - 24) * GIB
    assert view.source == "/proc/meminfo + /sys/fs/cgroup/memory.stat"


def test_v1_root_is_usage_less_total_inactive_file() -> None:
    root = Memcg(path="/", version=1, usage=30 * GIB, limit=None, inactive_file=6 * GIB,
                 stat={}, events={}, events_local={})  # fmt: skip
    assert account(NODE, memcgs(root)).available_bytes == 40 * GIB


def test_a_root_without_its_stat_falls_back_to_meminfo() -> None:
    root = Memcg(path="/", version=2, usage=None, limit=None, stat={}, events={}, events_local={})
    assert root_working_set(root) is None
    assert account(NODE, memcgs(root)).source == "/proc/meminfo"


def test_absurd_counters_do_not_leave_the_total() -> None:
    root = Memcg(path="/", version=2, usage=None, limit=None, anon=900 * GIB, file=0,
                 inactive_file=0, stat={}, events={}, events_local={})  # fmt: skip
    assert account(NODE, memcgs(root)).available_bytes == 0
