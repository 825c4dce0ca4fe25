"""Claims of several sources about one memory: who gets what, with figures worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.test_claims_properties import NO_BASE, ledger

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims, Suspect
from seawall.accounts.claim_joining.claim_owner import driver_key
from seawall.accounts.claims.claims import Claims, joined
from seawall.readings.base import Base

MIB = 1 << 20


def claim(holder: str, mib: float, confidence: Any = "exact", **more: Any) -> Claim:
    """Of a workload whose name is its cgroup, where it begins with a slash."""
    size = int(mib * MIB)
    is_bound = confidence == "bound"
    own = holder if holder.startswith("/") else None
    given = Claim(
        holder=holder, workload=own, cgroup=own, driver=None, bytes=size,
        least_bytes=0 if is_bound else size, most_bytes=size, kind="ring", within=RESIDUAL,
        is_counted=False, source=f"{confidence} of {holder}", confidence=confidence, missing="",
        give_back="",
    )  # fmt: skip
    return replace(given, **more)


def held(claims: Claims) -> dict[tuple[str, str], tuple[float, float, float]]:
    """(holder, kind) -> (least, likely, most) in MiB."""
    return {
        (c.holder, c.kind): (c.least_bytes / MIB, c.bytes / MIB, c.most_bytes / MIB)
        for c in claims.claims
    }


def of(*sources: list[Claim], residual: int = 10_000, error: int = 0, **lines: int) -> Claims:
    """Joined; the ledger in MiB."""
    has = ledger(
        residual * MIB, error * MIB, **{name: size * MIB for name, size in lines.items()}
    )  # fmt: skip
    return joined([SourceClaims(tuple(source)) for source in sources], has, NO_BASE)


def test_two_looks_at_one_workload_are_one_memory() -> None:
    traced = claim("/hog", 250, "traced", least_bytes=240 * MIB, most_bytes=260 * MIB)
    claims = of([claim("/hog", 256)], [traced])
    assert held(claims) == {("/hog", "ring"): (256, 256, 260)}
    assert claims.claims[0].confidence == "exact"
    assert claims.claims[0].source == "exact of /hog; traced of /hog"
    assert claims.unexplained_bytes == (10_000 - 256) * MIB


def test_looks_that_contradict_each_other_may_both_be_right() -> None:
    """The trace is certain of more than the sockets can be: some of it is something else."""
    claims = of([claim("/hog", 256)], [claim("/hog", 300, "traced")])
    assert held(claims) == {("/hog", "ring"): (300, 300, 556)}


def test_what_one_source_says_twice_is_two_memories() -> None:
    claims = of([claim("/hog", 100), claim("/hog", 60)])
    assert held(claims) == {("/hog", "ring"): (160, 160, 160)}


def test_a_thing_seen_by_two_sources_is_counted_once() -> None:
    mine = claim("/a", 64, kind="surface", things=frozenset({"dmabuf:7"}))
    seen = claim("/a", 64, "estimate", kind="pinned", things=frozenset({"dmabuf:7"}))
    assert held(of([mine], [seen])) == {("/a", "surface"): (64, 64, 64)}


def test_a_thing_belongs_to_the_one_with_better_evidence() -> None:
    """Handed to another pod: the one who has it now is not charged."""
    made = claim("/maker", 64, things=frozenset({"dmabuf:7"}))
    has = claim("/receiver", 64, "estimate", things=frozenset({"dmabuf:7"}))
    assert held(of([has], [made])) == {("/maker", "ring"): (64, 64, 64)}


def test_equal_evidence_for_two_charges_neither() -> None:
    one = claim("/a", 64, things=frozenset({"dmabuf:7"}))
    other = claim("/b", 100, things=frozenset({"dmabuf:7", "dmabuf:8"}))
    claims = of([one], [other])
    assert held(claims) == {("either /a or /b", "ring"): (64, 64, 64), ("/b", "ring"): (36, 36, 36)}
    assert claims.claims[0].cgroup is None
    assert claims.claims[0].missing == "which of them took the memory"


def test_a_name_with_or_in_it_makes_no_other_owner() -> None:
    """What is traced is part of the sockets' total, whatever their holder calls itself."""
    sockets = "packet sockets of the host's network (held by /x or either /y)"
    claims = of([claim(sockets, 300)], [claim("/hog", 100, "traced")])
    assert held(claims) == {("/hog", "ring"): (100, 100, 100), (sockets, "ring"): (200, 200, 200)}


def test_traced_without_a_kind_is_a_look_at_everything_of_the_workload() -> None:
    traced = claim("/hog", 300, "traced", kind="unknown")
    claims = of([claim("/hog", 256)], [traced])
    assert held(claims) == {("/hog", "ring"): (256, 256, 256), ("/hog", "unknown"): (44, 44, 44)}


def test_a_pod_contains_its_containers() -> None:
    pod = claim("/pod", 300, "traced")
    claims = of([claim("/pod/a", 100), claim("/pod/b", 150)], [pod])
    assert held(claims)[("/pod", "ring")] == (50, 50, 50)
    assert claims.unexplained_bytes == (10_000 - 300) * MIB


def test_a_pod_with_other_sockets_than_its_container_is_apart() -> None:
    pod = claim("/pod", 300, "traced", things=frozenset({"socket:[1]"}))
    inside = claim("/pod/a", 100, things=frozenset({"socket:[2]"}))
    assert held(of([inside], [pod]))[("/pod", "ring")] == (300, 300, 300)


def test_a_name_that_only_begins_alike_is_not_inside() -> None:
    claims = of([claim("/pod1/a", 100)], [claim("/pod", 300, "traced")])
    assert held(claims)[("/pod", "ring")] == (300, 300, 300)


def test_a_drivers_bound_contains_its_workloads() -> None:
    """Seed 1 with a trace: 33.0 GiB by the slab cache, 31.4 of it seen being taken."""
    bound = claim("the NVIDIA driver", 33_000, "bound", driver="the NVIDIA driver", kind="surface")
    pod = claim("/pod", 31_400, "traced", driver="nvidia", kind="surface")
    claims = of([bound], [pod], residual=33_800)
    assert held(claims) == {
        ("/pod", "surface"): (31_400, 31_400, 31_400),
        ("the NVIDIA driver", "surface"): (0, 1_600, 1_600),
    }
    assert claims.unexplained_bytes == 2_400 * MIB
    assert claims.unexplained_least_bytes == 800 * MIB
    assert claims.unexplained_most_bytes == 2_400 * MIB


def test_a_bound_explains_nothing() -> None:
    claims = of([claim("the NVIDIA driver", 33_000, "bound", driver="nvidia")], residual=33_800)
    assert claims.unexplained_bytes == claims.unexplained_most_bytes == 33_800 * MIB
    assert claims.unexplained_least_bytes == 800 * MIB


def test_a_pool_of_free_pages_contains_nobodys_buffers() -> None:
    pool = claim("the TTM graphics drivers", 500, driver="the TTM graphics drivers", kind="pool")
    user = claim("/render", 300, driver="the amdgpu driver", kind="surface")
    assert held(of([pool], [user])) == {
        ("the TTM graphics drivers", "pool"): (500, 500, 500),
        ("/render", "surface"): (300, 300, 300),
    }


def test_a_total_of_ttm_contains_what_amdgpu_holds() -> None:
    total = claim("the TTM graphics drivers", 500, driver="the TTM graphics drivers",
                  kind="surface")  # fmt: skip
    user = claim("/render", 300, driver="the amdgpu driver", kind="surface")
    assert held(of([total, user]))[("the TTM graphics drivers", "surface")] == (200, 200, 200)


def test_a_process_outside_every_workload_is_no_total() -> None:
    one = claim("process 700", 50, driver="nvidia", kind="surface")
    pod = claim("/pod", 300, driver="nvidia", kind="surface")
    assert held(of([one], [pod]))[("process 700", "surface")] == (50, 50, 50)


def test_more_than_there_is_goes_to_the_best_evidence() -> None:
    """Innocents beside the culprit: estimates and bounds give way, in proportion."""
    claims = of(
        [claim("/hog", 800)], [claim("/a", 300, "estimate", least_bytes=0)],
        [claim("/b", 100, "estimate", least_bytes=0)], [claim("/c", 500, "bound")],
        residual=900, error=20,
    )  # fmt: skip
    assert held(claims)[("/hog", "ring")] == (800, 800, 800)
    assert held(claims)[("/a", "ring")] == (0, 90, 120)
    assert held(claims)[("/b", "ring")] == (0, 30, 100)
    assert held(claims)[("/c", "ring")] == (0, 0, 120)
    assert claims.unexplained_bytes == 0
    assert claims.unexplained_most_bytes == 120 * MIB


def test_traced_claims_are_no_more_than_grew() -> None:
    base = Base(
        boot_id="x", residual_bytes=700 * MIB, residual_error_bytes=10 * MIB,
        learned_at_unix_seconds=0.0, how="asked",
    )  # fmt: skip
    found = [SourceClaims((claim("/a", 300, "traced"),)), SourceClaims((claim("/old", 500),))]
    got = held(joined(found, ledger(900 * MIB, 5 * MIB), base))
    assert got == {("/a", "ring"): (215, 215, 215), ("/old", "ring"): (500, 500, 500)}


def test_a_line_of_the_ledger_has_its_own_room_and_explains_nothing() -> None:
    huge = claim("/db", 600, kind="hugetlb", within="hugetlb")
    more = claim("/vm", 600, kind="hugetlb", within="hugetlb")
    claims = of([huge, more], residual=100, hugetlb=1000)
    assert held(claims) == {
        ("/db", "hugetlb"): (500, 500, 500), ("/vm", "hugetlb"): (500, 500, 500)
    }  # fmt: skip
    assert claims.unexplained_bytes == 100 * MIB


def test_a_negative_residual_has_no_room() -> None:
    claims = of([claim("/a", 100)], residual=-50, error=20)
    assert claims.claims == ()
    assert claims.unexplained_most_bytes == 0


def test_absurd_numbers_do_not_get_through() -> None:
    odd = claim("/a", 5, bytes=-7, least_bytes=3 * MIB, most_bytes=2 * MIB)
    assert held(of([odd])) == {("/a", "ring"): (3, 3, 3)}


def test_suspects_of_several_sources_stand_once() -> None:
    one = Suspect(workload="/a", cgroup="/a", driver="nvidia", pids=(1, 2), why="open")
    found = [
        SourceClaims(suspects=(one,)),
        SourceClaims(suspects=(one, replace(one, driver="drm", pids=()))),
    ]
    assert [s.driver for s in joined(found, ledger(1), NO_BASE).suspects] == ["nvidia", "drm"]


@pytest.mark.parametrize(
    ("name", "key"),
    [("the NVIDIA driver", "nvidia"), ("nvidia-uvm", "nvidia"), ("nvidia_uvm", "nvidia"),
     ("the amdgpu driver", "amdgpu"), ("", "")],
)  # fmt: skip
def test_names_of_one_driver(name: str, key: str) -> None:
    assert driver_key(name) == key


@pytest.mark.parametrize("least", [224, 100, 0])
def test_whoever_is_named_keeps_what_the_whole_is_certain_of(least: int) -> None:
    """Sockets of the host's network name nobody; a trace that names one is not cut to its least."""
    sockets = claim("packet sockets of the host's network", 264, things=frozenset({"socket:[1]"}))
    kept = claim("/hog", 224, "traced", least_bytes=least * MIB)
    claims = held(of([sockets], [kept], residual=264))
    assert claims["/hog", "ring"] == (least, 224, 224)
    assert claims[sockets.holder, "ring"][1] == 40
