"""Joining claims, whatever sources say: no bytes from nowhere, no order, no blame by others."""

from dataclasses import replace
from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims
from seawall.accounts.claims.claims import Claims, joined
from seawall.accounts.node_memory.ledger import Ledger, LedgerLine
from seawall.host.host import Unread
from seawall.readings.base import Base

NO_BASE = Unread("/run/seawall/base.json", "absent")
SIZES = st.integers(-10, 1000)
CGROUPS = ("/pods/a", "/pods/a/web", "/pods/b", "/pods/b/db", None)
DRIVERS = ("the NVIDIA driver", "nvidia", "amdgpu", None)
KINDS = ("ring", "surface", "unknown", "pool", "hugetlb")
CONFIDENCES = ("exact", "traced", "bound", "estimate")
THINGS = st.frozensets(st.sampled_from(("socket:[1]", "socket:[2]", "dmabuf:3")), max_size=2)


def ledger(residual: int, error: int = 0, **lines: int) -> Ledger:
    total = residual + sum(lines.values())
    return Ledger(
        total_bytes=max(0, total), residual_bytes=residual, residual_error_bytes=error,
        lines=tuple(LedgerLine(name, size, "") for name, size in lines.items()),
        unknown=(), nodes=(), notes=(),
    )  # fmt: skip


@st.composite
def claim(draw: Any, cgroups: tuple[str | None, ...] = CGROUPS, within: str | None = None) -> Claim:
    cgroup = draw(st.sampled_from(cgroups))
    driver = draw(st.sampled_from(DRIVERS))
    return Claim(
        holder=cgroup or driver or draw(st.sampled_from(("a site", "another"))), workload=cgroup,
        cgroup=cgroup, driver=driver, bytes=draw(SIZES), least_bytes=draw(SIZES),
        most_bytes=draw(SIZES), kind=draw(st.sampled_from(KINDS)),
        within=within or draw(st.sampled_from((RESIDUAL, RESIDUAL, "hugetlb", "slab"))),
        is_counted=draw(st.booleans()), source=draw(st.sampled_from("pqr")),
        confidence=draw(st.sampled_from(CONFIDENCES)), missing="", give_back="",
        things=draw(THINGS),
    )  # fmt: skip


FOUND = st.lists(
    st.builds(SourceClaims, st.lists(claim(), max_size=4).map(tuple)), max_size=4
)  # fmt: skip
LEDGERS = st.builds(
    ledger, st.integers(-50, 1500), st.integers(0, 50), hugetlb=st.integers(0, 500),
    slab=st.integers(0, 500),
)  # fmt: skip
BASES = st.one_of(
    st.just(NO_BASE),
    st.builds(
        Base, boot_id=st.just("x"), residual_bytes=st.integers(-10, 900),
        residual_error_bytes=st.integers(0, 20), learned_at_unix_seconds=st.just(0.0),
        how=st.just("asked"),
    ),
)  # fmt: skip


def of_residual(claims: Claims) -> list[Claim]:
    return [one for one in claims.claims if one.within == RESIDUAL]


@given(FOUND, LEDGERS, BASES)
def test_never_negative_and_in_order(
    found: list[SourceClaims], has: Ledger, base: Base | Unread
) -> None:
    claims = joined(found, has, base)
    for one in claims.claims:
        assert 0 <= one.least_bytes <= one.bytes <= one.most_bytes
    least, most = claims.unexplained_least_bytes, claims.unexplained_most_bytes
    assert 0 <= least <= claims.unexplained_bytes <= most


@given(FOUND, LEDGERS, BASES)
def test_never_more_than_the_ledger_has(
    found: list[SourceClaims], has: Ledger, base: Base | Unread
) -> None:
    claims = joined(found, has, base)
    rooms = {line.name: line.bytes for line in has.lines}
    rooms[RESIDUAL] = max(0, has.residual_bytes + has.residual_error_bytes)
    for within, room in rooms.items():
        inside = [one for one in claims.claims if one.within == within]
        assert sum(one.bytes for one in inside) <= room
        assert all(one.most_bytes <= room for one in inside)
    if isinstance(base, Base):
        grown = rooms[RESIDUAL] - base.residual_bytes + base.residual_error_bytes
        traced = [one for one in of_residual(claims) if one.confidence == "traced"]
        assert sum(one.bytes for one in traced) <= max(0, grown)


@given(FOUND, LEDGERS, BASES)
def test_order_of_sources_does_not_matter(
    found: list[SourceClaims], has: Ledger, base: Base | Unread
) -> None:
    first = joined(found, has, base)
    for other in permutations(found):
        assert joined(other, has, base) == first


@given(FOUND, LEDGERS)
def test_order_within_a_source_does_not_matter(found: list[SourceClaims], has: Ledger) -> None:
    turned = [replace(answer, claims=answer.claims[::-1]) for answer in found]
    assert joined(turned, has, NO_BASE) == joined(found, has, NO_BASE)


@given(
    st.lists(
        st.builds(SourceClaims, st.lists(claim(("/pods/a", "/pods/a/web")), max_size=3).map(tuple)),
        max_size=3,
    ),
    st.lists(claim(("/pods/innocent",)), max_size=3),
    LEDGERS,
    BASES,
)  # fmt: skip
def test_evidence_on_an_innocent_raises_nobody_else(
    found: list[SourceClaims], innocent: list[Claim], has: Ledger, base: Base | Unread
) -> None:
    """With things of its own; what it shares with others is theirs less, not more."""
    alone = joined(found, has, base)
    own = [replace(one, things=frozenset({f"own:{n}"})) for n, one in enumerate(innocent)]
    both = joined([*found, SourceClaims(tuple(own))], has, base)
    for one in (c for c in both.claims if c.cgroup != "/pods/innocent"):
        before = [c for c in alone.claims if key(c) == key(one)]
        assert before, "it was not there before"
        assert one.least_bytes <= before[0].least_bytes
        assert one.bytes <= before[0].bytes
        assert one.most_bytes <= before[0].most_bytes


def key(one: Claim) -> tuple[object, ...]:
    return one.cgroup, one.driver, one.holder, one.kind, one.within, one.is_counted, one.source


@given(FOUND, LEDGERS)
def test_nobody_appears_whom_no_source_named(found: list[SourceClaims], has: Ledger) -> None:
    named = {one.cgroup for answer in found for one in answer.claims if one.most_bytes > 0}
    assert {one.cgroup for one in joined(found, has, NO_BASE).claims} <= named | {None}


@given(FOUND, LEDGERS)
def test_nobody_has_more_than_all_sources_say_together(
    found: list[SourceClaims], has: Ledger
) -> None:
    for cgroup in CGROUPS[:-1]:
        said = [c for answer in found for c in answer.claims if c.cgroup == cgroup]
        got = [c for c in joined(found, has, NO_BASE).claims if c.cgroup == cgroup]
        most = sum(max(0, one.most_bytes, one.least_bytes) for one in said if one.most_bytes > 0)
        assert sum(one.bytes for one in got) <= most
