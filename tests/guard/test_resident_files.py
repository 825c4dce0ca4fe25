"""What the guard executes is kept in memory by others: its first touch of a page reads no disk."""

import ctypes
import mmap
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.guard.test_aide import answer

from seawall import resident_files
from seawall.guard.aide import Aide
from seawall.guard.aide_process import start as start_aide

SOURCES = str(Path(__file__).resolve().parents[2] / "src")
PAGE = os.sysconf("SC_PAGE_SIZE")
PAGES = 512
Program = subprocess.Popen[str]

MAPS = b"""\
00400000-0041f000 r--p 00000000 fe:00 26 /usr/bin/python3.11
0041f000-006d2000 r-xp 0001f000 fe:00 26 /usr/bin/python3.11
00946000-00a85000 rw-p 00545000 fe:00 26 /usr/bin/python3.11
00a85000-00aca000 rw-p 00000000 00:00 0
2715b000-272f1000 rw-p 00000000 00:00 0                                  [heap]
7fe09536a000-7fe09537a000 rw-s 00000000 00:18 77 /run/seawall/guard.undo
7fe09575f000-7fe095785000 r-xp 00002000 fe:00 99 /usr/lib/a b.so (deleted)
7fe095a70000-7fe095a72000 r-xp 00000000 00:01 9 /memfd:libffi (deleted)
7fe095a7d000-7fe095a7f000 r-xp 00000000 00:00 0                          [vdso]
"""

# Maps the file as a library is, touches it when it is told to, and says what that cost.
TOUCHES = """
import mmap, os, resource, sys
with open(sys.argv[1], "rb") as file:
    there = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)
print(os.getpid(), flush=True)
sys.stdin.readline()
before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
sum(there[at] for at in range(0, len(there), mmap.PAGESIZE))
print(resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before, flush=True)
"""
HOLDS = """
import sys
sys.path.append(sys.argv[2])
from seawall import resident_files
print(resident_files.hold(sys.argv[1]), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A file of our own that nobody else has touched, and whose pages can be dropped."""
    path = tmp_path / "library.so"
    path.write_bytes(os.urandom(PAGES * PAGE))
    drop(path)
    if resident(path):
        pytest.skip(f"{tmp_path} keeps its files in memory: no cold cache can be made here")
    return path


@pytest.fixture
def toucher(library: Path) -> Iterator[Program]:
    with program(TOUCHES, str(library)) as process:
        yield process


def program(text: str, *words: str) -> Program:
    return subprocess.Popen(
        [sys.executable, "-c", text, *words], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip


def line_of(process: Program) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: Program) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def drop(path: Path) -> None:
    """Out of the page cache, as far as nobody holds it."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident(path: Path) -> int:
    """How many of its pages are in memory: mincore(2)."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    with path.open("rb") as file:
        whole = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)
    place = ctypes.addressof(ctypes.c_char.from_buffer(whole))
    pages = (ctypes.c_ubyte * (len(whole) // PAGE))()
    assert library.mincore(place, len(whole), pages) == 0, os.strerror(ctypes.get_errno())
    return sum(page & 1 for page in pages)


def test_the_first_touch_of_what_nobody_holds_reads_the_disk(
    library: Path, toucher: Program
) -> None:
    line_of(toucher)
    tell(toucher)
    assert int(line_of(toucher)) > 0


def test_the_first_touch_of_what_is_held_does_not(library: Path, toucher: Program) -> None:
    pid = line_of(toucher)
    assert resident(library) == 0
    with program(HOLDS, pid, SOURCES) as holder:
        if str(library) in line_of(holder):
            pytest.skip("no memory may be locked here: run it as root")
        drop(library)
        assert resident(library) == PAGES
        rows = Path(f"/proc/{holder.pid}/smaps").read_text().partition(str(library))[2]
        flags = rows.partition("VmFlags:")[2].partition("\n")[0].split()
        assert "lo" in flags  # locked: pressure does not take them either
        tell(toucher)
        assert int(line_of(toucher)) == 0
        tell(holder)


def test_what_is_executed_is_held_with_its_data_and_nothing_else() -> None:
    assert resident_files.executed(MAPS) == {
        "/usr/bin/python3.11": (0, 0x545000 + 0xA85000 - 0x946000),
        "/usr/lib/a b.so (deleted)": (0x2000, 0x2000 + 0x26000),
    }


def test_it_is_bounded_and_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_files, "MOST_BYTES", 0)
    problems = resident_files.hold().split("; ")
    assert len(problems) == len(resident_files.executed(Path("/proc/self/maps").read_bytes()))
    assert all(problem.endswith(": over 0 MiB together") for problem in problems)


def test_whatever_stands_in_the_way_is_told(tmp_path: Path) -> None:
    assert resident_files.hold(2**22 + 1).startswith(f"/proc/{2**22 + 1}/maps: ")
    replaced = resident_files.hold_file(f"{tmp_path}/library.so (deleted)", 0, PAGE)
    assert replaced == "it was replaced since it was started"
    gone = resident_files.hold_file(f"{tmp_path}/library.so", 0, PAGE)
    assert gone == "No such file or directory"


def test_where_memory_may_not_be_locked_it_says_so(library: Path) -> None:
    pid = os.fork()
    if not pid:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
            library.parent.chmod(0o755)
            os.chdir(library.parent)  # whose own parents others may not enter
            if os.geteuid() == 0:
                os.setuid(65534)
            told = resident_files.hold_file(library.name, 0, PAGE)
            status = 0 if told == "Operation not permitted" else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_aide_holds_for_the_guard(tmp_path: Path) -> None:
    """It answers what it could not, and the mappings are the guard's own files."""
    aide: Aide = start_aide()
    try:
        found = answer(aide, {"do": "hold"})
        assert set(found) == {"did", "decision", "problem"}
        rows = Path(f"/proc/{aide.pid}/maps").read_text().splitlines()
        shared = {row.split(None, 5)[5] for row in rows if " r--s " in row}
        wanted = resident_files.executed(Path("/proc/self/maps").read_bytes())
        told = {path for path in wanted if path in found["problem"]}
        assert shared | told >= set(wanted)
        assert shared or os.geteuid() != 0
    finally:
        aide.close()
        with suppress(ChildProcessError):  # it was quick, and is reaped
            os.waitpid(aide.pid, 0)
