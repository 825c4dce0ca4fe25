"""Counting page frames out of files that hold what kernels of several versions write."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.verbs import ENVIRONMENT
from tests.host.page_files import page_files, word

from seawall.host.page_census.count import CHARGED, PageFiles, count
from seawall.host.page_census.page_census_probe import page_census, ram_of, scan, zones_of
from seawall.host.page_census.sampling_order import Range, SamplingOrder

FREE, NONE = word("BUDDY"), 0
POD = 4711


def counted(files: PageFiles, *chunks: Range) -> dict[tuple[int, int], int]:
    try:
        return dict(count(files, iter(chunks)))
    finally:
        files.close()


def test_each_frame_is_counted_with_its_cgroup(tmp_path: Path) -> None:
    anon = word("LRU UPTODATE MMAP ANON SWAPBACKED ACTIVE REFERENCED")
    words = [FREE] * 8 + [anon, anon, NONE, word("SLAB OWNER_2")]
    inodes = [0] * 8 + [POD, 12, 0, 0]
    kept = word("LRU UPTODATE MMAP ANON SWAPBACKED")
    assert counted(page_files(tmp_path, words, inodes), Range(0, 8), Range(8, 12)) == {
        (FREE, 0): 8,
        (kept | CHARGED, POD): 1,
        (kept | CHARGED, 12): 1,
        (NONE, 0): 1,
        (word("SLAB"), 0): 1,
    }


def test_tails_of_6_1_take_over_what_only_their_head_tells(tmp_path: Path) -> None:
    """Before 6.10 the tail of a huge page has neither LRU nor SWAPBACKED, nor a cgroup."""
    head = word("LRU UPTODATE SWAPBACKED DIRTY THP HEAD")
    tail = word("THP TAIL")
    files = page_files(tmp_path, [head, tail, tail, tail, FREE], [POD, 0, 0, 0, 0])
    kept = word("LRU UPTODATE SWAPBACKED DIRTY THP") | CHARGED
    assert counted(files, Range(0, 5)) == {(kept, POD): 4, (FREE, 0): 1}


def test_tails_of_a_driver_keep_what_is_their_own(tmp_path: Path) -> None:
    """One page of four is mapped; the head has no flag but that it is one."""
    words = [word("HEAD"), word("TAIL MMAP"), word("TAIL"), word("TAIL"), NONE]
    found = counted(page_files(tmp_path, words, [0] * 5), Range(0, 5))
    assert found == {(NONE, 0): 4, (word("MMAP"), 0): 1}


@pytest.mark.parametrize("begin", [5, 6, 7])
def test_a_chunk_may_begin_inside_a_compound_page(tmp_path: Path, begin: int) -> None:
    head, tail = word("LRU UPTODATE THP HEAD"), word("THP TAIL")
    words = [FREE] * 4 + [head, tail, tail, tail]
    files = page_files(tmp_path, words, [0, 0, 0, 0, POD, 0, 0, 0])
    kept = word("LRU UPTODATE THP") | CHARGED
    assert counted(files, Range(begin, 8)) == {(kept, POD): 8 - begin}


def test_a_tail_whose_head_has_gone_is_a_plain_page(tmp_path: Path) -> None:
    files = page_files(tmp_path, [FREE, FREE, word("TAIL"), word("TAIL")], [0] * 4)
    assert counted(files, Range(2, 4)) == {(NONE, 0): 2}


def test_slab_of_new_kernels_needs_no_joining(tmp_path: Path) -> None:
    """Fields of struct page mean other things in slabs: ANON and KSM are no mapping there."""
    words = [word("SLAB HEAD ANON"), word("SLAB TAIL ANON KSM"), word("SLAB")]
    found = counted(page_files(tmp_path, words, [0, 0, 0]), Range(0, 3))
    assert found == {
        (word("SLAB ANON"), 0): 1, (word("SLAB ANON KSM"), 0): 1, (word("SLAB"), 0): 1,
    }  # fmt: skip


def test_frames_beyond_the_end_of_the_file_are_none(tmp_path: Path) -> None:
    files = page_files(tmp_path, [FREE, NONE], [0, POD])
    assert counted(files, Range(0, 6)) == {
        (FREE, 0): 1, (NONE | CHARGED, POD): 1, (word("NOPAGE"), 0): 4,
    }  # fmt: skip


def test_without_memcg_nobody_pays(tmp_path: Path) -> None:
    files = page_files(tmp_path, [word("LRU UPTODATE HEAD"), word("TAIL"), FREE], None)
    assert not files.has_cgroups
    assert counted(files, Range(0, 3)) == {(word("LRU UPTODATE"), 0): 2, (FREE, 0): 1}


def test_unreadable_flags_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PageFiles(str(tmp_path / "kpageflags"), str(tmp_path / "kpagecgroup"))


# --- the scan ----------------------------------------------------------------------------


def machine(frames: int, seed: int) -> tuple[list[int], list[int]]:
    """Runs of equal frames, as memory has them: from one page to a few thousand."""
    source = random.Random(seed)
    anon, file = word("LRU UPTODATE MMAP ANON SWAPBACKED"), word("LRU UPTODATE")
    kinds = [(FREE, 0)] * 5 + [(anon, 11), (anon, 12), (file, 11), (file, 1)] + [
        (word("SLAB"), 0), (NONE, 0), (NONE, 12),
    ]  # fmt: skip
    words: list[int] = []
    inodes: list[int] = []
    while len(words) < frames:
        length = source.choice((1, 3, 16, 64, 512, 4096))
        kind, inode = source.choice(kinds)
        words += [kind] * length
        inodes += [inode] * length
    return words[:frames], inodes[:frames]


def test_all_classes_are_exact(tmp_path: Path) -> None:
    words, inodes = machine(100_000, 1)
    files = page_files(tmp_path, words, inodes)
    answer: dict[str, Any] = scan(files, SamplingOrder([Range(0, 100_000)], 64, 64, 5), seconds=60)
    files.close()
    assert answer["classes_read"] == answer["classes"] == 64
    assert answer["frames_read"] == answer["frames"] == 100_000
    assert answer["samples"] == answer["squares"] == []
    expected = Counter((w | (CHARGED if i else 0), i) for w, i in zip(words, inodes, strict=True))
    assert {(w, i): n for w, i, n in answer["counts"]} == expected


def test_time_over_leaves_a_sample_that_says_so(tmp_path: Path) -> None:
    words, inodes = machine(200_000, 2)
    files = page_files(tmp_path, words, inodes)
    answer: dict[str, Any] = scan(files, SamplingOrder([Range(0, 200_000)], 64, 256, 5), seconds=0)
    files.close()
    assert answer["classes_read"] == 8
    assert len(answer["samples"]) == 8
    assert (
        sum(map(sum, answer["samples"]))
        == answer["frames_read"]
        == sum(n for _, _, n in answer["counts"])
    )
    squares = dict(answer["squares"])
    assert set(squares) == {1, 11, 12}
    paid = sum(n for _, inode, n in answer["counts"] if inode == 11)
    assert paid * paid / 8 <= squares[11] <= paid * paid


def test_the_memory_of_a_scan_is_bounded(tmp_path: Path) -> None:
    """64 GiB of frames that are all alike in a sparse file; what is held must not follow."""
    frames = (64 << 30) // 4096
    for name in ("kpageflags", "kpagecgroup"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(8 * frames)
    script = f"""
import resource
from seawall.host.page_census.page_census_probe import scan
from seawall.host.page_census.count import PageFiles
from seawall.host.page_census.sampling_order import Range, plan_for
files = PageFiles({str(tmp_path / "kpageflags")!r}, {str(tmp_path / "kpagecgroup")!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
answer = scan(files, plan_for([Range(0, {frames})], 1.0, 1), 1.0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, answer["frames_read"])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, check=True
    )
    grown_kib, read = map(int, done.stdout.split())
    assert read > 100_000
    assert grown_kib < 30 << 10


def test_a_scan_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    """The verb was killed: its child must not go on for as long as it was given."""
    frames = (8 << 40) // 4096
    for name in ("kpageflags", "kpagecgroup"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(8 * frames)
    script = f"""
import os, time
from seawall.host.page_census.page_census_probe import scan
from seawall.host.page_census.count import PageFiles
from seawall.host.page_census.sampling_order import Range, plan_for
if os.fork():
    time.sleep(3)
    os._exit(0)
files = PageFiles({str(tmp_path / "kpageflags")!r}, {str(tmp_path / "kpagecgroup")!r})
answer = scan(files, plan_for([Range(0, {frames})], 5.0, 1), 100.0)
print(answer["classes_read"] < answer["classes"])
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=ENVIRONMENT, capture_output=True, check=True, timeout=80,
    )  # fmt: skip
    assert done.stdout == b"True\n"


# --- where memory is ---------------------------------------------------------------------

IOMEM = """\
00000000-00000fff : Reserved
00001000-0009fbff : System RAM
00100000-bfffffff : System RAM
  01000000-02208d87 : Kernel code
c0000000-febfffff : PCI Bus 0000:00
100000000-13fffffff : Persistent Memory
  100000000-13fffffff : dax0.0
    100000000-13fffffff : System RAM (kmem)
140000000-17fffffff : System RAM
"""


def test_system_ram_is_whole_frames_of_any_depth() -> None:
    assert ram_of(IOMEM, 4096) == [
        Range(0x1, 0x9F), Range(0x100, 0xC0000), Range(0x100000, 0x180000),
    ]  # fmt: skip
    assert ram_of(IOMEM, 65536)[0] == Range(0x1, 0x9)


def test_hidden_addresses_are_no_ranges() -> None:
    assert ram_of("00000000-00000000 : System RAM\n" * 3, 4096) == []


def test_zones_stand_in_where_addresses_are_hidden() -> None:
    zones = """\
Node 0, zone      DMA
  pages free     3840
        spanned  4095
        present  3998
        managed  3840
  start_pfn:           1
Node 0, zone    DMA32
        spanned  1044480
        present  782336
        managed  772919
  start_pfn:           4096
Node 0, zone  Movable
        spanned  0
        present  0
        managed  0
  start_pfn:           0
Node 1, zone   Normal
        spanned  100
        present  100
  start_pfn:           2097152
"""
    assert zones_of(zones) == [Range(1, 1_048_576), Range(2_097_152, 2_097_252)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read page flags")
def test_an_ordinary_user_is_refused() -> None:
    with pytest.raises(PermissionError):
        page_census("")
