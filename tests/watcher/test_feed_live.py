"""The watcher as a process of its own, on this machine: how soon it is certain, and who it names.

Rings at 160 MiB/s in a cgroup of their own beside innocents at work; a guard that hangs or dies.
"""

import itertools
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end import cgroups, own_run
from tests.end_to_end.innocents import innocents, ring_hog, why_no_rings
from tests.end_to_end.own_run import OwnRun

from seawall.guard.entry import watcher_argv
from seawall.host.page_trace import instances, tracefs
from seawall.watcher.watcher_reader import SPARE_NAME

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]
MIB = 1 << 20
INSTANCES = Path("/sys/kernel/tracing/instances")


@pytest.fixture(scope="module")
def home() -> Iterator[OwnRun]:
    if why := own_run.missing() or why_no_rings() or cgroups.missing():
        pytest.skip(why)
    with own_run.own_run() as home:
        yield home


class Watcher:
    """The process, and what it said."""

    def __init__(self, process: subprocess.Popen[bytes], end: socket.socket) -> None:
        self.process, self.end = process, end
        self.heard: list[tuple[float, dict[str, Any]]] = []

    def listen(self, seconds: float, kind: str = "") -> dict[str, Any]:
        """What comes in so long, or until the first of a kind."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.end], [], [], left)[0]:
                self.heard.append((time.monotonic(), json.loads(self.end.recv(1 << 17))))
                if self.heard[-1][1]["t"] == kind:
                    return self.heard[-1][1]
        assert not kind, f"no {kind} in {seconds} s"
        return {}

    def say(self, **message: Any) -> None:
        self.end.send(json.dumps(message).encode())

    def certain(self, cgroup: str, least: int) -> float:
        """When it was first certain of so much."""
        for at, message in self.heard:
            for row in message.get("rows", ()):
                if row["cgroup"] == cgroup and row.get("certain", 0) >= least:
                    return at
        raise AssertionError(f"never certain: {[m for _, m in self.heard][-4:]}")

    def blamed(self) -> dict[str, int]:
        """The most that each was ever certain to hold."""
        found: dict[str, int] = {}
        for _, message in self.heard:
            for row in message["rows"] if message["t"] == "claims" else ():
                found[row["cgroup"]] = max(found.get(row["cgroup"], 0), row["certain"])
        return found

    def instances(self) -> list[str]:
        """Of the tracer, as they are there: mounted by us where nobody else has."""
        try:
            root = tracefs.attach()
        except OSError:
            return []
        try:
            names = instances.names_of_ours(root)
        finally:
            tracefs.let_go(root)
        return [name for name in names if f"-{self.process.pid}-" in name]

    def children(self) -> dict[int, str]:
        """Their names by their pids."""
        found = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                name, _, rest = stat.read_text().partition("(")[2].rpartition(") ")
                if int(rest.split()[1]) == self.process.pid:
                    found[int(stat.parent.name)] = name
        return found

    def readers(self) -> list[int]:
        """Those that were asked; the spare is none of them."""
        return [pid for pid, name in self.children().items() if name == "seawall-reader"]

    def reader(self) -> int:
        """Its pid; the only child that stays, beside the spare."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            names = sorted((found := self.children()).values())
            if names == ["seawall-reader", SPARE_NAME]:
                return self.readers()[0]
            time.sleep(0.05)
        raise AssertionError(found)

    def cpu_seconds(self) -> float:
        text = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(text[11]) + int(text[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def watcher(home: OwnRun) -> Iterator[Watcher]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [*home._words, *watcher_argv(theirs.fileno())]
    process = subprocess.Popen(words, pass_fds=(theirs.fileno(),))
    theirs.close()
    one = Watcher(process, ours)
    try:
        one.listen(60, "hello")
        yield one
    finally:
        ours.close()
        process.kill()
        process.wait()


def test_it_is_certain_soon_and_of_nobody_else(home: OwnRun, tmp_path: Path) -> None:
    with watcher(home) as one, ring_hog(480 * MIB, mib_per_second=160, name="fed") as hog:
        if one.heard[-1][1].get("blind"):
            pytest.skip(f"nothing can be traced here: {one.heard[-1][1]['blind']}")
        with innocents(tmp_path, model_bytes=256 * MIB) as others:
            one.listen(3)
            began = time.monotonic()
            hog.begin()
            one.listen(9)
            others.assert_busy()
        # 1.0 s on an idle machine; this one may have much else to do.
        assert one.certain(hog.path, 64 * MIB) - began < 6
        blamed = one.blamed()
        assert blamed.pop(hog.path) >= 240 * MIB
        assert all(size < 16 * MIB for size in blamed.values()), blamed
        inode = os.stat(hog.group.path).st_ino
        rows = [r for _, m in one.heard for r in m.get("rows", ()) if r["cgroup"] == hog.path]
        assert {row["inode"] for row in rows} == {inode}
        hog.process.kill()
        hog.process.wait()
        one.heard = []
        one.listen(4)
        last = [m for _, m in one.heard if m["t"] == "claims"][-1]
        assert all(row["certain"] < 16 * MIB for row in last["rows"]), last


def test_at_rest_it_costs_little_and_traces_nothing(home: OwnRun) -> None:
    with watcher(home) as one:
        for _ in range(4):
            one.heard = []
            before = one.cpu_seconds()
            one.listen(6)
            ledgers = [m for _, m in one.heard if m["t"] == "ledger"]
            assert len(ledgers) >= 5
            if not any(m["armed"] for m in ledgers):
                break
        else:
            pytest.skip("others on this machine take memory that nobody counts all the time")
        assert one.cpu_seconds() - before < 0.12  # 0.008 measured
        if INSTANCES.exists():
            for name in one.instances():
                assert (INSTANCES / name / "events/enable").read_text().strip() == "0"


def test_it_looks_as_often_as_it_is_told(home: OwnRun) -> None:
    with watcher(home) as one:
        one.say(t="pace", seconds=0.25)
        one.listen(4)
        assert len([m for _, m in one.heard if m["t"] == "ledger"]) >= 8


def test_a_guard_that_hangs_does_not_hold_it(home: OwnRun) -> None:
    with watcher(home) as one:
        one.say(t="pace", seconds=0.2)
        time.sleep(3)
        one.process.send_signal(0)
        one.listen(1)
        seconds = [m["seconds"] for _, m in one.heard if m["t"] == "ledger"]
        assert time.monotonic() - seconds[-1] < 2
        one.say(t="look", cgroups=["/none", 7, "\ud800"], why="stuck")
        one.say(t="look", cgroups=None, why="node_short")
        told = one.listen(20, "stuck")
        assert told["rows"] == []


def test_readers_that_hang_stop_nothing(home: OwnRun) -> None:
    """Stopped, which is for a watcher as if they hung in the kernel."""
    with watcher(home) as one:
        made = one.instances()
        one.say(t="pace", seconds=0.25)
        for _ in range(3):
            stopped = one.reader()
            os.kill(stopped, signal.SIGSTOP)
            one.heard = []
            began = time.monotonic()
            one.say(t="look", cgroups=[], why="node_short")
            while not set(one.readers()) - {stopped} and time.monotonic() < began + 20:
                one.listen(0.2)
            os.kill(stopped, signal.SIGCONT)  # it was told to end, and may hear that now
            assert one.reader() != stopped, "it was given up, and there is a new one"
            one.listen(3)
            times = [began, *(m["seconds"] for _, m in one.heard if m["t"] == "ledger")]
            gaps = [after - before for before, after in itertools.pairwise(times)]
            assert max(gaps) < 3, "it looked all the while"
        assert one.instances() == made, "and its tracer is the same"
        assert [m["blind"] for _, m in one.heard if m["t"] == "ledger"][-1] == ""
        one.heard = []
        one.say(t="look", cgroups=[], why="node_short")
        one.listen(6)
        refused = [m["refused"] for _, m in one.heard if m["t"] == "claims"][-1]
        assert not any("packet_rings" in words for words in refused), "it is answered again"


def test_a_watcher_that_is_killed_leaves_no_tracing(home: OwnRun) -> None:
    with watcher(home) as one:
        reader, made = one.reader(), one.instances()
        if not made:
            pytest.skip("nothing can be traced here")
        one.process.kill()
        one.process.wait()
        until = time.monotonic() + 10
        while (one.instances() or Path(f"/proc/{reader}").exists()) and time.monotonic() < until:
            time.sleep(0.05)
        assert one.instances() == []
        assert not Path(f"/proc/{reader}").exists()


@pytest.mark.parametrize("end", ["eof", "term"])
def test_it_ends_with_the_guard(home: OwnRun, end: str) -> None:
    with watcher(home) as one:
        one.listen(1)
        made = one.instances()
        if end == "eof":
            one.end.close()
        else:
            one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(20) == 0
        assert one.instances() == []
        assert all(name.startswith("seawall-") for name in made)
