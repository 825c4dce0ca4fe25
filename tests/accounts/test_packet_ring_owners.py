"""Who is charged for a packet ring: the proved owner, or nobody."""

import pytest
from tests.accounts.packet_scenes import (
    ALL_CAPABILITIES,
    APP_A,
    APP_B,
    HOST,
    MIB,
    NO_NET_RAW,
    PAUSE_A,
    PLAIN,
    POD_A,
    POD_CAPABILITIES,
    SIDE_A,
    SPACE_A,
    SPACE_B,
    UNIT,
    found,
    holder,
    in_pod_a,
    in_pod_b,
    lives,
    ring,
    rings,
)

from seawall.accounts.claim import Claim, SourceClaims
from seawall.readings.packet_rings import PacketSocket, Ring


def only(told: SourceClaims) -> Claim:
    (claim,) = told.claims
    return claim


def charged(told: SourceClaims) -> list[str | None]:
    return [claim.cgroup for claim in told.claims]


def suspects(told: SourceClaims) -> set[str | None]:
    return {suspect.cgroup for suspect in told.suspects}


# --- proved ----------------------------------------------------------------------------


def test_ring_of_a_pod_that_its_container_holds() -> None:
    told = found(rings([ring(7, SPACE_A, 42)], [in_pod_a(42)]))
    claim = only(told)
    assert claim.cgroup == APP_A
    assert claim.workload == claim.holder == f"shop/web/{'a' * 12}"
    assert (claim.least_bytes, claim.bytes, claim.most_bytes) == (64 * MIB,) * 3
    assert (claim.confidence, claim.kind, claim.within) == ("exact", "ring", "residual")
    assert not claim.is_counted
    assert claim.things == {"socket:[7]"}
    assert "pid 42" in claim.source
    assert not claim.missing
    assert not told.suspects


def test_two_containers_of_a_pod_hold_it() -> None:
    people = [in_pod_a(42), in_pod_a(43, SIDE_A)]
    told = found(rings([ring(7, SPACE_A, 42, 43)], people))
    assert only(told).cgroup == POD_A
    assert only(told).workload == "shop/web"


def test_one_container_of_several_in_the_pod_may_have_been_handed_it() -> None:
    """The pod is proved; that the other one did not make it is not."""
    together = lives(SPACE_A, PAUSE_A, APP_A, SIDE_A)
    told = found(rings([ring(7, SPACE_A, 43)], [in_pod_a(43, SIDE_A)], inhabitants=together))
    assert only(told).cgroup == POD_A
    assert "which of its containers made it" in only(told).missing


@pytest.mark.parametrize(("able", "confidence"), [(SIDE_A, "exact"), (APP_A, "estimate")])
def test_the_one_container_that_could_have_made_it(able: str, confidence: str) -> None:
    """CAP_NET_RAW tells; of one that does not hold it now, not for certain."""
    paths = (PAUSE_A, APP_A, SIDE_A)
    bounding = tuple(
        NO_NET_RAW if one not in (able, PAUSE_A) else POD_CAPABILITIES for one in paths
    )
    holds = holder(43, SIDE_A, SPACE_A, POD_CAPABILITIES if able == SIDE_A else NO_NET_RAW)
    together = lives(SPACE_A, *paths, bounding=bounding)
    claim = only(found(rings([ring(7, SPACE_A, 43)], [holds], inhabitants=together)))
    assert (claim.cgroup, claim.confidence) == (able, confidence)
    assert claim.least_bytes == (64 * MIB if confidence == "exact" else 0)


def test_a_container_that_is_not_known_yet_may_have_made_it() -> None:
    new = f"{POD_A}/{'e' * 64}"
    told = rings(
        [ring(7, SPACE_A, 42)], [in_pod_a(42)], inhabitants=lives(SPACE_A, PAUSE_A, APP_A, new)
    )
    assert charged(found(told)) == [POD_A]


def test_a_cgroup_of_a_containers_own_that_is_not_known_is_the_container() -> None:
    told = found(rings([ring(7, SPACE_A, 42)], [in_pod_a(42, f"{APP_A}/many/7")]))
    assert (only(told).cgroup, only(told).confidence) == (APP_A, "exact")


def test_forks_in_nested_cgroups_are_the_container() -> None:
    people = [in_pod_a(pid, f"{APP_A}/nested") for pid in range(40, 60)]
    claim = only(found(rings([ring(7, SPACE_A, *range(40, 60))], people)))
    assert claim.cgroup == APP_A
    assert "and 12 more" in claim.source


def test_handing_it_on_moves_nothing_while_the_owner_holds_it() -> None:
    people = [in_pod_a(42), in_pod_b(50), holder(60, UNIT)]
    claim = only(found(rings([ring(7, SPACE_A, 42, 50, 60)], people)))
    assert (claim.cgroup, claim.confidence, claim.least_bytes) == (APP_A, "exact", 64 * MIB)
    assert "shop/db" in claim.missing
    assert "unit:ssh.service" in claim.missing


def test_a_process_of_the_host_in_the_pods_network_changes_nothing() -> None:
    inhabitants = lives(SPACE_A, PAUSE_A, UNIT)
    told = rings([ring(7, SPACE_A, 42)], [in_pod_a(42)], inhabitants=inhabitants)
    assert charged(found(told)) == [APP_A]


def test_a_unit_with_a_network_of_its_own() -> None:
    told = rings(
        [ring(7, SPACE_B, 42)], [holder(42, UNIT, SPACE_B)], inhabitants=lives(SPACE_B, UNIT)
    )
    assert charged(found(told)) == [UNIT]


def test_sockets_of_one_owner_are_one_claim_to_the_byte() -> None:
    """Both rings count; 3 pages a block are taken as 4."""
    sockets = [
        PacketSocket(7, SPACE_A, 0, Ring(12288, 1000), Ring(4096, 3), (42,)),
        PacketSocket(8, SPACE_A, 0, None, Ring(65536, 10), (42,)),
    ]
    claim = only(found(rings(sockets, [in_pod_a(42)])))
    assert claim.bytes == 1000 * 16384 + 3 * 4096 + 10 * 65536
    assert claim.things == {"socket:[7]", "socket:[8]"}


# --- made there, held elsewhere --------------------------------------------------------


def test_only_another_pod_holds_it() -> None:
    """That pod cannot have made it there: it stays the maker's, though not for certain."""
    claim = only(found(rings([ring(7, SPACE_A, 50)], [in_pod_b(50)])))
    assert claim.cgroup == POD_A
    assert (claim.confidence, claim.least_bytes, claim.bytes) == ("estimate", 0, 64 * MIB)
    assert "shop/db" in claim.missing


@pytest.mark.parametrize("space", [HOST, SPACE_A, None])
def test_a_privileged_process_that_went_into_the_pods_network(space: int | None) -> None:
    """``nsenter -n tcpdump -B 4000000``: the pod is innocent."""
    told = found(rings([ring(7, SPACE_A, 60)], [holder(60, UNIT, space)]))
    claim = only(told)
    assert (claim.workload, claim.cgroup) == (None, None)
    assert claim.bytes == claim.least_bytes == 64 * MIB
    assert "shop/web" in claim.holder
    assert "unit:ssh.service" in claim.holder
    assert suspects(told) == {UNIT, POD_A}


def test_nobody_is_seen_to_hold_it() -> None:
    """On its way in a UNIX socket, or held by somebody who may not be looked into."""
    claim = only(found(rings([ring(7, SPACE_A)])))
    assert (claim.cgroup, claim.confidence, claim.least_bytes) == (POD_A, "estimate", 0)
    claim = only(found(rings([ring(7, SPACE_A)], holders_left_out=1)))
    assert (claim.cgroup, claim.confidence) == (POD_A, "bound")


# --- shared networks -------------------------------------------------------------------


def test_the_only_holder_in_the_hosts_network_is_a_suspect_and_not_charged() -> None:
    """It may have been handed the socket: nothing on record tells."""
    told = found(rings([ring(7, HOST, 60, mib=1024)], [holder(60, PLAIN)]))
    claim = only(told)
    assert (claim.workload, claim.cgroup, claim.bytes) == (None, None, 1 << 30)
    assert claim.confidence == "exact"
    assert "the host's network" in claim.holder
    assert PLAIN in claim.holder
    (suspect,) = told.suspects
    assert (suspect.cgroup, suspect.pids) == (PLAIN, (60,))
    assert "1.0 GiB" in suspect.why


def test_several_holders_in_the_hosts_network_are_all_suspects() -> None:
    people = [holder(60, PLAIN), holder(61, UNIT)]
    told = found(rings([ring(7, HOST, 60, 61)], people))
    assert charged(told) == [None]
    assert suspects(told) == {PLAIN, UNIT}


def test_who_cannot_have_made_it_is_no_suspect() -> None:
    """A pod of its own network, and a process without CAP_NET_RAW, were handed the socket."""
    weak = holder(62, UNIT, HOST, ALL_CAPABILITIES & ~(1 << 13))
    people = [holder(60, PLAIN), in_pod_b(61), weak]
    told = found(rings([ring(7, HOST, 60, 61, 62)], people))
    assert charged(told) == [None]
    assert suspects(told) == {PLAIN}


def test_two_tenants_in_one_network() -> None:
    told = rings([ring(7, SPACE_A, 42)], [in_pod_a(42)], inhabitants=lives(SPACE_A, APP_A, APP_B))
    assert charged(found(told)) == [None]
    assert suspects(found(told)) == {APP_A}


def test_a_tenant_that_may_not_be_seen_could_live_there_too() -> None:
    told = rings([ring(7, SPACE_A, 42)], [in_pod_a(42)], hidden=(("0::" + APP_B,),))
    assert charged(found(told)) == [None]


@pytest.mark.parametrize("path", ["/", UNIT, APP_A])
def test_a_hidden_process_of_the_host_or_of_the_pod_itself_does_not_matter(path: str) -> None:
    told = rings([ring(7, SPACE_A, 42)], [in_pod_a(42)], hidden=(("0::" + path,),))
    assert charged(found(told)) == [APP_A]


def test_what_was_not_looked_at_proves_nothing() -> None:
    people = [in_pod_a(42)]
    socket = [ring(7, SPACE_A, 42)]
    cut = rings(socket, people, inhabitants=lives(SPACE_A, APP_A, is_whole=False))
    assert charged(found(cut)) == [None]
    assert charged(found(rings(socket, people, inhabitants={}))) == [None]
    assert charged(found(rings(socket, people, host_namespace=None))) == [None]


def test_the_root_cgroup_is_nobodys() -> None:
    told = rings(
        [ring(7, SPACE_B, 42)], [holder(42, "/", SPACE_B)], inhabitants=lives(SPACE_B, "/")
    )
    assert charged(found(told)) == [None]


def test_a_cgroup_that_is_gone_is_not_the_one_above_it() -> None:
    gone = f"{POD_A}/{'e' * 64}"
    told = rings(
        [ring(7, SPACE_B, 42)], [holder(42, gone, SPACE_B, POD_CAPABILITIES)],
        inhabitants=lives(SPACE_B, gone),
    )  # fmt: skip
    assert charged(found(told)) == [None]
    assert not suspects(found(told))


# --- what is not told ------------------------------------------------------------------


def test_small_rings_together_are_nobodys() -> None:
    told = found(rings([], others=900, others_bytes=9 * MIB))
    assert (only(told).bytes, only(told).workload) == (9 * MIB, None)
    assert not found(rings([ring(7, HOST, 1, mib=1)], is_looked=False)).claims


def test_without_the_module_holders_are_suspects_and_mappings_tell() -> None:
    sockets = [
        PacketSocket(7, SPACE_A, 0, None, None, (42,), 32 * MIB),
        PacketSocket(8, HOST, 0, None, None, (60,)),
    ]
    people = [in_pod_a(42), holder(60, UNIT)]
    why_not = "the kernel has no af_packet_diag: modprobe af_packet_diag"
    told = found(rings(sockets, people, why_not=why_not))
    assert (only(told).cgroup, only(told).bytes) == (APP_A, 32 * MIB)
    assert suspects(told) == {APP_A, UNIT}
    assert told.unseen == (f"packet rings of 2 packet sockets: {why_not}",)


def test_what_could_not_be_seen_is_said() -> None:
    told = found(rings([], namespaces_left_out=2, processes_left_out=1, holders_left_out=3))
    assert [words.split()[0:2] for words in told.unseen] == [
        ["packet", "rings"], ["packet", "rings"], ["whether", "3"],
    ]  # fmt: skip
