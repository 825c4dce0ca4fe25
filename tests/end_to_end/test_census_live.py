"""``seawall memory --census`` on this very machine, against the ledger and planted memory."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end.cgroups import Cgroup, cgroup, missing
from tests.end_to_end.test_capabilities import interpreter, launcher
from tests.end_to_end.verbs import SOURCES, run, seawall
from tests.views.test_memory_census_views import SCHEMA

from seawall.accounts.census.frame_census import errors_of, frames_of
from seawall.host.live import LiveHost
from seawall.readings.page_census import PageCensus, take

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

MIB = 1 << 20
PLANTED = 48 * MIB
ATTEMPTS = 3
PLANTER = Path(__file__).with_name("planters.py")
LIMIT = 800 * MIB

MAPPED_RING = """
import mmap, signal, socket, struct
size, block = 48 << 20, 16384
ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
ring.setsockopt(263, 5, struct.pack("IIII", block, size // block, 2048, size // 2048))
seen = mmap.mmap(ring.fileno(), size)
print("ready", flush=True)
signal.alarm(120)
signal.pause()
"""


@pytest.fixture(scope="module", autouse=True)
def as_root() -> None:
    if os.geteuid():
        pytest.skip("/proc/kpageflags is root's: sudo make test-system")
    if not os.path.exists("/proc/kpageflags"):
        pytest.skip("no /proc/kpageflags: a kernel with CONFIG_PROC_PAGE_MONITOR")
    if why := missing():
        pytest.skip(why)


def census(*words: str) -> dict[str, Any]:
    page = seawall("memory", "--census", "--json", *words, most_seconds=120).answered().document
    jsonschema.validate(page, SCHEMA)
    assert sum(page["pages"].values()) == page["total_bytes"]
    return page


@contextlib.contextmanager
def planted(kind: str, group: Cgroup) -> Iterator[None]:
    """PLANTED bytes of one kind, held by a process of ``group``."""
    folder = f"{'/dev/shm' if kind == 'tmpfs' else '/var/tmp'}/seawall-census-{os.getpid()}-{kind}"
    ring = [sys.executable, "-c", MAPPED_RING]
    planter = [sys.executable, str(PLANTER), kind, str(PLANTED), folder.replace(" ", "-")]
    command = ring if kind == "mapped ring" else planter
    entered = ["sh", "-c", f'echo $$ > {group.entry}; exec "$@"', "sh", *command]
    with subprocess.Popen(entered, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            said = process.stdout.readline().strip()
            assert said == "ready" or said.startswith("cannot"), said
            if said != "ready":
                pytest.skip(f"{kind}: {said}")
            yield
        finally:
            process.terminate()


# Kind of the planter -> kind of the census that its own cgroup pays for.
CHARGED = {
    "anonymous": "anonymous",
    "tmpfs": "tmpfs and shared",
    "page cache": "page cache",
    "pipes": "charged kernel pages",
}


def test_planted_memory_is_found_with_whoever_pays() -> None:
    """All kinds at once in one cgroup, and a ring that nobody pays for beside them."""
    with cgroup(f"seawall-census-{os.getpid()}", LIMIT) as group, contextlib.ExitStack() as stack:
        for kind in (*CHARGED, "mapped ring"):
            stack.enter_context(planted(kind, group))
        page = census("--exact", "--timeout=60")
        row = next(r for r in page["by_cgroup"] if r["cgroup"] == f"/{group.path.name}")
        assert row["state"] == "live"
        assert row["inode"] == group.path.stat().st_ino
        assert abs(row["bytes"] - group.usage_bytes()) < 24 * MIB  # slab, and charged ahead
        for kind in CHARGED.values():
            more = 60 * MIB if kind == "anonymous" else 8 * MIB  # five interpreters
            # The kernel moves pages while frame after frame is read: some are missed.
            assert 0.9 * PLANTED <= row["kinds"][kind] <= PLANTED + more, (kind, row)
        assert PLANTED <= page["pages"]["mapped kernel pages"] < PLANTED + 64 * MIB
        assert "mapped kernel pages" not in row["kinds"], "nobody pays for a packet ring"
        assert page["sampled"] is None
        assert page["error_bytes"] == 0
        assert page["frames_per_second"] > 10_000


def test_it_agrees_with_the_ledger() -> None:
    """Within 0.5 % of MemTotal, with and without memory that no counter has."""
    for kind in (None, "packet rings", "hugetlb"):
        with cgroup(f"seawall-census-{os.getpid()}", LIMIT) as group, contextlib.ExitStack() as at:
            if kind:
                at.enter_context(planted(kind, group))
            tries = []
            for _ in range(ATTEMPTS):
                page = census("--exact", "--timeout=60")
                tries.append(page["agreement"])
                if page["agreement"]["agrees"] and page["sampled"] is None:
                    break
            else:
                pytest.fail(f"{kind}: {tries}")
            if kind == "hugetlb":
                assert page["pages"]["hugetlb"] >= PLANTED
            lines = {line["name"] for line in page["agreement"]["lines"]}
            assert {"free", "anonymous and swap cache", "page cache", "slab"} <= lines


def test_memory_of_removed_cgroups_is_found_above_them() -> None:
    """A file on tmpfs outlives its cgroup; the kernel names the nearest one that is left."""
    name = f"seawall-census-{os.getpid()}"
    path = Path(f"/dev/shm/{name}")
    try:
        with cgroup(name, LIMIT) as above:
            for child in ("first", "second"):
                (above.path / child).mkdir()
            script = f"echo $$ > {above.path}/first/cgroup.procs; exec head -c {PLANTED} /dev/zero"
            with open(path, "wb") as out:
                subprocess.run(["sh", "-c", script], stdout=out, check=True)
            (above.path / "first").rmdir()
            rows = {row["cgroup"]: row for row in census("--exact")["by_cgroup"]}
            (above.path / "second").rmdir()
            row = rows[f"/{name}"]
            assert row["state"] == "removed below"
            assert row["kinds"]["tmpfs and shared"] >= PLANTED * 0.9
            assert f"/{name}/first" not in rows
            path.unlink()
    finally:
        path.unlink(missing_ok=True)


def test_samples_hold_the_truth() -> None:
    """20 samples of this machine against full counts before and after them."""
    host = LiveHost("/")
    try:
        tries = []
        for _ in range(ATTEMPTS):
            before, samples, after = whole(host), [part(host, n) for n in range(20)], whole(host)
            kinds = {*before, *after}
            # What others do meanwhile is no error of a sample.
            moved = {k: abs(after[k] - before[k]) + 4096 for k in kinds}
            good = 0
            for one in samples:
                found, errors = frames_of(one), errors_of(one)
                chunk = 3 * one.chunk_frames * one.classes // one.classes_read
                good += all(
                    abs(found[k] - (before[k] + after[k]) / 2) <= errors.get(k, chunk) + moved[k]
                    for k in kinds
                )
            tries.append(good)
            if good >= 19:
                return
        pytest.fail(f"of 20 samples so many held the truth: {tries}")
    finally:
        host.close()


def whole(host: LiveHost) -> Any:
    counted = take(host, seconds=60)
    assert isinstance(counted, PageCensus), counted
    assert counted.is_whole
    return frames_of(counted)


def part(host: LiveHost, seed: int) -> PageCensus:
    counted = take(host, seconds=0.05, seed=seed)
    assert isinstance(counted, PageCensus), counted
    assert counted.frames_read < counted.frames
    return counted


def test_exact_is_about_the_census() -> None:
    ran = seawall("memory", "--exact")
    assert ran.status == 2
    assert ran.err == b"seawall: --exact is about --census\n"


def test_a_short_timeout_is_a_sample_that_says_its_error() -> None:
    began = time.monotonic()
    page = seawall("memory", "--census", "--exact", "--json", "--timeout=1").answered().document
    assert time.monotonic() - began < 30
    if page["sampled"] is None:
        pytest.skip("this machine is counted whole in half a second")
    assert 0 < page["sampled"] < 1
    assert page["error_bytes"] > 0
    assert page["error_bytes"] == max(page["errors"].values())
    assert any("--timeout" in row["provide"] for row in page["could_not_see"])


# --- with less rights, and elsewhere -----------------------------------------------------


@pytest.fixture
def sources() -> Iterator[Path]:
    """Where an ordinary user can read them."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing: apt-get install util-linux")
    with tempfile.TemporaryDirectory(prefix="seawall-census-") as folder:
        os.chmod(folder, 0o755)
        home = Path(folder) / "src"
        shutil.copytree(SOURCES, home, ignore=shutil.ignore_patterns("__pycache__"))
        yield home


def as_user(home: Path, *capabilities: str) -> dict[str, Any]:
    command = [*launcher(capabilities), "env", f"PYTHONPATH={home}", interpreter(), "-m", "seawall",
               "memory", "--census", "--json"]  # fmt: skip
    return run(command).answered().document


def test_an_ordinary_user_is_told_what_is_missing(sources: Path) -> None:
    page = as_user(sources)
    assert {"pages", "by_cgroup", "sampled", "error_bytes", "agreement"} <= set(page["unread"])
    assert "pages" not in page
    assert page["total_bytes"] > 0
    row = next(row for row in page["could_not_see"] if row["what"] == "page frames")
    assert "/proc/kpageflags" in row["why"]
    assert "root" in row["provide"]


def test_without_addresses_the_zones_tell_where_memory_is(sources: Path) -> None:
    """CAP_DAC_READ_SEARCH opens the file; /proc/iomem hides its addresses from it."""
    page = as_user(sources, "DAC_READ_SEARCH")
    assert sum(page["pages"].values()) == page["total_bytes"]
    assert page["agreement"]["largest_difference_fraction"] < 0.05


@pytest.mark.parametrize("where", ["--root", "--from"])
def test_elsewhere_it_says_so(where: str, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    shutil.copy("/proc/meminfo", tmp_path / "proc/meminfo")
    given = ["--root", str(tmp_path)]
    if where == "--from":
        bundle = tmp_path / "x.bundle"
        seawall("capture", "--for=2", f"-o{bundle}", "--root", str(tmp_path)).answered()
        given = ["--from", str(bundle)]
    page = seawall("memory", "--census", "--json", *given).answered().document
    assert "pages" in page["unread"]
    assert any(row["what"] == "page frames" for row in page["could_not_see"])
    text = seawall("memory", "--census", *given).answered().text
    assert "No census" in text
