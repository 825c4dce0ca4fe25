"""What was not captured never counts as zero or "not so": nothing new fires, no number grows."""

from pathlib import Path

import pytest
from tests.case_host import CaseHost, parse_case
from tests.readings.kernel_files import EL8, content

from seawall.accounts.node_memory.full_ledger import FullLedger
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.scene import Scene
from seawall.findings.policy import Policy
from seawall.findings.rule import load_rules
from seawall.findings.rule_runner import judge
from seawall.host.host import Unread
from seawall.host.recording import Round
from seawall.readings.snapshot import Snapshot

RULES_HOME = Path(__file__).parents[2] / "src/seawall/findings/rules"
GIB = 1 << 30
DRIFT_SHARE = 512
LEFT_OUT = ("percpu", "kernel misc", "secondary page tables", "hugetlb")
REAL = (
    "kernel_memory/residual_large.cases/seed1_gpu_driver",
    "node/gone_and_no_kill.cases/captured_vm_thrash",
    "node/node_or_container.cases/captured_container_thrash",
    "containers/thrash_at_limit.cases/v1_captured",
)
SEVEN_LINES = b"""MemTotal:       263722508 kB
MemFree:        58896352 kB
MemAvailable:   147518492 kB
SwapTotal:       8388604 kB
SwapFree:        3393360 kB
CommitLimit:    140249856 kB
Committed_AS:   304837192 kB
"""
BEFORE_3_14 = b"""MemTotal:       24592560 kB
MemFree:          532324 kB
Buffers:          236832 kB
Cached:           459252 kB
SwapCached:        60448 kB
Active:          7312736 kB
Inactive:        1607264 kB
Active(anon):    6851356 kB
Inactive(anon):  1372752 kB
Active(file):     461380 kB
Inactive(file):   234512 kB
Unevictable:           0 kB
AnonPages:       8199460 kB
Mapped:            69492 kB
Shmem:               192 kB
Slab:           14876100 kB
SReclaimable:   14810428 kB
SUnreclaim:        65672 kB
KernelStack:       23496 kB
PageTables:        38716 kB
VmallocUsed:      213232 kB
"""


def rounds_of(name: str) -> list[Round]:
    return list(parse_case((RULES_HOME / f"{name}.case").read_bytes()).records)


def scene_of(rounds: list[Round]) -> Scene:
    snapshots = [Snapshot(CaseHost(round_)) for round_ in rounds]
    return Scene.of(snapshots)


def firing(scene: Scene) -> set[str]:
    return {
        item.key for item in judge(load_rules(), scene, Policy()) if item.finding.verdict == "fires"
    }


def numbers(scene: Scene) -> dict[str, int]:
    """The ledger's lines, and what of uncounted memory is certain."""
    full = (scene.last or scene.first).get(FullLedger)
    if not isinstance(full, FullLedger):
        return {}
    ledger = full.ledger
    sure = max(ledger.residual_bytes - ledger.residual_error_bytes, 0)
    found = {line.name: line.bytes for line in ledger.lines if line.name != "not captured"}
    return {**found, "uncounted": sure}


def without(rounds: list[Round], path: str, line: bytes | None = None) -> list[Round]:
    """Copies without the file, or without the lines of it that begin so."""
    copies = []
    for one in rounds:
        files = dict(one.files)
        body = files.pop(path, None)
        if line is not None and isinstance(body, bytes):
            kept = [row for row in body.splitlines() if row.partition(b":")[0] != line]
            files[path] = b"\n".join(kept) + b"\n"
        copies.append(Round(files, dict(one.names), dict(one.links), dict(one.probes)))
    return copies


def less(name: str) -> list[tuple[str, list[Round]]]:
    rounds = rounds_of(name)
    paths = [path for path in rounds[0].files if not path.split("/")[2].isdigit()]
    found = [(path, without(rounds, path)) for path in paths]
    meminfo = rounds[0].files.get("/proc/meminfo", b"")
    if isinstance(meminfo, bytes):
        names = [row.partition(b":")[0] for row in meminfo.splitlines() if row]
        found += [(repr(row), without(rounds, "/proc/meminfo", row)) for row in names]
    return found


@pytest.mark.parametrize("name", REAL)
def test_nothing_new_fires_and_no_number_grows(name: str) -> None:
    whole = scene_of(rounds_of(name))
    fired, known = firing(whole), numbers(whole)
    for what, rounds in less(name):
        scene = scene_of(rounds)
        assert firing(scene) <= fired, what
        now = numbers(scene)
        for line, size in now.items():
            assert size <= known.get(line, 0) + slack(line, known, now), f"{line} without {what}"


def slack(line: str, known: dict[str, int], now: dict[str, int]) -> int:
    if line == "vmalloc":  # stacks are vmalloc areas, and are told apart by KernelStack alone
        return known.get("kernel stacks", 0)
    if line != "uncounted":
        return 0
    # How many CPUs let a counter drift is one of the things that are missing; and lines that
    # distributions leave out are uncounted there, as the view says.
    gone = sum(known.get(name, 0) for name in LEFT_OUT if name not in now)
    return gone + sum(known.values()) // DRIFT_SHARE


def ledger_of(meminfo: bytes) -> tuple[Ledger, Headroom, Scene]:
    case = parse_case(b"why: a test\n=== /proc/meminfo\n" + meminfo)
    scene = scene_of(list(case.records))
    ledger, headroom = scene.first.get(Ledger), scene.first.get(Headroom)
    assert isinstance(ledger, Ledger)
    assert isinstance(headroom, Headroom)
    return ledger, headroom, scene


def test_seven_lines_say_nothing_of_uncounted_memory() -> None:
    ledger, headroom, scene = ledger_of(SEVEN_LINES)
    assert firing(scene) == set()
    assert ledger.residual_bytes == 0
    assert {"AnonPages", "Slab"} <= set(ledger.missing)
    assert headroom.available_bytes == 147518492 << 10
    verdicts = {i.id: i.finding.verdict for i in judge(load_rules(), scene, Policy())}
    assert {verdicts[rule] for rule in ("SW101", "SW103", "SW122")} == {"blind"}


def test_slab_that_can_be_dropped_is_no_leak() -> None:
    ledger, headroom, scene = ledger_of(BEFORE_3_14)
    assert firing(scene) == set()
    slab = ledger.line("slab")
    assert slab
    assert slab.reclaimable_bytes == 14810428 << 10
    assert headroom.is_estimate
    assert 15.0 * GIB < headroom.available_bytes < 15.5 * GIB


def test_slabinfo_alone_says_nothing_of_the_node() -> None:
    """Real rows, and no meminfo to hold them against."""
    case = parse_case(b"why: a test\n=== /proc/slabinfo\n" + content(EL8, "/proc/slabinfo"))
    scene = scene_of(list(case.records))
    assert firing(scene) == set()
    for topic in (Ledger, FullLedger, Headroom):
        missing = scene.first.get(topic)
        assert isinstance(missing, Unread)
        assert missing.path == "/proc/meminfo"
    findings = {i.id: i.finding for i in judge(load_rules(), scene, Policy())}
    blind = {id_ for id_, finding in findings.items() if finding.verdict == "blind"}
    assert {id_ for id_ in findings if id_.startswith("SW1")} <= blind
