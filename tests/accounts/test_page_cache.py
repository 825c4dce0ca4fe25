"""Each file once, whoever sees it; what is not known is never 0."""

from dataclasses import replace

from seawall.accounts.cache.page_cache import CacheTable, CacheTotals, explained_fraction
from seawall.host.host import Unread
from seawall.readings.process_files import FileUse
from seawall.readings.residency import FilePages, WalkSlice

KIB = 1024
PAGES = FilePages(
    kind="file", device=1, inode=10, size_bytes=100 * KIB, cached=20, dirty=3, writeback=1,
    evicted=5, recently_evicted=2, method="cachestat", deleted=False, overlay=None, path="",
)  # fmt: skip
OWNERS = {7: "shop/web/app", 8: "shop/db/app", 1: "unit:init.scope"}


def use(name: str, *pids: int, code: bool = False) -> FileUse:
    return FileUse(
        name, pids[0], None, "", pids=set(pids), code_of=set(pids) if code else set(),
        is_mapped=True,
    )  # fmt: skip


def table(keep: int = 1000) -> CacheTable:
    return CacheTable(4 * KIB, OWNERS.get, frozenset({1}), keep=keep)


def test_two_containers_one_file() -> None:
    found = table()
    layer = replace(PAGES, overlay=True, path="/layers/1/bin/app")
    found.add_uses([use("/bin/app", 7), use("/usr/bin/app", 8)], [layer, layer])
    (file,) = found.sorted_files()
    assert file.workloads == ("shop/db/app", "shop/web/app")
    assert file.pids == {7, 8}
    assert file.host_path == "/layers/1/bin/app"
    assert file.cached_bytes == 80 * KIB
    assert file.share == 0.8
    assert found.totals == CacheTotals(
        files=1, size_bytes=100 * KIB, cached_bytes=80 * KIB, dirty_bytes=12 * KIB,
        writeback_bytes=4 * KIB, evicted_bytes=20 * KIB, recently_evicted_bytes=8 * KIB,
    )  # fmt: skip


def test_same_inode_of_another_device_is_another_file() -> None:
    found = table()
    found.add_uses([use("/a", 7), use("/a", 8)], [PAGES, replace(PAGES, device=2)])
    assert found.totals.files == 2
    assert found.totals.cached_bytes == 160 * KIB


def test_not_known_is_neither_zero_nor_all() -> None:
    found = table()
    unknown = replace(PAGES, cached=None, dirty=None, writeback=None, evicted=None,
                      recently_evicted=None, inode=11)  # fmt: skip
    found.add_uses([use("/secret", 7), use("/a", 7)], [unknown, PAGES])
    known, secret = found.sorted_files()
    assert secret.cached_bytes is None
    assert secret.share is None
    assert known.cached_bytes == 80 * KIB
    assert found.totals.unknown_files == 1
    assert found.totals.cached_bytes == 80 * KIB


def test_tmpfs_and_huge_pages_are_told_apart() -> None:
    found = table()
    shmem = replace(PAGES, kind="shmem", inode=12)
    huge = replace(PAGES, kind="hugetlb", inode=13, cached=None, held_bytes=2048 * KIB)
    found.add_uses([use("/memfd:x", 7), use("/huge", 7)], [shmem, huge])
    assert found.totals.shmem_bytes == 80 * KIB
    assert found.totals.hugetlb_bytes == 2048 * KIB
    assert found.totals.cached_bytes == 80 * KIB, "huge pages are not in Cached"
    assert found.totals.unknown_files == 0


def test_code_of_a_daemon_is_marked() -> None:
    found = table()
    uses = [use("/lib/libc.so", 7, code=True), use("/lib/libc.so", 1, code=True), use("/data", 1)]
    found.add_uses(uses, [PAGES, PAGES, replace(PAGES, inode=14)])
    marked = {file.path: file.is_system for file in found.sorted_files()}
    assert marked == {"/lib/libc.so": True, "/data": False}


def test_unread_files_are_told_and_gone_ones_are_not() -> None:
    found = table()
    gone, stuck = Unread("x", "vanished"), Unread("x", "no_answer", "the disk")
    found.add_uses([use("/gone", 7), use("/stuck", 7)], [gone, stuck])
    assert found.unread == [Unread("/stuck", "no_answer", "the disk")]
    assert found.totals.files == 0


def part(*sizes: int, **sums: int) -> WalkSlice:
    names = ("files", "folders", "size", "unknown", "refused", "shmem", "by_mincore", "cached",
             "dirty", "writeback", "evicted", "recently_evicted")  # fmt: skip
    rows = [replace(PAGES, inode=100 + n, cached=size, path=f"/w/{n}")
            for n, size in enumerate(sizes)]  # fmt: skip
    return WalkSlice(dict.fromkeys(names, 0) | sums, tuple(rows), (), (), (), goes_on=False)


def test_a_walk_keeps_the_largest_and_counts_all() -> None:
    found = table(keep=2)
    found.add_slice(part(*range(1, 20), files=19, cached=190, size=19 * KIB))
    assert [file.path for file in found.sorted_files()] == ["/w/18", "/w/17"]
    assert found.above_pages == 18, "what holds no more is not asked for again"
    assert found.totals.cached_bytes == 190 * 4 * KIB
    assert found.totals.files == 19


def test_walked_file_learns_its_users() -> None:
    found = table()
    found.add_slice(part(5, files=1, cached=5))
    known = replace(PAGES, inode=100)
    found.join_workloads([use("/w/0", 7), use("/other", 8)], [known, PAGES])
    (file,) = found.sorted_files()
    assert file.workloads == ("shop/web/app",)
    assert found.totals.files == 1
    assert file.cached_bytes == 20 * KIB


def test_share_of_cached() -> None:
    assert explained_fraction(CacheTotals(cached_bytes=25), 100) == 0.25
    assert explained_fraction(CacheTotals(cached_bytes=125), 100) == 1.0
    assert explained_fraction(CacheTotals(), 0) is None
