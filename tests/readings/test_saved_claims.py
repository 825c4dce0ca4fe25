"""/run/seawall/claims: valid for one boot and for the cgroups it was learned of."""

import json
from dataclasses import replace

import pytest
from tests.case_host import parse_case

from seawall.accounts.claims.claims import Claims
from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings.saved_claims import (
    CLAIMS_MOST,
    LIMIT_BYTES,
    PATH,
    SavedClaim,
    SavedClaims,
    document_of,
    parse,
    read,
)
from seawall.readings.snapshot import Snapshot

MIB = 1 << 20
BOOT = "00000000-0000-4000-8000-000000000000"
FOLDER = "/sys/fs/cgroup/memory/rings"

CLAIM = SavedClaim(
    holder="shop/cart/worker", workload="shop/cart/worker", cgroup="/rings", folder=FOLDER,
    cgroup_inode=4711, driver=None, kind="ring", what="packet ring", within="residual",
    bytes=512 * MIB, least_bytes=500 * MIB, most_bytes=600 * MIB,
    source="packet ring, traced for 9 s: packet_set_ring", stack=("packet_set_ring",),
    learned_at_unix_seconds=1_699_999_970.0,
)  # fmt: skip
KEPT = SavedClaims(
    boot_id=BOOT, written_at_unix_seconds=1_699_999_980.0, base_residual_bytes=100 * MIB,
    residual_bytes=612 * MIB, blind="", claims=(CLAIM,),
)  # fmt: skip


def case(
    kept: SavedClaims, inode: str = '{"device": 1, "inode": 4711}', more: str = ""
) -> Snapshot:
    text = f"why: kept\n=== {PATH}\n{document_of(kept).decode()}\n"
    if inode:
        text += f"=== ?inode {FOLDER}\n{inode}\n"
    return Snapshot(parse_case((text + more).encode()).rounds[0])


def claims_of(snapshot: Snapshot) -> tuple[SavedClaim, ...]:
    kept = read(snapshot.host)
    assert not isinstance(kept, Unread)
    return kept.claims


def test_what_is_written_is_read_back() -> None:
    assert parse(document_of(KEPT)) == KEPT


def test_a_claim_of_the_same_cgroup_is_valid() -> None:
    assert claims_of(case(KEPT)) == (CLAIM,)


def test_another_boot_forgets_everything() -> None:
    found = read(case(replace(KEPT, boot_id="11111111-0000-4000-8000-000000000000")).host)
    assert isinstance(found, Unread)
    assert (found.why, found.detail) == ("absent", "learned in another boot")


def test_a_path_that_is_another_cgroup_by_now_is_forgotten() -> None:
    assert claims_of(case(KEPT, '{"device": 1, "inode": 4712}')) == ()


@pytest.mark.parametrize("answer", ['{"device": 1}', '"4711"', '{"inode": "4711"}', "null"])
def test_an_inode_that_is_none_makes_no_claim_valid(answer: str) -> None:
    assert claims_of(case(KEPT, answer)) == ()


def test_a_cgroup_that_was_removed_is_told_as_gone() -> None:
    (claim,) = claims_of(case(KEPT, inode=""))
    assert claim == replace(CLAIM, is_gone=True)


def test_a_claim_of_no_workload_needs_no_cgroup() -> None:
    threads = replace(CLAIM, workload=None, cgroup=None, folder=None, cgroup_inode=None)
    assert claims_of(case(replace(KEPT, claims=(threads,)), inode="")) == (threads,)


def damaged(**change: object) -> bytes:
    document = json.loads(document_of(KEPT))
    document["claims"][0].update(change)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[]", b'{"schema": "seawall.claims/1"}', b"[" * 100_000,
        json.dumps({"schema": "seawall.claims/1", "boot_id": "b", "claims": [{}]}).encode(),
        document_of(replace(KEPT, claims=(CLAIM,) * 3)).replace(b'"ring"', b"7"),
        document_of(KEPT).replace(str(512 * MIB).encode(), b"NaN"),
        document_of(KEPT).replace(str(512 * MIB).encode(), b"1e400"),
        damaged(bytes=True), damaged(bytes=-1), damaged(bytes=700 * MIB),
        damaged(least_bytes=600 * MIB), damaged(cgroup_inode=None), damaged(holder=None),
        damaged(holder="x" * 5000),
    ],
)  # fmt: skip
def test_what_is_malformed_is_said_to_be(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)


def test_no_more_claims_than_a_host_can_have_are_written_or_read() -> None:
    many = replace(KEPT, claims=(CLAIM,) * (CLAIMS_MOST + 5))
    assert len(parse(document_of(many)).claims) == CLAIMS_MOST
    document = json.loads(document_of(KEPT))
    document["claims"] *= CLAIMS_MOST + 1
    with pytest.raises(ParseProblem):
        parse(json.dumps(document).encode())


def test_long_paths_of_one_workload_do_not_make_the_file_unreadable() -> None:
    """Others stay, and what is left can be read back whole."""
    hostile = replace(CLAIM, cgroup="/" + "x" * 5000)
    assert parse(document_of(replace(KEPT, claims=(hostile, CLAIM)))).claims == (CLAIM,)
    long = replace(CLAIM, cgroup="/" + "x" * 4000, holder="x" * 4000, folder="/" + "x" * 4000)
    written = document_of(replace(KEPT, claims=(CLAIM,) + (long,) * 200))
    assert len(written) <= LIMIT_BYTES
    claims = parse(written).claims
    assert claims[0] == CLAIM
    assert 40 <= len(claims) < 201


MEMINFO = """=== /proc/meminfo
MemTotal:        4194304 kB
MemFree:         {free} kB
Buffers:               0 kB
Cached:                0 kB
SwapCached:            0 kB
Active:          1048576 kB
Inactive:              0 kB
Unevictable:           0 kB
AnonPages:       1048576 kB
Shmem:                 0 kB
Slab:                  4 kB
KernelStack:           0 kB
PageTables:            0 kB
KReclaimable:          4 kB
SReclaimable:          4 kB
VmallocUsed:           4 kB
"""
ZONES = """=== /proc/zoneinfo
Node 0, zone   Normal
        min      10
        low      10
        high     10
        spanned  1048576
        present  1048576
        managed  1048576
  pagesets
    cpu: 0
              count: 0
              high:  0
              batch: 1
  vm stats threshold: 1
"""


def shown(free_mib: int, kept: SavedClaims = KEPT) -> dict[str, tuple[int, int]]:
    """Workload: (MiB, at least) of what ``memory`` claims; the residual is 3072 less free."""
    snapshot = case(kept, more=MEMINFO.format(free=free_mib << 10) + ZONES)
    claims = snapshot.get(Claims)
    assert not isinstance(claims, Unread)
    return {
        claim.workload or claim.holder: (claim.bytes // MIB, claim.least_bytes // MIB)
        for claim in claims.claims if claim.confidence == "traced"
    }  # fmt: skip


def test_every_verb_shows_what_was_learned() -> None:
    assert shown(3072 - 612) == {"shop/cart/worker": (512, 500)}
    # More is in no counter by now: nobody knows whose it is.
    assert shown(3072 - 2000) == {"shop/cart/worker": (512, 500)}


def test_it_is_never_more_than_the_residual_grew_by() -> None:
    # 300 MiB are in no counter, 100 of them from before; 312 fell, so 188 are certain.
    (found,) = shown(3072 - 300).values()
    assert 200 <= found[0] < 250  # and the error of so short a ledger
    assert 186 <= found[1] <= 188
    assert shown(3072 - 100) == {}
    assert shown(3072 - 20) == {}
