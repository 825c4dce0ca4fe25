"""The tracer on this machine: a ring hog beside innocents at full load, and how it ends."""

import contextlib
import ctypes
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.innocents import (
    MIB,
    NOT_BLAMED_BYTES,
    forking_hog,
    innocents,
    ring_hog,
    why_no_rings,
)

from seawall.host.live import LiveHost
from seawall.host.page_trace import instances, keeper, tracefs
from seawall.host.page_trace.instances import Instance
from seawall.host.page_trace.options import TraceOptions
from seawall.host.page_trace.tracer import PageTracer
from seawall.host.page_trace.tracing_problem import TracingProblem
from seawall.readings.page_trace import PageTrace, parse_answer, trace

PAGE = os.sysconf("SC_PAGE_SIZE")


def why_not() -> str | None:
    try:
        root = tracefs.attach()
    except TracingProblem as problem:
        return f"{problem.words}: sudo make test-system"
    os.close(root)
    return why_no_rings()


@pytest.fixture
def can_trace() -> None:
    if why := why_not():
        pytest.skip(why)


def ours(root: int) -> list[str]:
    """Instances of this process, or of children of it."""
    fd = os.open("instances", tracefs.FOLDER, dir_fd=root)
    try:
        return sorted(name for name in os.listdir(fd) if name.startswith("seawall-"))
    finally:
        os.close(fd)


def held_by_group(answer: Any, what: str = "pages") -> Counter[str]:
    """Bytes by the path of the memory cgroup, the checked answer's."""
    found = parse_answer(answer)
    assert isinstance(found, PageTrace), found
    sums: Counter[str] = Counter()
    for row in found.held:
        lines = found.tasks[row.task].cgroups
        path = next((line for line in lines if ":memory:" in line), lines[-1] if lines else "")
        sums[path.rpartition("/")[2]] += getattr(row, what) * found.page_size
    return sums


def of(sums: Counter[str], path: str) -> int:
    return sums[path.rpartition("/")[2]]


@contextlib.contextmanager
def tracing(**options: Any) -> Iterator[PageTracer]:
    with PageTracer.open(TraceOptions(**options)) as tracer:
        yield tracer


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_the_hog_is_charged_exactly_and_the_innocents_with_nothing(tmp_path: Path) -> None:
    size = 128 * MIB
    with innocents(tmp_path) as others, ring_hog(size) as hog, tracing() as tracer:
        tracer.pump(0.5)
        hog.begin()
        tracer.pump(3)
        answer = tracer.look()
        sums, least = held_by_group(answer), held_by_group(answer, "least_pages")
        assert abs(of(sums, hog.path) - size) <= 0.02 * size, (answer["notes"], sums)
        assert of(least, hog.path) <= of(sums, hog.path)
        for name, path in others.groups.items():
            assert of(sums, path) <= NOT_BLAMED_BYTES, name
        others.assert_busy()
    stacks = [answer["stacks"][row["stack"]] for row in answer["held"][:1]]
    assert "packet_set_ring" in stacks[0]


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_a_culprit_that_forks_exits_and_hands_on_is_found() -> None:
    size = 64 * MIB
    with forking_hog(size) as hog, tracing() as tracer:
        tracer.pump(0.3)
        hog.go()
        tracer.pump(1)
        answer = tracer.look()
    sums = held_by_group(answer)
    assert abs(of(sums, hog.path) - size) <= 0.02 * size
    name = hog.path.rpartition("/")[2]
    culprits = {
        row["task"]
        for row in answer["held"]
        if row["pages"] * PAGE > MIB
        and any(line.endswith(name) for line in answer["tasks"][row["task"]]["cgroups"])
    }
    assert len(culprits) == 8
    assert not any(answer["tasks"][task]["alive"] for task in culprits)
    assert all(answer["tasks"][task]["cgroup_inode"] for task in culprits)


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_lost_events_and_sampling_are_said_and_blame_nobody(tmp_path: Path) -> None:
    size = 64 * MIB
    with innocents(tmp_path) as others, ring_hog(size) as hog:
        with tracing(buffer_kib=16, settle_seconds=0.3) as tracer:
            hog.go()
            for _ in range(3):
                time.sleep(0.7)  # nobody reads
                tracer.pump(0.2)
            answer = tracer.look()
        sums = held_by_group(answer)
    assert answer["lost_events"] > 0
    assert answer["sampled_one_in"] in (4, 8)
    assert any("lost" in note for note in answer["notes"])
    for name, path in others.groups.items():
        assert of(sums, path) <= NOT_BLAMED_BYTES, name
    assert of(sums, hog.path) <= 1.05 * size


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_a_pause_costs_nothing_and_what_is_freed_meanwhile_is_seen() -> None:
    size = 32 * MIB
    with ring_hog(size) as hog, ring_hog(size, name="stays") as stays, tracing() as tracer:
        tracer.pump(0.2)
        hog.go()
        stays.go()
        tracer.pump(0.8)
        tracer.pause()
        enabled = [one.read("events/enable").strip() for one in tracer.armed.instances]
        assert enabled == ["0", "0", "0"]
        assert tracer.armed.buffer_bytes() < MIB
        hog.process.kill()
        hog.process.wait()
        time.sleep(0.3)
        answer = tracer.look()
        sums = held_by_group(answer)
        assert of(sums, stays.path) >= 0.98 * size
        assert of(sums, hog.path) <= 0.25 * size  # what lies on the lists of CPUs
        assert of(held_by_group(answer, "least_pages"), stays.path) == 0
        tracer.resume()
        tracer.forget()
        tracer.pump(0.3)
        assert of(held_by_group(tracer.look()), stays.path) == 0


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
@pytest.mark.parametrize("is_kept", [True, False])
def test_after_kill_9_nothing_is_left_or_it_is_swept(is_kept: bool) -> None:
    root = tracefs.attach()
    ready, tell = os.pipe()
    child = os.fork()
    if not child:
        with PageTracer.open(TraceOptions(keeper=is_kept)) as tracer:
            os.write(tell, b".")
            tracer.pump(60)
        os._exit(0)
    os.read(ready, 1)
    made = [name for name in ours(root) if name.startswith(f"seawall-{child}-")]
    assert [name.rpartition("-")[2] for name in made] == ["frees", "pages", "tasks"]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    until = time.monotonic() + 5
    while is_kept and set(made) & set(ours(root)) and time.monotonic() < until:
        time.sleep(0.1)
    left = set(made) & set(ours(root))
    if is_kept:
        assert not left
    else:
        assert {tracefs.read_text(f"instances/{name}/tracing_on", root) for name in left} == {"0\n"}
        PageTracer.open().close()
        assert not set(made) & set(ours(root))
    for fd in (root, ready, tell):
        os.close(fd)


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_who_is_swept_before_his_lock_makes_another() -> None:
    root = tracefs.attach()
    is_over = threading.Event()

    def sweep_on() -> None:
        while not is_over.wait(0.01):
            instances.sweep(root)

    sweeper = threading.Thread(target=sweep_on)
    sweeper.start()
    try:
        made = [Instance.create(root, f"seawall-{os.getpid()}-1-race") for _ in range(6)]
        assert {one.name for one in made} <= set(ours(root))
        assert all(one.close() for one in made)
    finally:
        is_over.set()
        sweeper.join()
        os.close(root)


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_an_instance_whose_owner_lives_and_one_of_somebody_else_stay() -> None:
    root = tracefs.attach()
    owned = Instance.create(root, "seawall-1-1-living")  # no process 1 started at tick 1
    os.mkdir("instances/somebody-s", dir_fd=root)
    event = "instances/somebody-s/events/kmem/mm_page_alloc"
    try:
        tracefs.write_text(f"{event}/filter", "order > 3", root)
        tracefs.write_text(f"{event}/enable", "1", root)
        paths = (f"{event}/enable", f"{event}/filter", "tracing_on", "events/enable")
        before = [tracefs.read_text(path, root) for path in paths]
        with tracing() as tracer:
            tracer.pump(0.2)
            assert [tracefs.read_text(path, root) for path in paths] == before
            assert owned.name in ours(root)
        assert [tracefs.read_text(path, root) for path in paths] == before
        assert owned.name in ours(root)
    finally:
        owned.close()
        tracefs.write_text(f"{event}/enable", "0", root)
        os.rmdir("instances/somebody-s", dir_fd=root)
        os.close(root)


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
@pytest.mark.parametrize("path", ["free_buffer", "events/enable"])
def test_a_recording_that_somebody_stopped_goes_on_and_it_is_said(path: str) -> None:
    """Whoever reads all files of tracefs opens free_buffer, and the kernel frees the buffer;
    whoever resets all tracing turns the events of all instances off.
    """
    size = 16 * MIB
    with tracing() as tracer:
        tracer.pump(0.2)
        if path == "free_buffer":
            os.close(os.open(path, os.O_RDONLY, dir_fd=tracer.armed.pages.folder))
        else:
            tracer.armed.pages.write(path, "0")
        assert not tracer.armed.is_recording()
        tracer.pump(1.2)
        assert tracer.armed.is_recording()
        with ring_hog(size) as hog:
            hog.go()
            answer = tracer.look()
    assert any("switched our recording off" in note for note in answer["notes"])
    assert of(held_by_group(answer), hog.path) >= size


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_nothing_is_applied_while_somebody_looks() -> None:
    """What the look has found goes by numbers that a round may change."""
    with tracing() as tracer:
        tracer.pump(0.1)
        known, read = tracer.follower.statistics.events, len(tracer.follower._read)
        deadline = time.monotonic() + 5
        while len(tracer.follower._read) == read and time.monotonic() < deadline:
            mmap.mmap(-1, MIB).write(bytes(MIB))  # pages are freed
            tracer._keep_pace()
        assert len(tracer.follower._read) > read
        assert tracer.follower.statistics.events == known
        tracer.pump(0.1)
        assert tracer.follower.statistics.events > known


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_a_read_only_mount_of_tracefs_is_not_taken(tmp_path: Path) -> None:
    def mount_it() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        place = os.fsencode(tmp_path)
        assert not libc.unshare(0x20000)
        assert not libc.mount(b"none", b"/", None, 0x44000, None)  # private, all of it
        assert not libc.mount(b"tracefs", place, b"tracefs", 0, None)
        assert not libc.mount(b"", place, None, 0x1000 | 32 | 1, None)  # remount, bind, ro
        with pytest.raises(OSError, match="Read-only"):
            os.mkdir(tmp_path / "instances" / "seawall-0-0-ro")

    assert in_child(mount_it) == "it traced"


@pytest.mark.system
@pytest.mark.usefixtures("can_trace")
def test_the_probe_answers_through_the_protocol() -> None:
    host = LiveHost()
    try:
        answer = trace(host, 0.5)
    finally:
        host.close()
    assert isinstance(answer, PageTrace), answer
    assert answer.seconds >= 0.5
    assert answer.page_size == PAGE


def in_child(then: Any) -> str:
    """What a forked child says of the problem that it meets."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        try:
            then()
            PageTracer.open().close()
            os.write(into, b"it traced")
        except TracingProblem as problem:
            os.write(into, f"{problem.why}: {problem.words}".encode())
        except BaseException as problem:  # noqa: BLE001 - the child ends here; the parent shows it
            os.write(into, repr(problem).encode())
        finally:
            os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    with os.fdopen(out) as told:
        return told.read()


def test_a_keeper_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_keep", lambda *_: time.sleep(60))
    monkeypatch.setattr(keeper, "_END_SECONDS", 0.2)
    one = keeper.Keeper(0)
    pid, began = one.pid, time.monotonic()
    one.end()
    assert time.monotonic() - began < 20
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


AS_NOBODY = """
import os
from seawall.host.page_trace.tracer import PageTracer
from seawall.host.page_trace.tracing_problem import TracingProblem
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
try:
    PageTracer.open().close()
except TracingProblem as problem:
    print(f"{problem.why}: {problem.words}")
"""


def test_without_root_it_is_refused_with_words() -> None:
    # A process of its own: what other tests did to this one (threads, signals) is not shown here.
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "refused: tracing the kernel needs root (CAP_SYS_ADMIN)", done


@pytest.mark.parametrize(
    ("error", "locked", "expected"),
    [
        (1, "none [integrity] confidentiality", "refused: tracefs is not mounted and may not be"),
        (1, "none integrity [confidentiality]", "refused: the kernel is locked down"),
        (19, "", "absent: this kernel has no tracefs"),
    ],
)
def test_each_bad_condition_has_its_words(
    error: int, locked: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lockdown").write_text(locked)
    monkeypatch.setattr(tracefs, "_LOCKDOWN", str(tmp_path / "lockdown"))
    problem = tracefs._named(OSError(error, ""))
    assert f"{problem.why}: {problem.words}".startswith(expected)
