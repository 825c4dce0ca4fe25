"""Data in sockets is held by whose queue it lies in, not by who sent it.

6,000 UDP sockets that ask and never read made the server that answered look like a hog of 2 GiB.
"""

from dataclasses import replace

import pytest
from tests.accounts.packet_scenes import APP_A, APP_B, MIB, POD_A, UNIT, cgroups, known, lines
from tests.accounts.test_socket_buffers import memcgs, sockstat

from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.claim_joining.join import join
from seawall.accounts.claim_sources.socket_buffers import claims
from seawall.accounts.claims.claims import joined
from seawall.accounts.claims.shadow_charge import sum_of, uncounted_claims
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.tracing.traced_words import bounded
from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.cgroup import Cgroups
from seawall.readings.container_files import ContainerFiles
from seawall.readings.kmem_tcp import KmemTcp
from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot
from seawall.readings.socket_queues import QueueCrowd, QueueRow, SocketQueues

GIB = 1 << 30
NO_BASE = Unread("base", "absent")
SERVER, ATTACKER = APP_A, APP_B
SLAB_MIB = 100


def queue(rx_mib: int, *paths: str, protocol: str = "udp", tx_mib: int = 0) -> QueueRow:
    return QueueRow(
        tuple(lines(path) for path in paths), (7,), protocol, 6000, rx_mib * MIB, tx_mib * MIB
    )  # fmt: skip


def moment(queues: SocketQueues | Unread, slab_mib: int = SLAB_MIB) -> Snapshot:
    info = Meminfo(mem_total=8 * GIB, mem_free=GIB, s_unreclaim=slab_mib * MIB)
    return Snapshot(LiveHost(), {
        SocketQueues: queues, Cgroups: cgroups(), ContainerFiles: ContainerFiles({}, {}, ()),
        Workloads: known(), Meminfo: info,
    })  # fmt: skip


def told(
    queues: SocketQueues | Unread, *, version: int = 1, slab_mib: int = SLAB_MIB,
    tcp_mib: int = 0, udp_mib: int = 2048,
) -> SourceClaims:  # fmt: skip
    """v2 charges the attacker's cgroup with its ``sock``."""
    charged = memcgs(2, db=2000) if version == 2 else memcgs(1)
    at = moment(queues, slab_mib)
    return claims(sockstat(tcp_mib, udp_mib), charged, KmemTcp({}), known(), at)


def sent_by_server() -> Claim:
    """What a trace says of who took the pages."""
    return bounded(Claim(
        holder=SERVER, workload=SERVER, cgroup=SERVER, driver=None, bytes=2 * GIB,
        least_bytes=2 * GIB, most_bytes=2 * GIB, kind="socket", within="residual",
        is_counted=False, source="traced", confidence="traced", missing="", give_back="",
    ))  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_whose_queue_it_lies_in_holds_it_and_the_sender_is_clean(version: int) -> None:
    found = told(SocketQueues(rows=(queue(2000, ATTACKER),)), version=version)
    (attacker,) = [claim for claim in found.claims if claim.cgroup == ATTACKER]
    assert (attacker.confidence, attacker.kind) == ("exact", "socket")
    assert (attacker.least_bytes, attacker.most_bytes) == (1900 * MIB, 2000 * MIB)
    assert attacker.is_counted is (version == 2)
    assert "6,000 sockets" in attacker.source
    ledger = Ledger(
        total_bytes=8 * GIB, lines=(), residual_bytes=2100 * MIB, residual_error_bytes=20 * MIB,
        unknown=(), nodes=(), notes=(),
    )  # fmt: skip
    account = joined([found, SourceClaims((sent_by_server(),))], ledger, NO_BASE)
    outside = {
        path: sum_of(c for c in uncounted_claims(account.claims) if c.cgroup == path)
        for path in (SERVER, ATTACKER)
    }
    assert (outside[SERVER].bytes, outside[SERVER].certain_bytes) == (0, 0)
    assert outside[SERVER].most_bytes <= 220 * MIB
    assert outside[ATTACKER].certain_bytes == (1900 * MIB if version == 1 else 0)
    assert max(account.claims, key=lambda claim: claim.bytes).cgroup == ATTACKER


def test_what_the_slab_may_hold_is_certain_of_nobody() -> None:
    """Small datagrams lie in the slab, and the ledger has a line for that."""
    found = told(SocketQueues(rows=(queue(2000, ATTACKER),)), slab_mib=2100)
    (claim,) = [claim for claim in found.claims if claim.cgroup == ATTACKER]
    assert (claim.bytes, claim.least_bytes, claim.confidence) == (0, 0, "bound")
    assert claim.most_bytes == 2000 * MIB


def test_of_tcp_the_sender_has_what_it_could_not_send() -> None:
    rows = (
        queue(300, ATTACKER, protocol="tcp"),
        queue(0, SERVER, protocol="tcp", tx_mib=200),
    )
    by_cgroup = {c.cgroup: c for c in told(SocketQueues(rows=rows), tcp_mib=520, udp_mib=0).claims}
    assert (by_cgroup[ATTACKER].bytes, by_cgroup[ATTACKER].least_bytes) == (300 * MIB, 200 * MIB)
    assert (by_cgroup[SERVER].bytes, by_cgroup[SERVER].least_bytes) == (200 * MIB, 100 * MIB)
    # What the kernel took for it beyond the payload may be either's.
    assert by_cgroup[ATTACKER].most_bytes == 320 * MIB


def test_what_two_workloads_hold_is_charged_to_neither() -> None:
    found = told(SocketQueues(rows=(queue(2000, ATTACKER, SERVER),)))
    assert {claim.cgroup for claim in found.claims} == {None}
    assert {suspect.cgroup for suspect in found.suspects} == {ATTACKER, SERVER}


def test_what_no_process_was_seen_to_hold_is_nobodys() -> None:
    """Its sockets are in flight, or there was no time."""
    rows = (queue(1500), queue(500, UNIT))
    found = told(SocketQueues(
        rows=rows, tables_cut=1, holders_left_out=3, crowds=(QueueCrowd("/many", 3, 9_000_000),)
    ))  # fmt: skip
    by_cgroup = {claim.cgroup: claim for claim in found.claims}
    assert by_cgroup.keys() == {UNIT, None}
    assert by_cgroup[None].most_bytes == 1548 * MIB
    assert by_cgroup[None].least_bytes == 0
    words = " ".join(found.unseen)
    assert "1 network namespace:" in words
    assert "/many has 9,000,000 descriptors" in words


def test_a_question_without_answer_is_said_and_names_nobody() -> None:
    found = told(Unread("socket_queues", "refused", "no right to look"))
    assert {claim.cgroup for claim in found.claims} == {None}
    assert found.unseen == ("whose queues the data in sockets lies in: no right to look",)


def test_a_pods_own_process_and_the_hosts_root_are_no_holders_of_others() -> None:
    found = told(SocketQueues(rows=(queue(900, POD_A), queue(900, "/"))))
    assert {claim.cgroup for claim in found.claims} == {POD_A, None}


def test_a_total_keeps_what_its_parts_leave() -> None:
    found = told(SocketQueues(rows=(queue(2000, ATTACKER),)))
    left = join([found, SourceClaims((replace(sent_by_server(), most_bytes=GIB),))])
    assert sum(claim.bytes for claim in left) == 1900 * MIB
