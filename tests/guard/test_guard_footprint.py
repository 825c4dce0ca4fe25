"""What the guard's process may hold, and that it keeps nothing and starts nothing once ready."""

import ctypes
import json
import mmap
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import guard_growth
from bench.pods import PYTHON

from seawall import own_process
from seawall.guard.settings import Settings

SOURCES = str(Path(__file__).resolve().parents[2] / "src")
MARK_KIB = 14_000_000 >> 10
OWN_MARK_KIB = 8_200
"""Of it some 400 are the reserve; by the layout of the heap it is up to 300 more or less."""
FORBIDDEN = {
    "argparse", "ast", "asyncio", "collections", "contextlib", "copy", "dataclasses", "enum",
    "functools", "importlib", "inspect", "logging", "pathlib", "re._compiler", "selectors",
    "shutil", "subprocess", "tempfile", "threading", "tokenize", "tomllib", "traceback",
}  # fmt: skip
FORBIDDEN_OURS = ("accounts", "cli", "findings", "host", "readings", "views", "watcher")
WARM, TICKS = 800, 800


def in_lean_process(program: str, python: str = sys.executable) -> Any:
    """What ``program`` left in ``found``, in a process as the guard's is."""
    text = (
        "import sys\n"
        f"sys.path.append({SOURCES!r})\n"
        "from seawall.guard import lean_library\n"
        "lean_library.install()\n"
        f"{program}\n"
        "import json\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run(
        [python, "-I", "-S", "-c", text], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def test_the_guards_process_holds_no_module_that_it_could_do_without() -> None:
    found = set(
        in_lean_process(
            "import seawall.guard.guard_main, seawall.guard.assembly\nfound = sorted(sys.modules)"
        )
    )
    assert {"seawall.guard.loop", "seawall.guard.sense.sense", "ctypes"} <= found
    assert found & FORBIDDEN == set()
    ours = {name.split(".")[1] for name in found if name.startswith("seawall.")}
    assert ours & set(FORBIDDEN_OURS) == set()


def test_no_tuple_is_of_the_length_that_cpython_never_gives_back() -> None:
    """Objects/tupleobject.c of 3.11: one of 20 goes onto a free list, and none is taken off it."""
    lengths = in_lean_process(
        "import seawall.guard.guard_main, seawall.guard.assembly\n"
        "found = {t.__module__ + '.' + t.__name__: len(t._fields)\n"
        "    for m in list(sys.modules.values()) for t in vars(m).values()\n"
        "    if isinstance(t, type) and hasattr(t, '_fields')}\n"
    )
    assert lengths["seawall.guard.tick_facts.Node"] > 15
    assert 20 not in lengths.values()


def test_its_named_tuples_are_what_they_are_elsewhere() -> None:
    found = in_lean_process(
        "from seawall.guard.settings import Settings\n"
        "from seawall.guard.tick_facts import NOTHING_OUTSIDE, Outside\n"
        "changed = Settings(mode='enforce')._replace(scope=('/a',), protect=('x',))\n"
        "found = dict(settings=changed._asdict(), fields=Settings._fields,\n"
        "    defaults=Settings._field_defaults, words=repr(NOTHING_OUTSIDE),\n"
        "    same=[Outside(1, 2, 3, 'x') == (1, 2, 3, 'x'), NOTHING_OUTSIDE.sources == ''])\n"
        "try:\n"
        "    Outside(1, 2)\n"
        "except TypeError:\n"
        "    found['refused'] = True\n"
    )
    wanted = Settings(mode="enforce", scope=("/a",), protect=("x",))
    assert found["settings"] == json.loads(json.dumps(wanted._asdict()))
    assert tuple(found["fields"]) == Settings._fields
    assert found["defaults"] == json.loads(json.dumps(Settings._field_defaults))
    assert found["words"] == ("Outside(certain_bytes=0, likely_bytes=0, most_bytes=0, sources='')")
    assert found["same"] == [True, True]
    assert found["refused"]


PATTERNS = (
    (r"(?P<runtime>runc|crun)-(?P<id>[A-Za-z0-9][\w+.-]*)\.scope\Z", 0, "crun-a.b.scope"),
    (r"user@\d+\.service\Z", 0, "user@1000.service"),
    (r"(.*?)([\"\\\x00-\x1f])", re.VERBOSE | re.MULTILINE | re.DOTALL, 'plain"'),
    (r"[^a]\Z", re.IGNORECASE, "É"),
)


@pytest.mark.parametrize("lost", [False, True])
def test_its_patterns_are_those_of_re(lost: bool) -> None:
    """``lost``: the child that compiles them has ended too early."""
    found = in_lean_process(
        "import os, re\n"
        f"patterns = {[(p, int(f), text) for p, f, text in PATTERNS]!r}\n"
        "if patterns:\n"
        "    re.compile('x')\n"
        f"if {lost}:\n"
        "    os.kill(re._compiler._pid, 9)\n"
        "    os.waitid(os.P_PID, re._compiler._pid, os.WEXITED | os.WNOWAIT)\n"
        "made = [(re.compile(p, f).match(text), f) for p, f, text in patterns]\n"
        "found = [[m.groups(), m.groupdict(), m.re.flags] for m, f in made]\n"
        "sys.modules['re'].end() if hasattr(sys.modules['re'], 'end') else None\n"
    )
    for (pattern, flags, text), told in zip(PATTERNS, found, strict=True):
        match = re.compile(pattern, flags).match(text)
        assert match is not None
        assert told == [list(match.groups()), match.groupdict(), match.re.flags]


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


def test_its_memory(run: dict[str, Any]) -> None:
    if PYTHON != "/usr/bin/python3.11":
        pytest.skip("the mark is of Debian's interpreter: apt-get install python3.11")
    assert run["before"][1] <= OWN_MARK_KIB
    assert run["before"][0] <= MARK_KIB


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_the_c_library_had_once_it_keeps(is_kept: bool) -> None:
    found = in_lean_process(
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
    found = in_lean_process(
        "from seawall import own_process\n"
        "own_process.no_huge_pages()\n"
        "with open('/proc/self/status') as file:\n"
        "    found = [line for line in file if line.startswith('THP_enabled')]\n"
    )
    assert found in (["THP_enabled:\t0\n"], [])  # the line came with Linux 5.0


def test_pages_of_files_that_only_the_start_needed_are_let_go() -> None:
    found = in_lean_process(
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
