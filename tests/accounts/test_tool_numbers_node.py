"""The node's numbers and the gap between the kubelet and the kernel."""

from tests.readings.kernel_files import SEED_5_10, content

from seawall.accounts.node_memory.kubelet_view import account
from seawall.accounts.numbers.tool_numbers_node import free_numbers, kubelet_gap, node_numbers
from seawall.host.host import Unread
from seawall.readings import meminfo as meminfo_file
from seawall.readings.memcg import Memcg, Memcgs

KB = 1024
MEMINFO = meminfo_file.parse(
    b"MemTotal: 1000 kB\nMemFree: 300 kB\nMemAvailable: 600 kB\nBuffers: 10 kB\nCached: 250 kB\n"
    b"SReclaimable: 40 kB\nShmem: 50 kB\nActive(file): 120 kB\nInactive(file): 80 kB\n"
    b"AnonPages: 200 kB\nSwapCached: 0 kB\nSlab: 90 kB\n"
)


def test_free_of_both_generations() -> None:
    shown = {row.name: row.bytes // KB for row in free_numbers(MEMINFO)}
    assert shown == {
        "used (procps 4.0.1 and later)": 400,
        "used (procps 3.3.12 to 4.0.0)": 400,
        "used (procps 3.3.10 to 3.3.11)": 350,
        "available": 600,
        "buff/cache": 300,
        "free": 300,
        "shared": 50,
    }
    for row in free_numbers(MEMINFO):
        assert row.bytes == sum(part.sign * part.bytes for part in row.inputs)


def test_kubelet_on_both_versions() -> None:
    root = Memcg(path="/", version=2, usage=None, limit=None, anon=200 * KB, file=260 * KB,
                 inactive_file=80 * KB, stat={}, events={}, events_local={})  # fmt: skip
    memcgs = Memcgs(2, {"/": root}, "/sys/fs/cgroup", ())
    view = account(MEMINFO, memcgs)
    shown = {
        f"{row.tool} {row.name}": row.bytes // KB for row in node_numbers(MEMINFO, view, memcgs)
    }
    assert shown["kubelet memory.available"] == 1000 - (200 + 260 - 80)
    assert shown["kubectl top node MEMORY"] == 380
    assert shown["kubelet memory.available, cgroup v2 and runc's library before 1.2"] == 380
    assert shown['Prometheus (cAdvisor) container_memory_usage_bytes{id="/"}'] == 460
    assert shown["node exporter node_memory_MemAvailable_bytes"] == 600
    assert kubelet_gap(MEMINFO, view) == (620 - 600) * KB
    without = node_numbers(MEMINFO, account(MEMINFO, Unread("/sys/fs/cgroup", "absent")), memcgs)
    top = next(row for row in without if row.tool == "kubectl top node")
    assert top.formula == "AnonPages + Cached + Buffers + SwapCached - Inactive(file)"
    one = Memcgs(1, {"/": Memcg(path="/", version=1, usage=460 * KB, limit=None, stat={},
                 events={}, events_local={}, inactive_file=80 * KB)}, "/m", ())  # fmt: skip
    numbers = node_numbers(MEMINFO, account(MEMINFO, one), one)
    usage = next(row for row in numbers if row.name.startswith("container_memory_usage"))
    assert usage.inputs[0].source == "/m/memory.usage_in_bytes"
    assert not [row for row in numbers if "cgroup v2" in row.name]


def test_seed_1_the_kubelet_counts_34_gib_that_are_not_there() -> None:
    meminfo = meminfo_file.parse(content(SEED_5_10, "/proc/meminfo"))
    view = account(meminfo, Unread("/sys/fs/cgroup", "absent"))
    kb = 63596320 - (27100712 + 26580 + 852 + 0 - 9076) - 16240
    assert kubelet_gap(meminfo, view) == kb * KB


def test_no_kubelet_view_no_gap() -> None:
    missing = Unread("/proc/meminfo", "refused")
    assert kubelet_gap(MEMINFO, missing) is None
    tools = {row.tool for row in node_numbers(MEMINFO, missing, missing)}
    assert tools == {"free", "node exporter"}
