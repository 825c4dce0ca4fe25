"""Memory of one known kind is planted on this very machine, and the ledger has to find it.

Whatever has a counter moves its own line and not the residual; packet rings have none and
move the residual.  Others work on the machine meanwhile, so medians are compared, and a pair
of measurements that was disturbed is taken again.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.end_to_end.cgroups import cgroup, missing
from tests.end_to_end.verbs import seawall

from seawall.accounts.node_memory.full_ledger import FullLedger
from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.rule import load_rules
from seawall.host.live import LiveHost
from seawall.readings.snapshot import Snapshot

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

MIB = 1 << 20
PLANTED = 64 * MIB
TOLERANCE = MIB
SAMPLES = 5
ATTEMPTS = 4
SETTLE_SECONDS = 1.5  # counters of a CPU are folded into the sum once a second
PLANTER = Path(__file__).with_name("planters.py")
RESIDUAL = "residual"

# Kind -> its line; how much of the planted bytes must be on it: inodes have no round size,
# and others use page cache and anonymous memory meanwhile.
LINES = {
    "anonymous": ("anonymous", 0.5),
    "tmpfs": ("tmpfs and shared", 0.98),
    "page cache": ("page cache", 0.5),
    "slab": ("slab", 0.8),
    "pipes": ("pipes", 0.98),
    "vmalloc": ("vmalloc", 0.98),
    "hugetlb": ("hugetlb", 1.0),
}
OVER = 1.5
ON_TMPFS = ("tmpfs", "slab")


@pytest.fixture(scope="module", autouse=True)
def as_root() -> None:
    if os.geteuid():
        pytest.skip("planting kernel memory needs root: sudo make test-system")


@pytest.fixture
def host() -> Iterator[LiveHost]:
    host = LiveHost("/")
    yield host
    host.close()


def measure(host: LiveHost) -> dict[str, float]:
    """Each line and the residual, the median of a few moments."""
    moments = []
    for _ in range(SAMPLES):
        full = Snapshot(host).get(FullLedger)
        assert isinstance(full, FullLedger), full
        ledger = full.ledger
        values = {line.name: line.bytes for line in ledger.lines}
        assert sum(values.values()) + ledger.residual_bytes == ledger.total_bytes
        moments.append({**values, RESIDUAL: ledger.residual_bytes})
        time.sleep(0.2)
    return {name: statistics.median(m.get(name, 0) for m in moments) for name in moments[0]}


@contextmanager
def planted(kind: str, size: int) -> Iterator[None]:
    """A process of its own holds it; everything is given back at the end."""
    folder = f"{'/dev/shm' if kind in ON_TMPFS else '/var/tmp'}/seawall-planted-{os.getpid()}"
    command = [sys.executable, str(PLANTER), kind, str(size), folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as planter:
        assert planter.stdout
        said = planter.stdout.readline().strip()
        try:
            if said.startswith("cannot"):
                pytest.skip(f"{kind}: {said}; needs a privileged container or a host's root")
            assert said == "ready", said
            time.sleep(SETTLE_SECONDS)
            yield
        finally:
            planter.terminate()


def moved(host: LiveHost, kind: str) -> dict[str, float]:
    """How far each line moves between the same process with nothing and with PLANTED bytes."""
    with planted(kind, 0):
        before = measure(host)
    with planted(kind, PLANTED):
        after = measure(host)
    time.sleep(SETTLE_SECONDS)
    return {name: after[name] - before.get(name, 0) for name in after}


def shown(moves: dict[str, float]) -> str:
    return ", ".join(f"{k} {v / MIB:+.2f}" for k, v in moves.items() if abs(v) > MIB / 4)


@pytest.mark.parametrize("kind", LINES)
def test_counted_memory_lands_on_its_line_and_leaves_the_residual(
    host: LiveHost, kind: str
) -> None:
    line, least = LINES[kind]
    tries = []
    for _ in range(ATTEMPTS):
        moves = moved(host, kind)
        tries.append(shown(moves))
        on_its_line = least * PLANTED <= moves[line] <= OVER * PLANTED
        if abs(moves[RESIDUAL]) <= TOLERANCE and on_its_line:
            return
    pytest.fail("\n".join(tries))


def test_packet_rings_are_the_residual(host: LiveHost) -> None:
    tries = []
    for _ in range(ATTEMPTS):
        moves = moved(host, "packet rings")
        tries.append(shown(moves))
        if abs(moves[RESIDUAL] - PLANTED) <= TOLERANCE:
            return
    pytest.fail("\n".join(tries))


def test_machine_in_peace_has_a_small_residual(host: LiveHost) -> None:
    """Under 0.3 % of MemTotal: what the kernel took for itself when it started."""
    ledger = Snapshot(host).get(Ledger)
    assert isinstance(ledger, Ledger)
    assert -ledger.residual_error_bytes <= ledger.residual_bytes < 0.003 * ledger.total_bytes
    assert ledger.residual_error_bytes < 0.003 * ledger.total_bytes


def test_hand_check_agrees_with_the_ledger(host: LiveHost) -> None:
    """The line that SW101 tells people to paste; per-CPU lists alone may be gigabytes."""
    [line] = [rule.confirm[0] for rule in load_rules() if rule.id == "SW101"]
    ledger = Snapshot(host).get(Ledger)
    assert isinstance(ledger, Ledger)
    ran = subprocess.run(["bash", "-c", line], capture_output=True, check=True, text=True)
    by_hand = float(ran.stdout.removesuffix(" GiB\n")) * 1024 * MIB
    assert abs(by_hand - ledger.residual_bytes) < ledger.residual_error_bytes + 16 * MIB


@pytest.fixture
def base_path() -> Iterator[Path]:
    """The file of this boot is put back as it was."""
    path = Path("/run/seawall/base.json")
    old = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    yield path
    if old is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(old)
        path.chmod(0o640)


def test_base_is_not_learned_beside_a_plain_cgroup(base_path: Path) -> None:
    """A process in a cgroup of nobody's grammar may hold what no counter shows."""
    if why := missing():
        pytest.skip(why)
    with cgroup("seawall-test-base", 64 * MIB) as made, subprocess.Popen(["sleep", "9"]) as sleeper:
        made.add(sleeper.pid)
        page = seawall("memory", "--json").answered().document
        sleeper.terminate()
    assert "base_bytes" not in page
    assert not base_path.exists()


def test_asked_base_is_written_and_used(base_path: Path) -> None:
    page = seawall("memory", "--json", "--learn-base").answered().document
    written = json.loads(base_path.read_text())
    assert written["how"] == "asked"
    assert written["boot_id"] == page["host"]["boot_id"]
    assert base_path.stat().st_mode & 0o777 == 0o640
    assert base_path.parent.stat().st_mode & 0o777 == 0o755
    assert page["base_bytes"] == written["residual_bytes"]
    again = seawall("memory", "--json").answered().document
    assert again["base_bytes"] == written["residual_bytes"]
    assert abs(again["residual_bytes"] - again["base_bytes"]) < 4 * MIB
    assert not list(base_path.parent.glob("*.part"))
