"""dma-bufs: once each, and nobody is charged for what may have been handed to him."""

from collections.abc import Mapping

from tests.accounts.packet_scenes import APP_A, APP_B, MIB, known

from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.claim_sources.dma_buf_claims import claims
from seawall.accounts.workloads import Workloads
from seawall.readings.dma_bufs import DmaBuf, DmaBufs
from seawall.readings.driver_files import DriverFile, DriverFiles, Holder

A, A2, B = 42, 43, 50


def workloads() -> Workloads:
    by_cgroup = known().by_cgroup
    by_pid = {A: by_cgroup[APP_A], A2: by_cgroup[APP_A], B: by_cgroup[APP_B]}
    return Workloads(by_cgroup, by_pid)


def files(*heap_pids: int) -> DriverFiles:
    heap = DriverFile("dma_heap", 250, 0, 1, (5,))
    by_pid: Mapping[int, Holder] = {pid: Holder(pid, 1, (heap,), ()) for pid in heap_pids}
    return DriverFiles(by_pid, {}, 0)


def buffers(*rows: tuple[int, int, str, tuple[int, ...]], unnamed: int = 0) -> DmaBufs:
    found = (DmaBuf(inode, mib * MIB, exporter, pids) for inode, mib, exporter, pids in rows)
    return DmaBufs(tuple(found), True, unnamed)


def only(found: SourceClaims) -> Claim:
    (claim,) = found.claims
    return claim


def test_the_only_holder_who_has_the_heap_open() -> None:
    found = claims(
        buffers((1, 8, "system", (A,)), (2, 4, "system", (A, A2))), files(A), workloads()
    )
    assert only(found).cgroup == APP_A
    assert (only(found).bytes, only(found).least_bytes) == (12 * MIB, 0)
    assert only(found).confidence == "estimate"
    assert only(found).things == {"dmabuf:1", "dmabuf:2"}
    assert not only(found).is_counted


def test_the_only_holder_may_have_been_handed_it() -> None:
    found = claims(buffers((1, 8, "system", (A,))), files(B), workloads())
    assert (only(found).workload, only(found).bytes) == (None, 8 * MIB)
    assert only(found).least_bytes == 8 * MIB
    assert [suspect.cgroup for suspect in found.suspects] == [APP_A]


def test_several_holders_are_suspects() -> None:
    found = claims(buffers((1, 8, "system", (A, B))), files(A), workloads())
    assert only(found).cgroup is None
    assert {s.cgroup: s.pids for s in found.suspects} == {APP_A: (A,), APP_B: (B,)}


def test_buffers_of_graphics_drivers_may_be_device_memory() -> None:
    found = claims(buffers((1, 512, "amdgpu", (A,)), (2, 8, "drm", (B,))), files(), workloads())
    assert not found.claims
    assert {s.driver for s in found.suspects} == {"dma-buf amdgpu", "dma-buf drm"}


def test_pages_of_a_memfd_are_shared_memory_already() -> None:
    found = claims(buffers((1, 64, "udmabuf", (A,))), files(), workloads())
    assert (only(found).within, only(found).is_counted) == ("tmpfs and shared", True)
    assert only(found).cgroup == APP_A


def test_buffers_that_only_a_driver_holds() -> None:
    found = claims(buffers((1, 64, "linux,cma", ())), files(), workloads())
    assert only(found).workload is None
    assert "no process" in only(found).holder
    assert not found.suspects


def test_what_is_small_or_cannot_be_told_apart() -> None:
    found = claims(buffers((1, 0, "system", (A,)), unnamed=3), files(A), workloads())
    assert not found.claims
    assert found.unseen[0].startswith("3 descriptors of dma-bufs")
