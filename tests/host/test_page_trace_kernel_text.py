"""Texts and tables around the tracer: hist, kprobes, kallsyms, mounts of the memory tree."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.host.page_trace_files import recorded

from seawall.host.page_trace import hist, kprobes
from seawall.host.page_trace.armed import check_layout
from seawall.host.page_trace.instances import _NAME
from seawall.host.page_trace.memory_tree import MemoryTree
from seawall.host.page_trace.options import NVIDIA, TracedDriver
from seawall.host.page_trace.streams import PIECE_PAGES, Raw, in_time
from seawall.host.page_trace.symbols import Symbols, module_symbols
from seawall.host.page_trace.tracing_problem import TracingProblem

HIST = """# event histogram
#
# trigger info: hist:keys=common_pid,order:vals=hitcount:sort=hitcount:size=4096 if x [active]
#

{ common_pid:        127, order:          0 } hitcount:          3
{ common_pid:        127, order:          2 } hitcount:       4096
{ common_pid:       4711, order:          9 } hitcount:          1

Totals:
    Hits: 4100
    Entries: 3
    Dropped: 17
"""
KALLSYMS = b"""0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000100 T alloc_pages_noprof
ffffffff81000200 t packet_set_ring.constprop.0
ffffffff81000200 d a_datum
ffffffff81000300 T packet_setsockopt
ffffffffc0000000 t nv_alloc_pages\t[nvidia]
ffffffffc0000100 t nv_free_system_pages\t[nvidia]
ffffffffc0000200 t nv_alloc_system_pages\t[nvidia]
"""


def test_hist_sums_pages_by_thread() -> None:
    sums = hist.parse(HIST)
    assert sums.pages == {127: 3 + 4 * 4096, 4711: 512}
    assert (sums.dropped, sums.entries, sums.is_nearly_full) == (17, 3, False)
    both = sums.plus(hist.Sums({127: 1, 5: 9}, 3))
    assert both == hist.Sums({127: 3 + 4 * 4096 + 1, 4711: 512, 5: 9}, 20)


def test_of_many_threads_those_that_took_most_are_kept() -> None:
    sums = hist.Sums({tid: tid for tid in range(1, 5001)}, 2, 4000)
    assert sums.is_nearly_full
    assert sums.largest() == hist.Sums({tid: tid for tid in range(905, 5001)}, 2)
    assert hist.Sums({1: 1}, 0).largest() == hist.Sums({1: 1}, 0)


def test_a_ring_buffer_of_another_make_is_named() -> None:
    text = recorded("6.18", "header_page").decode()
    check_layout(text)
    for other in ("", text.replace("offset:16", "offset:12"), text.replace("offset:8;", "")):
        with pytest.raises(TracingProblem, match="64-bit little-endian"):
            check_layout(other)


def raw(cpu: int, time: int, stream: int = 0) -> Raw:
    return Raw(stream, cpu, time.to_bytes(8, "little") + bytes(8))


def test_many_pages_come_in_pieces_in_the_order_of_time() -> None:
    """Two CPUs that wrote at the same time, one after the other as they were read."""
    pages = [raw(cpu, 10 + 2 * number + cpu) for cpu in (0, 1) for number in range(PIECE_PAGES)]
    (first, until), (second, end) = in_time(pages, 1 << 40)
    assert [page.began for page in first + second] == list(range(10, 10 + 2 * PIECE_PAGES))
    assert until == 10 + PIECE_PAGES - 1
    assert end == 1 << 40
    assert [piece[1] for piece in in_time(pages, 12)] == [12, 12]
    assert list(in_time([], 5)) == [([], 5)]
    same = [raw(0, 7, stream=1), raw(0, 7, stream=0)]
    assert next(in_time(same, 9))[0] == same


@given(st.text(max_size=300))
def test_hist_takes_any_text(text: str) -> None:
    hist.parse(text)


def test_names_of_addresses(tmp_path: Path) -> None:
    path = tmp_path / "kallsyms"
    path.write_bytes(KALLSYMS)
    symbols = Symbols(str(path))
    stack = (0xFFFFFFFF81000150, 0xFFFFFFFF81000300, 0xFFFFFFFF81000301, 0xFFFFFFFFC0000050, 0x10)
    # 0x...300 is where packet_set_ring ends: the address after a call that never returns.
    assert symbols.stacks([stack]) == [
        ["packet_set_ring", "packet_setsockopt", "nv_alloc_pages", "0x10"]
    ]
    assert module_symbols("nvidia", str(path)) == {
        "nv_alloc_pages", "nv_free_system_pages", "nv_alloc_system_pages"
    }  # fmt: skip
    assert "packet_setsockopt" in module_symbols("", str(path))


def test_hidden_addresses_are_said(tmp_path: Path) -> None:
    path = tmp_path / "kallsyms"
    path.write_bytes(b"0000000000000000 T _stext\n0000000000000000 T alloc_pages\n")
    symbols = Symbols(str(path))
    assert symbols.stacks([(0xFFFFFFFF81000150,)]) == [[]]
    assert symbols.is_hidden


def test_probes_of_a_driver_by_argument_and_by_register() -> None:
    symbols = {"nv_alloc_pages", "nv_alloc_system_pages", "nv_free_system_pages"}
    choices = kprobes.lines_for(NVIDIA, 0, symbols, "x86_64")
    lines = [[probe.definition("g") for probe in choice] for choice in choices]
    assert lines == [
        ["p:g/alloc0_0 nvidia:nv_alloc_pages value=$arg2:u32",
         "p:g/alloc0_0 nvidia:nv_alloc_pages value=%si:u32"],
        ["p:g/carry0_1 nvidia:nv_alloc_system_pages value=$arg2:u64",
         "p:g/carry0_1 nvidia:nv_alloc_system_pages value=%si:u64"],
        ["p:g/free0_2 nvidia:nv_free_system_pages value=$arg1:u64",
         "p:g/free0_2 nvidia:nv_free_system_pages value=%di:u64"],
        ["r:g/done0 nvidia:nv_alloc_pages value=$retval:u32"],
    ]  # fmt: skip
    arm = kprobes.lines_for(NVIDIA, 0, symbols, "aarch64")
    assert arm[0][1].definition("g") == "p:g/alloc0_0 nvidia:nv_alloc_pages value=%x1:u32"
    assert kprobes.lines_for(NVIDIA, 0, {"other"}, "x86_64") == []
    own = TracedDriver(name="x", module="", allocate="f", count_argument=3)
    (alloc,) = kprobes.lines_for(own, 1, {"f"}, "s390x")[0]
    assert alloc.definition("g") == "p:g/alloc1_0 f value=$arg3:u32"


def test_a_driver_gives_and_takes_back_by_handle() -> None:
    pages = kprobes.KprobedPages()
    for kind, task, value in (
        ("alloc", 1, 100), ("carry", 1, 0xAA), ("done", 1, 0),
        ("alloc", 2, 50), ("carry", 2, 0xBB), ("done", 2, 0),
        ("alloc", 2, 7), ("carry", 2, 0xCC), ("done", 2, 81),  # it failed
        ("free", 3, 0xAA), ("free", 3, 0xAA), ("free", 3, 0xCC),  # by another, twice; unknown
    ):  # fmt: skip
        pages.note(kind, 0, task, value)
    assert dict(pages.taken) == {(0, 1): 100, (0, 2): 50}
    assert dict(pages.freed) == {(0, 1): 100}
    pages.renumber({1: 0, 2: 1})
    assert dict(pages.taken) == {(0, 0): 100, (0, 1): 50}
    pages.note("free", 0, 0, 0xBB)
    assert pages.freed[0, 1] == 50


def test_the_tree_that_counts_memory(tmp_path: Path) -> None:
    (tmp_path / "pod").mkdir()
    here = f"30 1 0:30 / {tmp_path} rw - cgroup cgroup rw,memory\n"
    tree = MemoryTree.of([here, "31 1 0:31 / /nowhere rw - cgroup2 cgroup2 rw\n", "nonsense"])
    lines = ("4:memory:/pod", "0::/other")
    assert tree.inode(lines) == os.stat(tmp_path / "pod").st_ino
    assert tree.is_of_memory(lines, 4)
    assert not tree.is_of_memory(lines, 0)
    assert tree.inode(("4:memory:/gone",)) is None
    v2 = MemoryTree.of([f"30 1 0:30 /outer {tmp_path} rw - cgroup2 none rw\n"])
    assert v2.inode(("1:name=systemd:/", "0::/outer/pod")) == os.stat(tmp_path / "pod").st_ino
    assert v2.inode(("0::/outermost",)) is None
    assert v2.is_of_memory(("0::/outer",), 0)
    assert MemoryTree(None, None).inode(lines) is None


def test_only_names_of_ours_are_swept() -> None:
    for ours in ("seawall-1-2-pages", "seawall-123-4567890-frees-1"):
        assert _NAME.match(ours)
    for other in ("seawall", "seawall-1-2", "seawall-1-2-pages/..", "bpftrace-1", "xseawall-1-2-a"):
        assert not _NAME.match(other)
    assert kprobes.group_name("seawall-12-3456-pages") == "seawall_12_3456"
