"""``memory --watch`` on this machine: it learns who, and a kill -9 does not make it forget."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.end_to_end import blamed, cgroups, own_run
from tests.end_to_end.innocents import Member, ring_hog, why_no_rings
from tests.end_to_end.own_run import OwnRun

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
MIB = 1 << 20
SIZE = 320 * MIB
RATE = 32.0  # MiB a second: well above what arms it
INSTANCES = "/sys/kernel/tracing/instances"


@pytest.fixture(scope="module")
def home() -> Iterator[OwnRun]:
    if why := own_run.missing() or why_no_rings() or cgroups.missing():
        pytest.skip(why)
    with own_run.own_run() as home:
        probe = home.seawall("memory", "--who", "--for", "1", "--json").answered().document
        if "trace" not in probe:
            pytest.skip(f"nothing can be traced here: {probe['could_not_see'][0]['why']}")
        yield home


class Watcher:
    """One watcher and the lines that it wrote."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._rest = b""

    def follow(self, seconds: float) -> None:
        """Read what it says for so long."""
        assert self.process.stdout
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.process.stdout], [], [], left)[0]:
                return
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                return
            *whole, self._rest = (self._rest + data).split(b"\n")
            self.lines += map(json.loads, whole)

    def until(self, event: str, seconds: float) -> dict[str, Any]:
        """The first line of that event; the test fails without one."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in self.lines:
                if line["event"] == event:
                    return line
            self.follow(0.3)
        raise AssertionError(f"no {event!r} in {seconds} s: {self.lines}")

    def claimed(self, cgroup: str) -> int:
        """By its last line."""
        claims = self.lines[-1]["claims"] if self.lines else []
        return sum(claim["bytes"] for claim in claims if claim["cgroup"] == cgroup)


@contextmanager
def watcher(home: OwnRun) -> Iterator[Watcher]:
    process = home.start("memory", "--watch", "--every", "0.5", "--json")
    try:
        yield Watcher(process)
    finally:
        process.kill()
        process.communicate()


def kept(home: OwnRun, cgroup: str) -> int:
    """Bytes that the file has of one cgroup."""
    document = json.loads(home.cat("/run/seawall/claims"))
    return sum(claim["bytes"] for claim in document["claims"] if claim["cgroup"] == cgroup)


def is_ours(instance: str, pid: int) -> bool:
    return instance.startswith("seawall") and str(pid) in instance


def test_it_learns_is_killed_goes_on_and_lets_fall(home: OwnRun) -> None:
    with ring_hog(SIZE, mib_per_second=RATE, name="watched") as hog:
        seen = _watched(home, hog)
        # Some of it was taken before the growth was large enough to arm the tracer.
        assert 0.5 * SIZE <= seen <= 1.02 * SIZE
        with watcher(home) as second:
            started = second.until("started", 20)
            second.follow(3)
            # Killed -9, and the next one knows what the first one knew; but no more than the
            # residual is over what it was before: others on this machine give back, too.
            last = second.lines[-1]
            most = min(seen, last["residual_bytes"] - last["base_residual_bytes"])
            if most < seen / 2:
                pytest.skip("somebody else on this machine gave back more than the hog holds")
            assert second.claimed(hog.path) == pytest.approx(most, rel=0.02, abs=8 * MIB)
            assert hog.path in started["words"]
            page = home.seawall("memory", "--json").answered().document
            (claim,) = [claim for claim in page["claims"] if claim["cgroup"] == hog.path]
            assert (claim["confidence"], claim["workload"]) == ("traced", hog.path)
            assert claim["bytes"] == pytest.approx(most, rel=0.1), blamed.shown(page)
            hog.process.kill()
            hog.process.wait()
            second.until("gone", 30)
            second.process.terminate()
            assert second.process.wait(20) == 0
        assert kept(home, hog.path) == 0
    assert "packet_set_ring" in claim["source"]


def _watched(home: OwnRun, hog: Member) -> int:
    """What a first watcher knew when it was killed."""
    with watcher(home) as first:
        first.until("started", 20)
        hog.begin()
        first.until("armed", 30)
        other = home.seawall("memory", "--watch")
        assert other.status == 2
        assert b"watches already" in other.err
        hog.read("ready")
        first.until("claim", 30)
        first.follow(12)
        seen = kept(home, hog.path)
        _check_file(home, hog, first.process.pid)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
    return seen


def _check_file(home: OwnRun, hog: Member, watcher_pid: int) -> None:
    """Private, of this boot and of this very cgroup."""
    document = json.loads(home.cat("/run/seawall/claims"))
    assert document["schema"] == "seawall.claims/1"
    with open("/proc/sys/kernel/random/boot_id") as boot:
        assert document["boot_id"] == boot.read().strip()
    status = os.stat(f"/proc/{watcher_pid}/root/run/seawall/claims")
    assert status.st_mode & 0o777 == 0o640
    (claim,) = [claim for claim in document["claims"] if claim["cgroup"] == hog.path]
    assert claim["cgroup_inode"] == os.stat(hog.group.path).st_ino


def test_a_full_run_is_told_and_forgotten_when_there_is_room_again(home: OwnRun) -> None:
    home.sh("mount -o remount,size=64k /run/seawall && ! cat /dev/zero >/run/seawall/full 2>&-")
    try:
        with ring_hog(128 * MIB, mib_per_second=30, name="kept") as hog, watcher(home) as one:
            one.until("started", 20)
            hog.begin()
            blind = one.until("blind", 60)
            assert "/run/seawall/claims: No space left" in blind["words"]
            assert blind["blind"] == ""  # it traces all the same
            home.sh("rm /run/seawall/full")
            one.follow(4)
            assert kept(home, hog.path) == one.claimed(hog.path) > 0
            assert len([line for line in one.lines if line["event"] == "blind"]) == 1
            assert json.loads(home.cat("/run/seawall/claims"))["blind"] == ""
    finally:
        home.sh("rm -f /run/seawall/full && mount -o remount,size=1g /run/seawall")


def test_a_file_that_cannot_be_read_is_told_and_replaced(home: OwnRun) -> None:
    home.sh("rm -f /run/seawall/claims; printf '{\"schema\":' >/run/seawall/claims")
    with watcher(home) as one:
        assert "/run/seawall/claims: expected JSON" in one.until("started", 20)["words"]
        one.follow(2)
        assert json.loads(home.cat("/run/seawall/claims"))["schema"] == "seawall.claims/1"


def test_ended_by_a_signal_it_leaves_no_instance(home: OwnRun) -> None:
    with ring_hog(128 * MIB, mib_per_second=30, name="ended") as hog, watcher(home) as one:
        one.until("started", 20)
        hog.begin()
        one.until("armed", 30)
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(20) == 0
        one.follow(1)
        assert one.lines[-1]["event"] == "ended"
        script = f"mount -t tracefs tracefs /sys/kernel/tracing; ls {INSTANCES}"
        listed = subprocess.run(
            ["unshare", "-m", "sh", "-c", script], capture_output=True, check=True
        )
        assert not [n for n in listed.stdout.decode().split() if is_ours(n, one.process.pid)]
