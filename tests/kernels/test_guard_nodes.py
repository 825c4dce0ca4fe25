"""Whole nodes run out of memory with the guard on: the culprit goes, nobody else does.

What was declared beforehand stands in guard_scenarios.py.  `make test-system` runs a few, of every
kind one; `make guard-nodes` all that short tails allow, `make marks` the long ones, `make campaign`
hundreds.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
from tests.kernels import built_modules, guard_peers, vm
from tests.kernels.guard_boots import NODE_LINE, run_all
from tests.kernels.guard_campaign import own
from tests.kernels.guard_node import Report
from tests.kernels.guard_scenarios import CI, MARKS, NODES, QUIET, Scenario

pytestmark = [pytest.mark.system, pytest.mark.timeout(5400)]
SERVED_LEAST = 0.99
STALL_MOST_SECONDS = 3.0
STATUS_SECONDS = 1.0
GROWN_MOST_KIB = 4096
FIRST_USE_KIB = 32
"""Buffers that are used for the first time."""
RESIDENT_MOST_BYTES = 16_000_000
"""Of the guard alone; 15.3 were measured.  The mark is the sum of its processes (decision 0032)."""
MAPPED_AROUND_BYTES = 1 << 20
"""Pages of programs that the kernel maps with those beside them, when they are in its cache."""
FIRST_ACTION_SECONDS = 0.02
TCG_FACTOR = 20
"""Emulated processors are three to ten times slower, and two of them share what there is."""
IS_ALL = bool(os.environ.get("SEAWALL_MARKS"))
RUNS = MARKS if IS_ALL else NODES if os.environ.get("SEAWALL_NODES") == "all" else CI
UNTOUCHED = (*QUIET, "over limit, report")
AT_WORK_A_SECOND = {"model": 10 << 20, "receiver": 10 << 20, "forker": 5}
"""A fourth or less of what they do on a fifth of an emulated processor each; bytes, and forks."""


def missed(mark: str) -> None:
    """A mark that hangs on the speed of the emulator, where the watcher's evidence may come
    too late: asserted by `make marks`.  What may never happen is asserted always.
    """
    if IS_ALL:
        pytest.fail(mark)
    pytest.skip(f"mark missed: {mark}")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Report]]:
    if why := vm.missing() or built_modules.missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("guard")
    image = vm.build_image(folder, guard_peers.add_systemd)
    lacking = guard_peers.missing(guard_peers.SYSTEMD)
    runs = [case for case in RUNS if not (lacking and case.systemd)]
    yield {report.scenario.id: report for report in run_all(image, runs, vms=1, a_boot=8)}
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def second(
    reports: dict[str, Report], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Report]]:
    """Those that went wrong, once more: an emulator's bad luck does not come twice."""
    wrong = [r.scenario for r in reports.values() if r.raw and not r.is_right]
    folder = tmp_path_factory.mktemp("guard-again")
    image = vm.build_image(folder, guard_peers.add_systemd) if wrong else None
    yield {r.scenario.id: r for r in run_all(image, wrong, vms=1, a_boot=8)} if image else {}
    shutil.rmtree(folder)


def found(reports: dict[str, Report], case: Scenario) -> Report:
    if case.id not in reports:
        pytest.skip(guard_peers.missing(guard_peers.SYSTEMD) or "it did not run")
    return reports[case.id]


CASES = pytest.mark.parametrize("case", RUNS, ids=lambda case: case.id)


@CASES
def test_the_culprit_goes_and_nobody_else(
    reports: dict[str, Report], second: dict[str, Report], case: Scenario,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    """What the guard may never do is asserted of each run; that the kernel came first may be the
    emulator's luck once, and not twice.
    """
    report = found(reports, case)
    runs = [report, *([second[case.id]] if case.id in second else [])]
    may = set() if case.kernel_may else {*case.victims, *case.may_die}
    for run in runs:
        record_property(NODE_LINE, run.line())
        assert run.told["is_up"], f"the guard did not get ready\n{run.log_tail}"
        assert not run.signalled - may, f"{run.signalled}: {run.line()}\n{run.log_tail}"
        assert not run.guard_invokers, f"the guard itself began it: {run.guard_invokers}"
    assert any(run.is_right for run in runs), "".join(f"{r.line()}\n{r.log_tail}\n" for r in runs)
    if not report.is_right:
        missed(report.line())


def test_no_boot_fell_silent(reports: dict[str, Report]) -> None:
    """A node that hangs with the guard on must not be hidden by its second boot."""
    lost = {r.scenario.id: r.lost_console[-1500:] for r in reports.values() if r.lost_console}
    if lost:
        missed(f"booted again: {lost}")


def test_nearly_all_culprits_go_by_the_guards_hand(reports: dict[str, Report]) -> None:
    """Each alone may be the emulator's bad luck; many are not."""
    cases = [r for r in reports.values() if r.scenario.victims and not r.scenario.kernel_may]
    by_guard = [r for r in cases if set(r.scenario.victims) <= r.by_guard]
    harmed = [r.line() for r in cases if r.innocents]
    assert len(cases) < 10 or len(by_guard) >= 0.8 * len(cases), [r.line() for r in cases]
    assert len(harmed) <= 0.1 * len(cases), harmed


@pytest.mark.parametrize("name", AT_WORK_A_SECOND)
def test_the_innocents_were_at_work(reports: dict[str, Report], name: str) -> None:
    rates = [report.rates[name] for report in reports.values() if name in report.rates]
    assert len(rates) >= 0.8 * sum(
        name in {load.name for load in r.scenario.loads} for r in reports.values()
    )
    print(f"{name}: {median(rates):,.0f} a second, the median of {len(rates)}")  # noqa: T201 - shown by -rP
    assert median(rates) >= AT_WORK_A_SECOND[name]


def test_without_a_culprit_nothing_is_done(reports: dict[str, Report]) -> None:
    cases = [r for r in reports.values() if r.scenario.name in UNTOUCHED]
    assert cases
    assert [(r.scenario.id, r.actions) for r in cases if r.actions] == []
    vain = [(r.scenario.id, r.not_reached) for r in cases if r.not_reached]
    assert vain == [], "not the state that is meant"


@CASES
def test_the_node_is_left_as_it_was(reports: dict[str, Report], case: Scenario) -> None:
    left = [note for note in found(reports, case).told["notes"] if "cat status" not in note]
    assert not [note for note in left if note.startswith("LEFT")]
    if left and not case.spoils_node:
        missed("; ".join(left))


@CASES
def test_the_guard_neither_faults_nor_grows(reports: dict[str, Report], case: Scenario) -> None:
    report = found(reports, case)
    is_changed = any(what in {"murder", "restart"} for _, what in case.acts)
    if is_changed or report.has_another_guard:
        pytest.skip("it is another process in the end")
    began, ended = report.guard_numbers
    faults = ended["major_faults"] - began["major_faults"]
    grown = ended["resident_kib"] - began["resident_kib"]
    assert grown <= GROWN_MOST_KIB
    resident = ended["resident_kib"] << 10
    assert resident <= RESIDENT_MOST_BYTES + MAPPED_AROUND_BYTES
    if faults or grown > FIRST_USE_KIB or resident > RESIDENT_MOST_BYTES:
        where = f" ({report.guard_faults})" if faults else ""
        missed(
            f"{faults} major faults since it was ready{where}, {grown} KiB more "
            f"({own(report)['grown_kib']}), {resident:,} bytes"
        )


def test_a_replay_decides_as_the_guard_did(reports: dict[str, Report], tmp_path: Path) -> None:
    """Of every boot's black box: each decision that it holds, to the frame."""
    boxes = {data for report in reports.values() if (data := report.blackbox)}
    assert boxes, "no boot brought a black box back"
    decisions, different, unwritten = 0, [], []
    for number, data in enumerate(boxes):
        path = tmp_path / f"{number}.box"
        path.write_bytes(data)
        path.chmod(0o600)
        command = [sys.executable, "-m", "seawall", "guard", "replay", str(path), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        for boot in json.loads(done.stdout)["boots"]:
            as_live = boot["as_live"]
            different += as_live["different"]
            unwritten += as_live["not_in_the_journal"]
            decisions += as_live["same"]
    print(f"{decisions} decisions of {len(boxes)} boots as live")  # noqa: T201 - shown by -rP
    assert decisions
    assert not different, f"{len(different)} decisions were others"
    if unwritten:  # of a guard that was killed before it wrote them
        missed(f"{len(unwritten)} decisions stand in no journal: {unwritten}")


def test_why_in_the_black_box_names_whom_the_guard_named(
    reports: dict[str, Report], tmp_path: Path
) -> None:
    """At the moment of a decision about uncounted memory, by the rules of live."""
    asked = 0
    for report in reports.values():
        sure = [
            row for row in report.decisions
            if row.get("orders") and "of uncounted memory" in row["sentence"]
        ]  # fmt: skip
        if not sure or report.blackbox is None:
            continue
        path = tmp_path / "box"
        path.write_bytes(report.blackbox)
        path.chmod(0o600)
        command = [sys.executable, "-m", "seawall", "why", "--json", "--from", str(path)]
        done = subprocess.run(
            [*command, "--at", sure[0]["decision"]], capture_output=True, text=True, check=False,
            timeout=120,
        )  # fmt: skip
        assert done.stdout, (report.scenario.id, done.stderr)
        document = json.loads(done.stdout)
        told = [finding for finding in document["findings"] if finding["id"] == "SW122"]
        named = {finding["workload"] for finding in told if finding["verdict"] == "fires"}
        name, decision = sure[0]["orders"][0]["name"], sure[0]["decision"]
        if name not in named and any(what == "murder" for _, what in report.scenario.acts):
            # Killed with its recorder just after it: its words are all there is.
            notes = " ".join(document["bundle_notes"])
            assert f"by which {decision} was taken was not recorded" in notes, report.scenario.id
            assert name in notes
            continue
        assert name in named, f"{report.scenario.id}: {told}"
        asked += 1
    if not asked:
        missed("no black box holds a decision about uncounted memory")


def test_the_canary_is_served(reports: dict[str, Report]) -> None:
    rows = [report for report in reports.values() if report.scenario.victims]
    slots = sum(report.told["canary"]["slots"] for report in rows)
    served = sum(report.told["canary"]["served"] for report in rows)
    stall = max(report.told["canary"]["longest_stall_seconds"] for report in rows)
    tail = max(report.scenario.tail_seconds for report in rows)
    until = f"until {tail:g} s after the end"
    print(f"served {served} of {slots} slots {until}, longest stall {stall:.2f} s")  # noqa: T201 - shown by -rP
    dead = [r.scenario.name for r in rows if r.told["canary"]["died_at"] is not None]
    if dead or stall >= STALL_MOST_SECONDS or served < SERVED_LEAST * slots:
        missed(
            f"canary dead in {dead}, longest stall {stall:.1f} s, "
            f"{served / slots:.2%} of the slots were served {until}, {SERVED_LEAST:.0%} is the mark"
        )


def test_status_is_read_at_once_in_a_thrash(reports: dict[str, Report]) -> None:
    """Of a guard that only observes, so that the thrash goes on; nor does it fault itself."""
    rows = [r for r in reports.values() if r.scenario.name == "thrash, observed"]
    if not rows:
        pytest.skip("no thrash among these runs: make marks")
    for report in rows:
        told = report.told
        notes = [note for note in told["notes"] if note.startswith("cat status")]
        seconds = [float(note.split()[2]) for note in notes]
        low = told["memory"]["low_at"]
        assert low is not None
        assert low < report.scenario.acts[0][0]
        assert not told["memory"]["is_back"]
        began, ended = report.guard_numbers
        faults = ended["major_faults"] - began["major_faults"]
        print(f"cat status in {seconds} s, {faults} major faults, short since {low:.1f} s")  # noqa: T201 - shown by -rP
        assert len(seconds) == len(report.scenario.acts)
        assert max(seconds) < STATUS_SECONDS
        assert faults == 0, report.guard_faults


def test_the_first_action_follows_the_decision_at_once(reports: dict[str, Report]) -> None:
    taken = [t for report in reports.values() for t in report.first_actions]
    if not taken:
        missed("nobody was acted on")
    assert max(taken) < FIRST_ACTION_SECONDS * TCG_FACTOR
