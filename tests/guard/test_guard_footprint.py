"""What the guard's process may hold, and that it keeps nothing and starts nothing once ready."""

import ctypes
import json
import mmap
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import guard_growth

from seawall import own_process

SOURCES = str(Path(__file__).resolve().parents[2] / "src")
WARM, TICKS = 800, 800


def in_guards_process(program: str, python: str = sys.executable) -> Any:
    """What ``program`` left in ``found``, in a process as the guard's is."""
    text = (
        "import sys\n"
        f"sys.path.append({SOURCES!r})\n"
        f"{program}\n"
        "import json\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run(
        [python, "-I", "-S", "-c", text], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def test_no_tuple_is_of_the_length_that_cpython_never_gives_back() -> None:
    """Objects/tupleobject.c of 3.11: one of 20 goes onto a free list, and none is taken off it."""
    lengths = in_guards_process(
        "import seawall.guard.guard_main, seawall.guard.assembly\n"
        "found = {t.__module__ + '.' + t.__name__: len(t._fields)\n"
        "    for m in list(sys.modules.values()) for t in vars(m).values()\n"
        "    if isinstance(t, type) and hasattr(t, '_fields')}\n"
    )
    assert lengths["seawall.guard.tick_facts.Node"] > 15
    assert 20 not in lengths.values()


@pytest.fixture(scope="module")
def run() -> dict[str, Any]:
    """Some hundred ticks of the whole loop: pods come and go, two shortages are decided."""
    return guard_growth.measure(TICKS, WARM)


def test_it_keeps_nothing(run: dict[str, Any]) -> None:
    assert run["decisions"] >= TICKS // 200 - 1
    assert run["cycles"] == 0
    assert run["watcher_dropped"] == run["aide_dropped"] == 0
    # CPython's free lists fill for a while; whoever kept one object a tick had TICKS more.
    assert run["steps"][-1][2] - run["before"][2] <= TICKS // 2
    assert run["steps"][-1][1] - run["before"][1] <= 8
    assert run["groups"] <= guard_growth.PODS + 2 * guard_growth.CHURN


def test_once_ready_it_neither_forks_nor_imports_nor_makes_files(run: dict[str, Any]) -> None:
    assert run["is_audited"]  # a file that was made on purpose was noticed
    assert run["forbidden"] == []


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_the_c_library_had_once_it_keeps(is_kept: bool) -> None:
    found = in_guards_process(
        "from seawall import own_process\n"
        "from seawall.guard import guard_memory\n"
        "own_process.trim()\n"
        f"if {is_kept}:\n"
        "    own_process.keep_heap()\n"
        "size = guard_memory.Footprint().resident_bytes\n"
        "before, piece = size(), b' '\n"
        "taken = [piece * 2000 for _ in range(1 << 10)]\n"
        "found = [size() - before]\n"
        "del taken\n"
        "found.append(size() - before)\n"
    )
    taken, left = found
    assert taken > 3 << 19
    assert left > taken - (64 << 10) if is_kept else left < taken >> 1


def test_no_huge_page_is_made_of_its_memory() -> None:
    found = in_guards_process(
        "from seawall import own_process\n"
        "own_process.no_huge_pages()\n"
        "with open('/proc/self/status') as file:\n"
        "    found = [line for line in file if line.startswith('THP_enabled')]\n"
    )
    assert found in (["THP_enabled:\t0\n"], [])  # the line came with Linux 5.0


def test_pages_of_files_that_only_the_start_needed_are_let_go() -> None:
    found = in_guards_process(
        "import ctypes, json, os, gc\n"
        "import seawall.guard.assembly\n"
        "from seawall import own_process\n"
        "def now(name):\n"
        "    with open('/proc/self/smaps_rollup') as file:\n"
        "        return next(int(l.split()[1]) for l in file if l.startswith(name))\n"
        "gc.collect()\n"
        "before, ours = now('Rss:'), now('Anonymous:')\n"
        "gone = own_process.let_go_of_files()\n"
        "found = dict(gone=gone, saved=before - now('Rss:'), ours=now('Anonymous:') - ours,\n"
        "    still=[ctypes.CDLL(None).getpid() == os.getpid(), json.loads('[1.5]') == [1.5]])\n"
    )
    assert found["gone"] > 4 << 20
    assert found["saved"] > 0
    assert abs(found["ours"]) <= 64  # relocated tables stay: without them the next call is the end
    assert found["still"] == [True, True]


@pytest.mark.parametrize(
    ("anonymous", "swap", "is_left"), [(0, 0, False), (4, 0, True), (0, 4, True)]
)
def test_what_was_relocated_stays_also_in_swap(
    tmp_path: Path, anonymous: int, swap: int, is_left: bool
) -> None:
    """The file has the pointers as they were before: whoever follows one is at its end."""
    area = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    text = f"{start:x}-{start + len(area):x} r--p 00000000 08:01 7 /lib/x.so\nRss: 64 kB\n"
    (tmp_path / "smaps").write_text(
        f"{text}Anonymous: {anonymous} kB\nSwap: {swap} kB\nSwapPss: 0 kB\n"
    )
    area[:1] = b"a"
    assert own_process.let_go_of_files(str(tmp_path / "smaps")) == (0 if is_left else len(area))
    assert area[:1] == (b"a" if is_left else b"\0")
