"""Who pays: inodes become cgroups, and what has no process is told apart from what has."""

from tests.accounts.test_census import PAGE, taken, whole
from tests.host.page_files import word

from seawall.accounts.census.cgroups import CgroupPages, by_cgroup
from seawall.host.host import Unread
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.page_census import CHARGED

UNREAD = Unread("/sys/fs/cgroup", "absent")
TREE = Cgroups(
    layout=CgroupLayout(v1={}, v2="/sys/fs/cgroup", v2_controllers=("memory",)),
    paths=("/", "/pods", "/pods/a", "/pods/b"),
    mount_point="/sys/fs/cgroup",
    pids={"/": (1,), "/pods/a": (7, 8)},
    unread=(),
)
PATHS = {1: "/", 20: "/pods", 21: "/pods/a", 22: "/pods/b"}
COUNTED = whole({
    ("LRU UPTODATE ANON SWAPBACKED MMAP", 21): 50, ("LRU UPTODATE", 21): 20, ("MMAP", 21): 4,
    ("", 21): 2, ("LRU UPTODATE", 20): 30, ("LRU UPTODATE SWAPBACKED", 22): 9,
    ("LRU UPTODATE", 1): 5, ("LRU UPTODATE", 99): 3, ("BUDDY", 0): 100, ("", 0): 7,
})  # fmt: skip


def found() -> dict[int, CgroupPages]:
    return {row.inode: row for row in by_cgroup(COUNTED, TREE, PATHS, UNREAD)}


def test_each_cgroup_has_what_it_pays_for_itself() -> None:
    rows = by_cgroup(COUNTED, TREE, PATHS, UNREAD)
    assert [(row.cgroup, row.bytes // PAGE) for row in rows] == [
        ("/pods/a", 76), ("/pods", 30), ("/pods/b", 9), ("/", 5), (None, 3),
    ]  # fmt: skip
    assert {kind: n // PAGE for kind, n in rows[0].kinds.items()} == {
        "anonymous": 50, "page cache": 20, "mapped kernel pages": 4, "charged kernel pages": 2,
    }  # fmt: skip
    assert all(sum(row.kinds.values()) == row.bytes for row in rows)
    assert {row.error_bytes for row in rows} == {0}


def test_memory_without_a_process_says_so() -> None:
    states = {inode: row.state for inode, row in found().items()}
    assert states == {
        1: "root", 21: "live", 20: "removed below", 22: "empty", 99: "not found",
    }  # fmt: skip


def test_without_a_tree_there_are_inodes() -> None:
    rows = by_cgroup(COUNTED, UNREAD, {}, UNREAD)
    assert {(row.cgroup, row.state) for row in rows} == {(None, "not found"), ("/", "root")}


def test_a_sample_is_scaled_and_has_an_error() -> None:
    """1 of 4 frames was read; classes had 10, 12, 14, 16 frames of cgroup 21: see the test of
    the error by hand, 133.
    """
    free = word("BUDDY")
    counted = taken(
        [[CHARGED, 21, 52], [free, 0, 348]], 1600, frames_read=400, classes=16, classes_read=4,
        chunk_frames=1, words=[CHARGED, free], squares=[[21, 696]],
        samples=[[10, 90], [12, 88], [14, 86], [16, 84]],
    )  # fmt: skip
    (row,) = by_cgroup(counted, TREE, PATHS, UNREAD)
    assert (row.bytes, row.error_bytes) == (208 * PAGE, 133 * PAGE)
