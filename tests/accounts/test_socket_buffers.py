"""Data in sockets: what is named, whose charge has it, and that nothing counts twice."""

from dataclasses import replace

from tests.accounts.packet_scenes import APP_A, APP_B, MIB, POD_A, UNIT, known

from seawall.accounts.claim import Claim
from seawall.accounts.claim_sources.socket_buffers import claims
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.kmem_tcp import KmemTcp
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.snapshot import Snapshot
from seawall.readings.socket_queues import SocketQueues
from seawall.readings.sockstat import Sockstat, parse

EMPTY = Memcg(path="/", version=2, usage=None, limit=None, stat={}, events={}, events_local={})
NONE = KmemTcp({})
ABSENT = Unread("/sys/fs/cgroup/memory/memory.kmem.tcp.usage_in_bytes", "absent")
UNASKED = Snapshot(LiveHost(), {SocketQueues: Unread("socket_queues", "not_captured")})


def memcgs(version: int, **sock: int) -> Memcgs:
    names = {"root": "/", "pod": POD_A, "app": APP_A, "db": APP_B, "ssh": UNIT}
    by_path = {names[k]: replace(EMPTY, path=names[k], sock=v * MIB) for k, v in sock.items()}
    return Memcgs(2 if version == 2 else 1, by_path, "/sys/fs/cgroup", ())


def sockstat(tcp_mib: int, udp_mib: int = 0) -> Sockstat:
    return Sockstat(tcp_mib * 256, udp_mib * 256, 4096)


def told(found: tuple[Claim, ...]) -> dict[str | None, tuple[int, int, bool]]:
    return {c.cgroup: (c.bytes // MIB, c.most_bytes // MIB, c.is_counted) for c in found}


def test_v2_names_workloads_and_their_charge_has_it_already() -> None:
    found = claims(
        sockstat(100), memcgs(2, root=90, pod=60, app=60, ssh=30), NONE, known(), UNASKED
    )
    assert told(found.claims) == {
        APP_A: (60, 60, True), UNIT: (30, 30, True), None: (10, 10, False),
    }  # fmt: skip
    assert {(c.kind, c.within, c.confidence, c.least_bytes) for c in found.claims} == {
        ("socket", "residual", "estimate", 0)
    }


def test_what_a_pod_has_beside_its_containers_is_the_pods() -> None:
    found = claims(sockstat(100), memcgs(2, pod=100, app=60), NONE, known(), UNASKED)
    assert told(found.claims) == {APP_A: (60, 60, True), POD_A: (40, 40, True)}


def test_small_datagrams_lie_in_the_slab_so_udp_is_only_possible() -> None:
    found = claims(sockstat(30, 90), memcgs(2, app=60), NONE, known(), UNASKED)
    assert told(found.claims) == {APP_A: (15, 60, True), None: (15, 60, False)}


def test_v1_counts_it_apart_where_it_counts_it_at_all() -> None:
    limited = KmemTcp({APP_B: 40 * MIB})
    found = claims(sockstat(100), memcgs(1), limited, known(), UNASKED)
    assert told(found.claims) == {APP_B: (40, 40, False), None: (60, 60, False)}
    found = claims(sockstat(100), memcgs(1), ABSENT, known(), UNASKED)
    assert told(found.claims) == {None: (100, 100, False)}


def test_little_is_no_claim_and_more_than_there_is_is_cut() -> None:
    assert not claims(Sockstat(255, 0, 4096), memcgs(2, app=60), NONE, known(), UNASKED).claims
    found = claims(sockstat(20), memcgs(2, app=500), NONE, known(), UNASKED)
    assert told(found.claims) == {APP_A: (20, 20, True)}


def test_without_cgroups_it_is_the_hosts() -> None:
    unread = Unread("/sys/fs/cgroup", "absent")
    found = claims(sockstat(50, 50), unread, ABSENT, unread, UNASKED)
    assert told(found.claims) == {None: (50, 100, False)}


def test_the_file_as_6_18_prints_it() -> None:
    text = b"TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 103199\nUDP: inuse 0 mem 33\n"
    assert (parse(text).tcp_units, parse(text).udp_units) == (103199, 33)
