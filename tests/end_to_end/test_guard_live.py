"""A real guard on this very machine, whose whole scope is a subtree of cgroups of our own.

What it must survive, what it must say, and whom it must kill: only the culprit.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import Room, missing, own_environment, room, within
from tests.end_to_end.innocents import why_no_rings

from seawall.actions.journal import Change, Journal
from seawall.guard.entry import ENVIRONMENT

MIB = 1 << 20
POD = "pod0a1b2c3d-1111-4222-8333-444455556666"
FOLDERS = ("kubepods", "kubepods/besteffort", f"kubepods/besteffort/{POD}")
HOG = f"{FOLDERS[-1]}/{'ab' * 32}"
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as found:
        yield found


@pytest.mark.skipif(why_no_rings() is not None, reason=why_no_rings() or "")
def test_over_its_limit_the_ring_hog_dies_alone(own: Room, tmp_path: Path) -> None:
    """It holds 250 MiB of packet rings at a limit of 100 MiB; innocents work beside it."""
    ran, message = tmp_path / "ran", message_file(tmp_path / "kubelet")
    hooked = tmp_path / "hooked"
    own.write(
        mode="enforce", over_limit="kill", over_limit_opt_in=[f"{own.scope}/{HOG}"],
        over_limit_seconds=1, kubelet_root=str(tmp_path / "kubelet"), tick_most_seconds=1,
        run_on_decision=f"/bin/sh -c 'echo $SEAWALL_HOW >> {hooked}; cat >> {hooked}'",
        datagram_to="192.0.2.9:5140", run_after_kill=f"/bin/sh -c 'cat > {ran}; sleep 60'",
        textfile=str(tmp_path / "g.prom"),
    )  # fmt: skip
    own.begin(tmp_path / "out")
    for folder in FOLDERS:
        own.make(folder)
    for name in (HOG, "forker", "loader"):
        own.make(name, (100 if name == HOG else 64) * MIB)
    beside = [
        own.start("forker", "forks", "200"),
        own.start("loader", "load_model", str(tmp_path / "model"), str(128 * MIB), "100"),
    ]
    hog = own.start(HOG, "rings", str(250 * MIB), "0", "stdin", own_network=True)
    time.sleep(8)  # that it has no name is known by then
    print("go", file=hog.stdin, flush=True)
    assert within(20, lambda: hog.poll() is not None), own.text()
    died = time.time()
    assert hog.returncode in (-signal.SIGTERM, -signal.SIGKILL)
    assert within(5, lambda: message.read_text().endswith("\n")), own.text()
    assert within(10, lambda: own.page()["returned_bytes"] > 200 * MIB), own.text()
    assert [process.poll() for process in beside] == [None, None]
    # The kubelet looks once a second whether somebody has died.
    assert message.stat().st_mtime - died < 1.0
    _agrees(own, ran, message.read_text())
    # SIGTERM is its first step; a second one, if it was needed, is told too.
    how, line = hooked.read_text().splitlines()[:2]
    assert how == "acted"
    assert json.loads(line)["decision"] == json.loads(ran.read_text())["decision"]


def test_it_is_disarmed_by_its_file_alone(own: Room, tmp_path: Path) -> None:
    """Within seconds and without a signal; armed again only by one."""
    own.write(mode="enforce", tick_most_seconds=20)
    guard = own.begin(tmp_path / "out")
    assert within(16, lambda: own.page()["mode"] == "enforce")
    time.sleep(2)
    own.write(mode="observe", tick_most_seconds=20)
    assert within(10, lambda: own.page()["mode"] == "observe"), own.text()
    own.write(mode="enforce", tick_most_seconds=20)
    assert within(10, lambda: "waits for a reload" in " ".join(own.text().split())), own.text()
    assert own.page()["mode"] == "observe"
    guard.send_signal(signal.SIGHUP)
    assert within(10, lambda: own.page()["mode"] == "enforce"), own.text()


def message_file(kubelet: Path) -> Path:
    """As a kubelet makes it for one start of a container, whose last words are in it."""
    path = kubelet / f"pods/{POD.removeprefix('pod')}/containers/worker/0a1b2c3d"
    path.parent.mkdir(parents=True)
    path.write_text("cannot allocate")
    path.chmod(0o666)
    return path


def _agrees(own: Room, ran: Path, message: str) -> None:
    """Journal, status, command, log and termination message tell the same of it."""
    rows = [row for row in own.journal() if row["decision"]]
    decision = rows[0]
    assert {row["decision"] for row in rows} == {decision["decision"]}
    assert (decision["kind"], decision["trigger"]) == ("verdict", "over_limit")
    assert [order["cgroup"] for order in decision["orders"]] == [f"{own.scope}/{HOG}"]
    assert "container:abababababab has " in decision["sentence"]
    assert "holds 250 MiB of uncounted memory (" in decision["sentence"]
    words, sentence = message.splitlines()[:2]
    assert words == "cannot allocate"
    assert "by seawall guard at 20" in sentence
    assert f"(decision {decision['decision']}, over_limit)" in sentence
    assert sentence.endswith(decision["sentence"])
    page = own.page()
    assert (page["kills"], page["decisions"]) == (1, 1)
    assert page["last_decision"]["decision"] == decision["decision"]
    # Of the whole machine's headroom: others on it give back, too.
    assert page["returned_bytes"] > 0.8 * page["predicted_bytes"] > 190 * MIB
    assert "came back in" in page["last_decision"]["result"]
    assert within(5, lambda: ran.exists() and ran.read_text().endswith("}\n"))
    assert json.loads(ran.read_text())["decision"] == decision["decision"]


def test_it_survives_the_loss_of_its_helpers(own: Room, tmp_path: Path) -> None:
    """A watcher is started again and heard; without an aide it begins afresh, as the same pid."""
    own.write(mode="observe", tick_most_seconds=1)
    guard = own.begin(tmp_path / "out")
    assert within(16, lambda: own.page()["watcher"].startswith("heard "))
    given = Path(f"/proc/{guard.pid}/environ").read_text().split("\0")
    assert {f"{name}={value}" for name, value in ENVIRONMENT.items()} <= set(given)
    first = own.child(guard.pid, "watcher")
    os.kill(first, signal.SIGKILL)
    assert within(5, lambda: "the watcher is gone" in own.sentences()), own.text()
    aide = own.child(guard.pid, "aide")
    assert within(10, lambda: own.child(aide, "watcher") not in (0, first))
    assert within(16, lambda: own.page()["watcher"].startswith("heard ")), own.text()
    assert _state_of(first) != "Z", "a watcher that ended was reaped"
    os.kill(aide, signal.SIGKILL)
    assert within(5, lambda: "its aide is gone" in own.sentences())
    assert "!! its aide is gone" in own.text()
    since = own.page()["since_unix_seconds"]
    assert within(40, lambda: own.page().get("since_unix_seconds", since) != since), own.text()
    assert within(10, lambda: own.page().get("can_kill") is True), own.text()
    assert guard.poll() is None
    assert own.page()["pid"] == guard.pid
    assert own.page()["mode_why"] == "", "it has its own lock"
    assert own.child(guard.pid, "aide") not in (0, aide)
    assert "it starts afresh" in own.sentences()


def test_helpers_that_hang_are_replaced(own: Room, tmp_path: Path) -> None:
    """SIGSTOP: alive, and of no use.  What they held and made goes with them."""
    own.write(mode="observe", tick_most_seconds=1)
    guard = own.begin(tmp_path / "out")
    assert within(16, lambda: own.page()["watcher"].startswith("heard "))
    first = own.child(guard.pid, "watcher")
    traced = _instances()
    os.kill(first, signal.SIGSTOP)
    assert within(9, lambda: _state_of(first) in ("", "Z")), own.text()
    assert "the watcher hangs: it is stopped (SIGSTOP); it is killed" in own.sentences()
    assert within(9, lambda: own.page()["watcher"].startswith("heard ")), own.text()
    assert "; number 2, the one before hung: it is stopped" in own.page()["watcher"]
    left = [name for name in _instances() & traced if name.startswith(f"seawall-{first}-")]
    assert left == []
    aide = own.child(guard.pid, "aide")
    second = own.child(aide, "watcher")
    os.kill(aide, signal.SIGSTOP)
    assert within(9, lambda: _state_of(aide) in ("", "Z")), own.text()
    assert "its aide hangs: it is stopped (SIGSTOP); it is killed" in own.sentences()
    assert "!! its aide is gone" in own.text()
    os.kill(second, signal.SIGSTOP)  # it will not hear that the guard has ended
    assert within(3, lambda: _state_of(second) == "T")
    guard.send_signal(signal.SIGTERM)
    assert guard.wait(9) == 0
    assert within(3, lambda: _state_of(second) in ("", "Z"))


def _instances() -> set[str]:
    """Of everybody who traces here."""
    for tree in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        if os.path.isdir(f"{tree}/instances"):
            return set(os.listdir(f"{tree}/instances"))
    return set()


def _state_of(pid: int) -> str:
    path = Path(f"/proc/{pid}/stat")
    return path.read_text().rpartition(")")[2].split()[0] if path.exists() else ""


def test_a_killed_guard_leaves_nothing_frozen_and_a_second_one_observes(
    own: Room, tmp_path: Path
) -> None:
    own.write(mode="enforce", watch=False, tick_most_seconds=1)
    own.make("web")
    web = own.start("web", "hold", "4096")
    thawed = own.state("web")
    guard = own.begin(tmp_path / "out")
    second = own.guard("status", "--json")
    assert json.loads(second.stdout)["pid"] == guard.pid
    out = tmp_path / "second"
    with out.open("w") as file:
        beside = subprocess.Popen(
            [*own.enter, sys.executable, "-m", "seawall", "guard", "run", "--config",
             str(own.config)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, text=True, env=own_environment(),
        )  # fmt: skip
    own.processes.append(beside)
    page = own.run / "second/status"
    assert within(15, lambda: page.exists() and "seawall guard OBSERVE" in page.read_text())
    assert f"observes only: another guard (pid {guard.pid}) holds the lock" in page.read_text()
    os.kill(guard.pid, signal.SIGKILL)
    assert guard.wait(5) == -signal.SIGKILL
    frozen = own.folders("web")[-1]
    _freeze_as_a_guard_would(own, frozen)
    _kill_as_a_guard_would(own, frozen)
    assert own.state("web") != thawed
    assert own.guard("undo").stdout == f"{frozen}: thawed\n", "as ExecStopPost= does it"
    assert own.state("web") == thawed
    _freeze_as_a_guard_would(own, frozen)
    own.begin(tmp_path / "third")
    assert own.state("web") == thawed
    assert within(5, lambda: f"{frozen}: thawed" in own.sentences()), own.sentences()
    cut_short = "the guard before was ended while it sent SIGKILL, by decision 5eed5eed-0041, to "
    assert own.sentences().count(f"{cut_short}{frozen}") == 1
    assert web.poll() is None


def _kill_as_a_guard_would(own: Room, folder: Path) -> None:
    """It is killed before it tells of it."""
    journal = Journal(str(own.run / "guard.undo"))
    journal.open()
    inode = folder.stat().st_ino
    assert journal.note(Change("signal", str(folder), inode, "", "SIGKILL", "5eed5eed-0041"))
    journal.close()


def _freeze_as_a_guard_would(own: Room, folder: Path) -> None:
    """Journal first, then the freeze; then it is killed."""
    is_v1 = (folder / "freezer.state").exists()
    old, new = ("THAWED", "FROZEN") if is_v1 else ("0", "1")
    journal = Journal(str(own.run / "guard.undo"))
    journal.open()
    change = Change("freeze1" if is_v1 else "freeze2", str(folder), folder.stat().st_ino, old, new,
                    "5eed-1")  # fmt: skip
    assert journal.begin(change) is not None
    journal.close()
    (folder / ("freezer.state" if is_v1 else "cgroup.freeze")).write_text(new)


def test_it_reads_its_file_anew_and_keeps_the_old_one_when_it_is_wrong(
    own: Room, tmp_path: Path
) -> None:
    own.write(mode="observe", watch=False, tick_most_seconds=1)
    guard = own.begin(tmp_path / "out")
    own.write(mode="enforce", watch=False, tick_most_seconds=1)
    guard.send_signal(signal.SIGHUP)
    assert within(10, lambda: own.page()["mode"] == "enforce"), own.text()
    assert "read anew, mode ENFORCE: it may kill; scope /seawall-TEST-" in own.sentences()
    own.config.write_text('mode = "kill"\n')
    guard.send_signal(signal.SIGHUP)
    wrong = f'{own.config}:1: mode: expected "observe" or "enforce", found "kill"'
    assert within(10, lambda: wrong in own.sentences()), own.sentences()
    assert own.page()["mode"] == "enforce"
    own.config.chmod(0o666)
    guard.send_signal(signal.SIGHUP)
    assert within(10, lambda: "others may write this file" in own.sentences())
    done = own.guard("check", str(own.config))
    assert (done.returncode, done.stdout) == (2, "")
    own.config.chmod(0o600)
    own.write(mode="observe", watch=False, tick_most_seconds=1)
    guard.send_signal(signal.SIGHUP)
    assert within(10, lambda: own.page()["mode"] == "observe")


def test_names_from_containers_reach_no_terminal_as_they_are(own: Room, tmp_path: Path) -> None:
    own.write(mode="observe", watch=True, tick_most_seconds=1)
    hostile = "\x1b[2J IT CANNOT KILL " + "x" * 200
    own.make(hostile, 256 * MIB)
    own.start(hostile, "hold", str(200 * MIB))  # the status shows the three largest
    own.begin(tmp_path / "out")
    assert within(10, lambda: "xxx" in own.text()), own.text()
    shown = own.guard("status").stdout
    for text in (own.text(), shown, (own.run / "decisions.jsonl").read_text()):
        assert "\x1b" not in text
    assert all(len(line) <= 80 for line in own.text().splitlines())
    explained = own.guard("explain", "--whole", "--config", str(own.config)).stdout
    assert "\x1b" not in explained
    assert "xxx" in explained
    json.loads(own.guard("status", "--json").stdout)


def test_a_full_run_does_not_keep_it_from_guarding(own: Room, tmp_path: Path) -> None:
    """What fills /run may be the very shortage: it says what it lacks and can still kill."""
    own.write(mode="enforce", watch=False, tick_most_seconds=1)
    fill = subprocess.run(
        ["dd", "if=/dev/zero", f"of={own.run}/full", "bs=4096"], capture_output=True, check=False
    )
    assert b"No space left" in fill.stderr
    out = tmp_path / "out"
    with out.open("w") as file_out:
        guard = subprocess.Popen(
            [*own.enter, sys.executable, "-m", "seawall", "guard", "run", "--config",
             str(own.config)],
            stdin=subprocess.DEVNULL, stdout=file_out, stderr=file_out, text=True,
            env=own_environment(),
        )  # fmt: skip
    own.processes.append(guard)
    lacks = "guard.undo: No space left on device: it freezes and clamps nobody"
    assert within(15, lambda: lacks in out.read_text()), out.read_text()
    assert "Traceback" not in out.read_text()
    time.sleep(1)
    assert guard.poll() is None
