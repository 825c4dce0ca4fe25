"""Page frames by kind: what a word means, and what is taken off before anybody is blamed."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.case_host import parse_case
from tests.host.page_files import page_files, word
from tests.host.test_page_census import machine

from seawall.accounts.census.frame_census import (
    Census,
    census_of,
    error_of_squares,
    errors_of,
    frames_of,
)
from seawall.accounts.census.frame_kinds import bits, kind_of
from seawall.host.page_census.count import PageFiles
from seawall.host.page_census.page_census_probe import scan
from seawall.host.page_census.sampling_order import Range, SamplingOrder
from seawall.readings.meminfo import Meminfo
from seawall.readings.meminfo import parse as parse_meminfo
from seawall.readings.page_census import CHARGED, PageCensus, take
from seawall.readings.zoneinfo import Zoneinfo
from seawall.readings.zoneinfo import parse as parse_zoneinfo

MIB = 1 << 20
PAGE = 4096

WORDS = {
    # As 6.18 writes them.
    "NOPAGE": "no page",
    "BUDDY": "free",
    "BUDDY UPTODATE": "free",  # PG_reported is PG_uptodate there
    "LRU UPTODATE MMAP ANON SWAPBACKED OWNER_2": "anonymous",
    "UPTODATE MMAP ANON SWAPBACKED": "anonymous",  # on its way to its list
    "LRU UPTODATE ANON": "anonymous",  # MADV_FREE
    "LRU UPTODATE MMAP ANON SWAPBACKED KSM": "ksm",
    "LRU UPTODATE DIRTY SWAPBACKED MMAP": "tmpfs and shared",
    "LRU UPTODATE": "page cache",
    "LRU REFERENCED PRIVATE": "page cache",  # a block being read
    "UPTODATE PRIVATE": "page cache",
    "SLAB ANON KSM HEAD": "slab",  # its fields mean other things
    "PGTABLE REFERENCED MMAP": "page tables",
    "HUGE HEAD": "hugetlb",
    "HUGE TAIL UPTODATE MMAP ANON": "hugetlb",
    "OFFLINE": "offline",
    "RESERVED": "reserved",
    "RESERVED MMAP": "reserved",
    "MMAP": "mapped kernel pages",
    "MMAP HEAD": "mapped kernel pages",
    "": "kernel pages",
    "HEAD": "kernel pages",
    "PRIVATE OWNER_2": "kernel pages",
    "ANON": "kernel pages",  # a field of its own in the same place
}


@pytest.mark.parametrize(("names", "kind"), WORDS.items(), ids=WORDS.keys())
def test_what_a_word_means(names: str, kind: str) -> None:
    assert kind_of(word(names)) == kind


def test_who_pays_decides_for_plain_pages_alone() -> None:
    assert kind_of(CHARGED) == "charged kernel pages"
    assert kind_of(CHARGED | word("PRIVATE")) == "charged kernel pages"
    assert kind_of(CHARGED | word("MMAP")) == "mapped kernel pages"
    assert kind_of(CHARGED | word("PGTABLE")) == "page tables"
    assert bits("SWAPCACHE", "SWAPBACKED", "LRU") == 1 << 13 | 1 << 14 | 1 << 5
    assert kind_of(bits("SWAPCACHE", "SWAPBACKED", "LRU")) == "swap cache"


# --- sums --------------------------------------------------------------------------------


def whole(counts: Mapping[tuple[str, int], int]) -> PageCensus:
    """Every frame was read: ``counts`` by flags and inode."""
    rows = [
        [word(names) | (CHARGED if inode else 0), inode, n] for (names, inode), n in counts.items()
    ]
    return taken(rows, sum(counts.values()))


def taken(rows: list[list[int]], frames: int, **changes: Any) -> PageCensus:
    answer = {
        "page_size": PAGE, "frames": frames, "frames_read": frames, "classes": 64,
        "classes_read": 64, "chunk_frames": 512, "seconds": 2.0, "ranges_from": "/proc/iomem",
        "has_cgroups": True, "counts": rows, "words": [], "samples": [], "squares": [],
    }  # fmt: skip
    text = f"=== ?page_census\n{json.dumps(answer | changes)}\n"
    found = take(parse_case(text.encode()).rounds[0])
    assert isinstance(found, PageCensus), found
    return found


def meminfo(total_pages: int) -> Meminfo:
    return parse_meminfo(f"MemTotal: {total_pages * 4} kB\nMemFree: 0 kB\n".encode())


def zoneinfo(managed: int, listed: int) -> Zoneinfo:
    return parse_zoneinfo(
        f"""Node 0, zone   Normal
  pages free     1
        min      1
        low      1
        high     1
        spanned  10000
        present  10000
        managed  {managed}
  pagesets
    cpu: 0
              count: {listed}
              high:  378
              batch: 63
""".encode()
    )


def kinds(census: Census) -> dict[str, int]:
    """In pages."""
    return {part.kind: part.bytes // PAGE for part in census.kinds}


def outside(census: Census) -> dict[str, int]:
    return {part.kind: part.bytes // PAGE for part in census.outside}


def test_frames_without_a_flag_are_not_all_a_driver_s() -> None:
    """Of 1,000 plain frames 700 are not initialised, 200 outside MemTotal, 60 on CPU lists."""
    counted = whole({("", 0): 1000, ("BUDDY", 0): 500, ("RESERVED", 0): 40, ("NOPAGE", 0): 7})
    census = census_of(counted, meminfo(1300), [zoneinfo(600, 60)])
    assert kinds(census) == {
        "not yet initialised": 700, "free": 500, "per-cpu lists": 60, "kernel pages": 40,
    }  # fmt: skip
    assert outside(census) == {"unmanaged": 200, "reserved": 40, "no page": 7}
    assert census.total_bytes == 1300 * PAGE
    assert census.sampled is None
    assert census.error_bytes == 0
    assert (census.frames, census.frames_per_second) == (1547, 773.5)


def test_lists_are_what_they_are_between_two_looks() -> None:
    counted = whole({("", 0): 1000})
    looks = [zoneinfo(1000, 100), zoneinfo(1000, 300)]
    assert kinds(census_of(counted, meminfo(1000), looks)) == {
        "kernel pages": 800, "per-cpu lists": 200,
    }  # fmt: skip
    assert kinds(census_of(counted, meminfo(1000), [])) == {"kernel pages": 1000}


def test_lists_are_never_more_than_there_are_plain_frames() -> None:
    counted = whole({("", 0): 50, ("BUDDY", 0): 950})
    census = census_of(counted, meminfo(1000), [zoneinfo(1000, 100)])
    assert kinds(census) == {"free": 950, "per-cpu lists": 50}


def test_a_balloon_is_outside_only_where_memtotal_fell() -> None:
    counted = whole({("OFFLINE", 0): 100, ("RESERVED", 0): 50, ("BUDDY", 0): 850})
    inside = census_of(counted, meminfo(950), [])
    assert (kinds(inside), outside(inside)) == ({"free": 850, "offline": 100}, {"reserved": 50})
    fell = census_of(counted, meminfo(850), [])
    assert (kinds(fell), outside(fell)) == ({"free": 850}, {"offline": 100, "reserved": 50})


def test_pages_that_a_driver_reserved_are_inside() -> None:
    counted = whole({("RESERVED", 0): 80, ("BUDDY", 0): 920})
    census = census_of(counted, meminfo(970), [])
    assert (kinds(census), outside(census)) == ({"free": 920, "reserved": 50}, {"reserved": 30})


def test_marks_of_programs_and_files() -> None:
    counted = whole({
        ("LRU UPTODATE DIRTY", 0): 10, ("LRU UPTODATE SWAPBACKED DIRTY THP", 0): 512,
        ("SLAB THP", 0): 99, ("BUDDY", 0): 379,
    })  # fmt: skip
    marks = census_of(counted, meminfo(1000), []).of_which
    assert marks == {
        "dirty": 522 * PAGE, "writeback": 0, "mlocked": 0, "transparent huge": 512 * PAGE,
    }  # fmt: skip


def test_pages_of_64_kib() -> None:
    rows = [[word("BUDDY"), 0, 10], [word("LRU UPTODATE") | CHARGED, 5, 6]]
    census = census_of(taken(rows, 16, page_size=65536), meminfo(16 * 16), [])
    assert {part.kind: part.bytes for part in census.kinds} == {
        "free": 10 * 65536, "page cache": 6 * 65536,
    }  # fmt: skip


# --- errors of samples -------------------------------------------------------------------


def test_the_error_of_a_sample_by_hand() -> None:
    """4 of 16 classes, sums 10, 12, 14, 16: S2 = 20/3; sqrt(20/3 * 12/16 / 4) * 16 = 17.89.
    Student's 3 sigmas with 3 degrees of freedom are about 3 + 7.5/3 + 17.25/9 = 7.42.
    """
    counted = taken(
        [[0, 0, 52], [word("BUDDY"), 0, 348]], 1600, frames_read=400, classes=16, classes_read=4,
        chunk_frames=1, words=[0, word("BUDDY")],
        samples=[[10, 90], [12, 88], [14, 86], [16, 84]],
    )  # fmt: skip
    expected = 133
    assert errors_of(counted) == {"kernel pages": expected, "free": expected}
    assert error_of_squares(counted, 52, 100 + 144 + 196 + 256) == expected
    assert frames_of(counted) == Counter({"free": 1392, "kernel pages": 208})


def test_what_was_met_nowhere_may_still_be_somewhere() -> None:
    """Classes that are all alike have no variance; a few chunks may still be otherwise."""
    counted = taken(
        [[0, 0, 400]], 1600, frames_read=400, classes=16, classes_read=4, chunk_frames=8,
        words=[0], samples=[[100]] * 4,
    )  # fmt: skip
    assert errors_of(counted) == {"kernel pages": 3 * 8 * 12 // 4 + 1}


def sample(tmp_path: Path, frames: int, seed: int, seconds: float = 0) -> PageCensus:
    """A sample of the synthetic machine 3, or all of it."""
    if not (tmp_path / "kpageflags").exists():
        page_files(tmp_path, *machine(frames, 3)).close()
    files = PageFiles(str(tmp_path / "kpageflags"), str(tmp_path / "kpagecgroup"))
    plan = SamplingOrder([Range(0, frames)], 64, 256 if not seconds else 64, seed)
    answer = scan(files, plan, seconds)
    files.close()
    rows: Any = answer.pop("counts")
    answer.pop("frames")
    return taken(rows, frames, **answer)


def test_the_truth_is_within_the_error(tmp_path: Path) -> None:
    """20 samples of 1 in 32 (8 classes of 256): 19 of them at least hold the truth, for every
    kind and every cgroup; and the bars are no wider than a sample of that size needs.
    """
    frames = 1_000_000
    exact = sample(tmp_path, frames, 0, seconds=60)
    assert exact.is_whole
    truth = frames_of(exact)
    paid = Counter[int]()
    for row in exact.counts:
        paid[row.inode] += row.frames
    good_kinds = good_cgroups = 0
    for seed in range(20):
        part = sample(tmp_path, frames, seed)
        assert part.classes_read == 8
        errors, found = errors_of(part), frames_of(part)
        good_kinds += all(abs(found[kind] - n) <= errors[kind] for kind, n in truth.items())
        assert all(errors[kind] < frames // 6 for kind in truth), errors
        mine = Counter[int]()
        for row in part.counts:
            mine[row.inode] += row.frames
        good_cgroups += all(
            abs(mine[inode] * 32 - paid[inode])
            <= error_of_squares(part, mine[inode], part.squares[inode])
            for inode in (1, 11, 12)
        )
    assert good_kinds >= 19
    assert good_cgroups >= 19
