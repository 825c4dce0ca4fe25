"""What each process of a real guard may, as the kernel says it: /proc/PID/task/TID/status."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import Room, missing, own_environment, room, within

from seawall.guard.tell.spare_children import KINDS as KINDS_OF_SPARES
from seawall.proc import capabilities as cap
from seawall.proc.process_rights import JOBS, NAMES, RIGHTS

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]
PROCESSES = {
    "seawall-guard": "guard", "seawall-helper": "helper", "seawall-watcher": "watcher",
    "seawall-reader": "reader", "seawall-record": "recorder",
}  # fmt: skip
KINDS = ("Eff", "Prm", "Inh", "Amb", "Bnd")
FEWER = """
import sys
sys.path.insert(0, sys.argv[1])
from seawall.proc import capabilities as cap
kept = cap.held()[1] & ~(1 << cap.NET_RAW | 1 << cap.SYSLOG | 1 << cap.SETPCAP)
cap.bound(kept)
cap.hold(kept, kept)
import os
os.execvp(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as found:
        found.write(mode="observe", blackbox=str(tmp_path / "box"))
        yield found


def tasks(pid: int) -> dict[str, list[dict[str, str]]]:
    """Of the guard and all that it started: the statuses of their threads, by name."""
    found: dict[str, list[dict[str, str]]] = {}
    pids = [pid]
    for one in pids:
        try:
            comm = Path(f"/proc/{one}/comm").read_text().strip()
            folders = list(Path(f"/proc/{one}/task").iterdir())
        except OSError:  # it has ended
            continue
        for folder in folders:
            try:
                text = (folder / "status").read_text()
                pids += map(int, (folder / "children").read_text().split())
            except OSError:
                continue
            status = dict(line.partition(":\t")[::2] for line in text.splitlines())
            found.setdefault(comm, []).append(status)
    return found


def names(bits: str) -> set[str]:
    held = int(bits, 16)
    return {NAMES.get(number, str(number)) for number in range(64) if held >> number & 1}


def checked(pid: int, given: set[str]) -> None:
    """``given``: what the guard was started with."""
    assert within(90, lambda: set(PROCESSES) <= set(tasks(pid)))
    assert within(90, lambda: not wrong(tasks(pid), given)), wrong(tasks(pid), given)


def wrong(found: dict[str, list[dict[str, str]]], given: set[str]) -> list[str]:
    """What is not as the table says, in any thread; a process that starts just now is not yet."""
    says = []
    for name, process in PROCESSES.items():
        table = {NAMES[number] for number in RIGHTS[process]}
        if process in ("watcher", "reader", "recorder") and "CAP_SYS_RESOURCE" not in given:
            table.add("CAP_IPC_LOCK")
        table &= given
        for status in found.get(name) or [{}]:
            held = {kind: names(status.get(f"Cap{kind}", "0")) for kind in KINDS}
            bound = held["Bnd"] if "CAP_SETPCAP" in given else set()
            if process in ("guard", "helper"):
                # An exec by root gives what is bound, which only CAP_SETPCAP lessens.
                is_so = held["Eff"] == table and bound <= set(NAMES.values())
            else:
                is_so = held["Eff"] == held["Prm"] == table and bound <= table
                is_so &= (status.get("NoNewPrivs"), status.get("Seccomp")) == ("1", "2")
            if not is_so or held["Inh"] or held["Amb"]:
                says.append(f"{name}: {status}")
    may = {NAMES[number] for jobs in (RIGHTS["reader"], *(JOBS[kind] for kind in KINDS_OF_SPARES))
           for number in jobs}  # fmt: skip
    for status in found.get("seawall-spare") or [{}]:  # of the reader, and of the helper
        held = names(status.get("CapPrm", "0"))
        if not held <= may | {"CAP_IPC_LOCK"} or status.get("Seccomp") != "2":
            says.append(f"seawall-spare: {status}")
    return says


def test_each_process_holds_what_the_table_says(own: Room, tmp_path: Path) -> None:
    given = names(f"{cap.held()[1]:x}")
    guard = own.begin(tmp_path / "out")
    checked(guard.pid, given)
    page = own.page()
    assert page["can_kill"] is True
    assert "could signal" not in own.text()
    assert "rights that it does not need" not in own.text()


def test_a_guard_with_fewer_gives_each_what_it_has(own: Room, tmp_path: Path) -> None:
    """As in a container that was given fewer; without CAP_SETPCAP no bounding set shrinks."""
    sources = str(Path(__file__).parents[2] / "src")
    with (tmp_path / "out").open("w") as file:
        guard = subprocess.Popen(
            [*own.enter, sys.executable, "-I", "-c", FEWER, sources, sys.executable, "-m",
             "seawall", "guard", "run", "--config", str(own.config)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, text=True, env=own_environment(),
        )  # fmt: skip
    own.processes.append(guard)
    assert within(60, lambda: own.page().get("can_kill") is True), (tmp_path / "out").read_text()
    given = names(f"{cap.held()[1]:x}") - {"CAP_NET_RAW", "CAP_SYSLOG", "CAP_SETPCAP"}
    checked(guard.pid, given)


def test_a_watcher_and_a_recorder_that_come_later_hold_no_more(own: Room, tmp_path: Path) -> None:
    guard = own.begin(tmp_path / "out")
    for what in ("watcher", "recorder"):
        assert within(20, lambda what=what: own.child(guard.pid, what) > 0)
        os.kill(own.child(guard.pid, what), 9)
    checked(guard.pid, names(f"{cap.held()[1]:x}"))
