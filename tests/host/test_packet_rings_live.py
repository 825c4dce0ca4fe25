"""Packet rings that real processes hold, in namespaces and cgroups of their own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.cgroups import Cgroup, cgroup, missing

from seawall.accounts.claim import Claim
from seawall.accounts.claim_sources import packet_ring_claims as source
from seawall.host import second_reader
from seawall.host.live import LiveHost
from seawall.host.packet_rings.namespaces import network_namespaces
from seawall.readings.packet_rings import PacketRings, PacketSocket
from seawall.readings.snapshot import Snapshot, needs_of

HOLDER = Path(__file__).parents[1] / "end_to_end/ring_holder.py"
MIB = 1 << 20
UNPRIVILEGED = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]


class Process:
    """One ``ring_holder.py`` in a cgroup of its own."""

    def __init__(self, group: Cgroup, *before: str) -> None:
        self.group = group
        self._run = subprocess.Popen(
            [*before, sys.executable, str(HOLDER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        group.add(self._run.pid)

    def do(self, *command: object) -> int:
        return self.answer() if self.begin(*command) else 0

    def begin(self, *command: object) -> bool:
        assert self._run.stdin
        self._run.stdin.write(json.dumps(command) + "\n")
        self._run.stdin.flush()
        return True

    def answer(self) -> int:
        assert self._run.stdout
        return int(self._run.stdout.readline())

    def end(self) -> None:
        self._run.kill()
        self._run.communicate()

    @property
    def pid(self) -> int:
        return self._run.pid

    @property
    def path(self) -> str:
        return "/" + self.group.path.name


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    with contextlib.ExitStack() as stack:

        def make(name: str, *before: str) -> Process:
            group = stack.enter_context(cgroup(f"seawall-{name}-{os.getpid()}", 200 * MIB))
            process = Process(group, *before)
            stack.callback(process.end)
            return process

        yield make


class Seen:
    """What the source says now of the sockets of a test."""

    def __init__(self, *inodes: int) -> None:
        with contextlib.closing(LiveHost()) as host:
            snapshot = Snapshot(host)
            needs = {name: snapshot.get(topic) for name, topic, _ in needs_of(source.claims)}
            rings = snapshot.get(PacketRings)
            assert isinstance(rings, PacketRings)
            self.rings = rings
            self.sockets = {one.inode: one for one in rings.sockets}
            found = source.claims(**needs)
        things = {f"socket:[{inode}]" for inode in inodes}
        self.claims = [c for c in found.claims if things & {t.split(" ")[0] for t in c.things}]
        self.suspects = {one.cgroup for one in found.suspects}

    def socket(self, inode: int) -> PacketSocket:
        return self.sockets[inode]

    def only(self) -> Claim:
        (claim,) = self.claims
        return claim


def rx(mib: int) -> list[int]:
    return [65536, mib * 16, 2048]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_sizes_to_the_byte(start: Callable[..., Process], version: int) -> None:
    one = start("sizes")
    one.do("leave")
    tx = [16384, 40, 2048] if version < 2 else [16384, 40, 4096]
    inode = one.do("ring", version, [12288, 300, 4096], tx)
    second = one.do("ring", version, [MIB, 3, 2048], None)
    claim = Seen(inode, second).only()
    assert claim.bytes == 300 * 16384 + 40 * 16384 + 3 * MIB
    assert claim.least_bytes == claim.most_bytes == claim.bytes
    assert (claim.workload, claim.confidence) == (one.path, "exact")
    one.do("close", 1)
    assert Seen(inode).only().bytes == 340 * 16384
    one.end()
    assert not Seen(inode, second).claims


def test_no_cgroup_counts_it(start: Callable[..., Process]) -> None:
    one = start("uncounted")
    one.do("leave")
    before = one.group.usage_bytes()
    inode = one.do("ring", 0, rx(150), None)
    claim = Seen(inode).only()
    assert (claim.bytes, claim.cgroup) == (150 * MIB, one.path)
    assert not claim.is_counted
    assert one.group.usage_bytes() - before < 2 * MIB


def test_large_blocks_are_in_vmalloc(start: Callable[..., Process]) -> None:
    one = start("large")
    one.do("leave")
    inode = one.do("ring", 0, [8 * MIB, 3, 2048], [65536, 32, 2048])
    places = {claim.within: claim.bytes for claim in Seen(inode).claims}
    assert places == {"residual": 2 * MIB, "vmalloc": 24 * MIB}


def test_forks_share_it(start: Callable[..., Process]) -> None:
    one = start("forks")
    one.do("leave")
    inode = one.do("ring", 0, rx(16), None)
    one.do("fork", 30)
    seen = Seen(inode)
    assert (seen.only().bytes, seen.only().cgroup) == (16 * MIB, one.path)
    assert len(seen.socket(inode).holders) == 16, "not all of many in one cgroup"


def test_closed_socket_whose_ring_is_mapped(start: Callable[..., Process]) -> None:
    one = start("mapped")
    one.do("leave")
    inode = one.do("ring", 0, rx(16), [65536, 16, 2048])
    assert one.do("map", 0) == inode
    one.do("close", 0)
    seen = Seen(inode)
    assert seen.socket(inode).holders == (one.pid,)
    assert seen.socket(inode).mapped_bytes == 17 * MIB
    assert (seen.only().bytes, seen.only().cgroup) == (17 * MIB, one.path)
    assert seen.only().confidence == "exact"


def test_two_processes_look_for_holders(
    start: Callable[..., Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the probe's own child is forked; in the host's network, so all are looked at."""
    monkeypatch.setattr(second_reader, "_MANY", 1)
    first, last = start("first"), start("last")
    first_inode, inode = first.do("ring", 0, rx(4), None), last.do("ring", 0, rx(4), None)
    seen = Seen(first_inode, inode)
    assert seen.socket(first_inode).holders == (first.pid,)
    assert seen.socket(inode).holders == (last.pid,)
    assert seen.rings.holders_left_out <= seen.rings.processes_left_out


def test_process_whose_first_thread_has_ended(start: Callable[..., Process]) -> None:
    """pthread_exit in main(): /proc/PID names no namespace, no file and no mapping of it."""
    one = start("thread")
    one.do("leave")
    inode = one.do("ring", 0, rx(16), None)
    mapped = one.do("ring", 0, rx(8), None)
    one.do("map", 1)
    one.do("close", 1)
    one.do("go_on")
    seen = Seen(inode, mapped)
    assert seen.socket(inode).holders == seen.socket(mapped).holders == (one.pid,)
    assert (seen.only().bytes, seen.only().cgroup) == (24 * MIB, one.path)
    assert seen.only().confidence == "exact"


def test_handing_it_on_moves_nothing(start: Callable[..., Process], tmp_path: Path) -> None:
    """First both have it, then only the other one, who cannot have made it there."""
    maker, taker = start("maker"), start("taker", *UNPRIVILEGED)
    maker.do("leave")
    inode = maker.do("ring", 0, rx(64), None)
    path = str(tmp_path / "s")
    taker.do("serve", path)
    taker.begin("take")
    maker.do("give", path, 0)
    assert taker.answer() == inode
    seen = Seen(inode)
    assert seen.socket(inode).holders == (maker.pid,), "who else has it need not be looked for"
    assert (seen.only().cgroup, seen.only().least_bytes) == (maker.path, 64 * MIB)
    assert seen.only().confidence == "exact"
    maker.do("close", 0)
    seen = Seen(inode)
    assert seen.socket(inode).holders == (taker.pid,)
    claim = seen.only()
    assert (claim.cgroup, claim.bytes, claim.least_bytes) == (maker.path, 64 * MIB, 0)
    assert claim.confidence == "estimate"


def test_in_the_hosts_network_handing_it_on_charges_nobody(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    maker, taker = start("maker"), start("taker")
    inode = maker.do("ring", 0, rx(64), None)
    seen = Seen(inode)
    assert (seen.only().workload, seen.only().bytes) == (None, 64 * MIB)
    assert seen.only().confidence == "exact"
    assert maker.path in seen.only().holder
    assert maker.path in seen.suspects
    path = str(tmp_path / "s")
    taker.do("serve", path)
    taker.begin("take")
    maker.do("give", path, 0)
    taker.answer()
    maker.do("close", 0)
    seen = Seen(inode)
    assert (seen.only().workload, seen.only().bytes) == (None, 64 * MIB)


def test_namespace_without_processes(start: Callable[..., Process], tmp_path: Path) -> None:
    """Made inside, and only a bind mount stands for the namespace: nobody lives there."""
    one = start("kept")
    space = one.do("leave")
    inode = one.do("ring", 0, rx(16), None)
    one.do("back")
    kept = tmp_path / "ns\\1 x"
    one.do("leave")
    other = one.do("ring", 0, rx(8), None)
    one.do("keep", str(kept))
    try:
        one.do("back")
        seen = Seen(inode, other)
        assert inode not in seen.sockets, "a namespace that only a socket keeps cannot be found"
        assert seen.socket(other).namespace != space
        assert (seen.only().workload, seen.only().bytes) == (None, 8 * MIB)
        assert seen.suspects >= {one.path}
    finally:
        subprocess.run(["umount", str(kept)], check=True)


def test_a_hundred_namespaces(start: Callable[..., Process]) -> None:
    one = start("hundred")
    holders = []
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            run = subprocess.Popen(["unshare", "-n", "sleep", "60"])
            stack.callback(run.communicate)
            stack.callback(run.kill)
            one.group.add(run.pid)
            holders.append(run.pid)
        one.do("leave")
        inode = one.do("ring", 0, rx(4), None)
        deadline = time.monotonic() + 20
        while len(set(network_namespaces(deadline).by_pid.values())) < 102:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        start_at = time.monotonic()
        seen = Seen(inode)
        assert time.monotonic() - start_at < 2
        assert seen.rings.namespaces >= 102
        assert seen.rings.namespaces_left_out == 0
        assert seen.only().cgroup == one.path


def test_an_ordinary_user_sees_his_own_namespace_and_says_what_he_does_not() -> None:
    script = (
        "import json, os\nfrom seawall.host.packet_rings.ring_sockets import packet_rings\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(json.dumps(packet_rings()))\n"
    )
    sources = Path(__file__).parents[2] / "src"
    ran = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", script], env={"PYTHONPATH": str(sources)},
        check=True, capture_output=True,
    )  # fmt: skip
    answer = json.loads(ran.stdout)
    assert answer["namespaces"] == 1
    assert answer["processes_left_out"] > 0
    assert answer["sockets"] == []
    assert not answer["why_not"]


FLOOD, EACH = 64, 19_000
"""Processes, and descriptors of each: more than any look has time for."""
DESCRIPTORS = f"""
import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, ({EACH} + 100, {EACH} + 100))
for _ in range({FLOOD} - 1):
    if not os.fork():
        break
for _ in range({EACH}):
    os.dup(0)
os.write(1, b"x")
time.sleep(300)
"""


def test_a_flood_of_descriptors_hides_no_holder_and_is_named(start: Callable[..., Process]) -> None:
    """One workload has so many that there is no time for them; who holds a ring began later."""
    flood = start("flood")
    with subprocess.Popen(
        [sys.executable, "-c", DESCRIPTORS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        process_group=0,
    ) as crowd:  # fmt: skip
        try:
            flood.group.add(crowd.pid)
            assert crowd.stdout
            assert len(crowd.stdout.read(FLOOD)) == FLOOD
            one = start("behind")
            inode = one.do("ring", 0, rx(20), None)
            seen = Seen(inode)
            assert one.pid in seen.socket(inode).holders
            assert seen.rings.holders_left_out > 0
            assert seen.rings.crowds[0].cgroup == flood.path
            assert seen.rings.crowds[0].descriptors > EACH
        finally:
            os.killpg(crowd.pid, signal.SIGKILL)
