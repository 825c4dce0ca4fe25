"""What workloads asked for: found again from what the kubelet makes of it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seawall.accounts.entitlements import Entitlement, account, request_range
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup_cpu import CpuCgroup, CpuCgroups
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.meminfo import Meminfo
from seawall.readings.oom_score_adj import OomScoreAdjs
from seawall.readings.reading import UNLIMITED

CAPACITY = 64_000_000_000
MISSING = Unread("/x", "refused")


def kubelet(request: int, capacity: int, least: int = 3) -> int:
    """GetContainerOOMScoreAdjust of pkg/kubelet/qos/policy.go, for a burstable pod."""
    adj = 1000 - 1000 * request // capacity
    if adj < least:
        return least
    return 999 if adj == 1000 else adj


@given(st.integers(1 << 20, 1 << 44), st.data(), st.sampled_from([2, 3]))
def test_the_request_lies_in_the_range(capacity: int, data: st.DataObject, least: int) -> None:
    request = data.draw(st.integers(0, capacity))
    found = request_range(kubelet(request, capacity, least), capacity)
    assert found is not None
    assert found[0] <= request <= found[1]
    assert found[1] - found[0] <= capacity * 3 // 1000 + 1


def test_values_that_the_kubelet_never_writes() -> None:
    for adj in (-1000, -997, 0, 1, 1000):
        assert request_range(adj, CAPACITY) is None


def entitled(adjs: dict[int, int], limit: Any = UNLIMITED, **workload: Any) -> Entitlement:
    who = Workload(kind="container", name="a/b/c", cgroup="/c", **workload)
    workloads = Workloads({"/c": who}, dict.fromkeys(adjs, who))
    memcg = Memcg(path="/c", version=1, usage=1, limit=limit, stat={}, events={}, events_local={})
    return account(
        workloads,
        Memcgs(1, {"/c": memcg}, "/m", ()),
        CpuCgroups({"/c": CpuCgroup(path="/c", limit_cores=1.5, shares=512, weight=None)}),
        OomScoreAdjs(adjs, ()),
        Meminfo(mem_total=CAPACITY, mem_free=1),
    ).by_cgroup["/c"]


def test_each_class() -> None:
    burstable = entitled({1: 975, 2: 975}, qos="Burstable")
    assert burstable.memory_request == (1_600_000_000, 1_663_999_999)
    assert burstable.cpu_request_cores == 0.5
    assert burstable.cpu is not None
    assert burstable.cpu.limit_cores == 1.5
    assert entitled({1: 1000}, qos="BestEffort").memory_request == (0, 0)
    assert entitled({1: -997}, limit=7, qos="Guaranteed").memory_request == (7, 7)


def test_what_cannot_be_known() -> None:
    assert entitled({1: 975, 2: 999}, qos="Burstable").memory_request is None
    assert entitled({}, qos="Burstable").memory_request is None
    assert entitled({1: 975}).memory_request is None, "not of Kubernetes"
    assert entitled({1: 975}).cpu_request_cores is None
    assert entitled({1: 975}, qos="Burstable", is_sandbox=True).memory_request is None
    assert entitled({1: -997}, qos="Guaranteed").memory_request is None


def test_it_copes_without_any_reading() -> None:
    who = Workload(kind="container", name="a", cgroup="/c", qos="Burstable")
    found = account(Workloads({"/c": who}, {}), MISSING, MISSING, MISSING, MISSING)
    assert found.by_cgroup["/c"] == Entitlement()
