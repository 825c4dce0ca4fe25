"""How a real guard starts, starts afresh and takes over: what must not hold it up, nor end it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end import fuse_server
from tests.end_to_end.guard_room import Room, missing, own_environment, room, within
from tests.end_to_end.verbs import SOURCES

needs_room = pytest.mark.skipif(missing() is not None, reason=missing() or "")
WRONG = "expected true or false, found 7"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as found:
        yield found


def started(own: Room, out: Path) -> "subprocess.Popen[str]":
    """A guard, of which nothing is awaited yet."""
    with out.open("w") as file:
        process = subprocess.Popen(
            [*own.enter, sys.executable, "-m", "seawall", "guard", "run", "--config",
             str(own.config)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, text=True, env=own_environment(),
        )  # fmt: skip
    own.processes.append(process)
    return process


@pytest.mark.system
@pytest.mark.beside
@needs_room
def test_a_second_guard_takes_over_and_a_third_is_refused(own: Room, tmp_path: Path) -> None:
    """As when the guard moves from a DaemonSet to the unit, and the old one goes last."""
    own.write(mode="enforce", watch=False)  # it sleeps for 20 s in deep peace, as it comes
    first = own.begin(tmp_path / "first")
    second = started(own, tmp_path / "second")
    page = own.run / "second/status"
    assert within(20, lambda: page.exists() and f"pid {second.pid} since" in page.read_text())
    third = own.guard("run", "--config", str(own.config))
    assert third.returncode == 2
    assert third.stderr == (
        f"seawall: two guards run on this machine, one that guards (pid {first.pid}) and one that "
        f"observes beside it (pid {second.pid}): a third one is not started\n"
    )
    assert f"observes only: another guard (pid {first.pid}) holds the lock" in page.read_text()
    first.send_signal(signal.SIGTERM)
    assert first.wait(9) == 0
    done = own.guard("undo", "--all")
    assert f"a guard runs (pid {second.pid}): stop it first" in done.stderr
    assert within(32, lambda: own.page().get("pid") == second.pid), page.read_text()
    assert within(15, lambda: own.page().get("can_kill") is True), own.text()
    assert (own.page()["mode"], own.page()["mode_why"]) == ("enforce", "")
    assert json.loads(own.guard("status", "--json").stdout)["pid"] == second.pid
    assert "it starts afresh, to guard in its place" in (tmp_path / "second").read_text()


@pytest.fixture
def stuck_kubelet(tmp_path: Path) -> Iterator[int]:
    """A kubelet whose configuration is on a disk that does not answer."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("a filesystem that never answers needs /dev/fuse: modprobe fuse")
    folder = tmp_path / "disk"
    folder.mkdir()
    serve = "from tests.end_to_end import fuse_server as f; f.FILE_SIZE = 4096; f.serve"
    server = subprocess.Popen(
        [sys.executable, "-c", f"{serve}({str(folder)!r}, ['config.yaml'])"],
        stdout=subprocess.PIPE, cwd=Path(fuse_server.__file__).parents[2],
    )  # fmt: skip
    named = "open('/proc/self/comm', 'w').write('kubelet'); print('is one', flush=True); input()"
    try:
        assert server.stdout
        if server.stdout.readline() != b"mounted\n":
            pytest.skip("mounting FUSE is not allowed here: run with CAP_SYS_ADMIN")
        kubelet = subprocess.Popen(
            [sys.executable, "-I", "-c", named, f"--config={folder}/config.yaml"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert kubelet.stdout
        assert kubelet.stdout.readline() == b"is one\n"
        yield kubelet.pid
        kubelet.communicate(b"\n")
    finally:
        server.kill()  # whoever waits gets ENOTCONN
        server.communicate()
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


@pytest.mark.system
@pytest.mark.beside
@needs_room
def test_a_kubelet_that_cannot_be_asked_holds_no_start_up(
    own: Room, tmp_path: Path, stuck_kubelet: int
) -> None:
    own.write(mode="observe", watch=False, tick_most_seconds=1)
    guard = own.begin(tmp_path / "out")
    assert own.page()["others"] == ["not looked yet"]
    assert "beside it  not looked yet" in own.text()
    asking = [int(pid) for pid in children(own.child(guard.pid, "aide"))]
    assert asking, "a child of the aide waits for the disk"
    assert os.path.exists(f"/proc/{stuck_kubelet}")


@pytest.mark.system
@pytest.mark.beside
@needs_room
def test_no_status_says_that_nobody_else_guards_before_it_was_looked(
    own: Room, tmp_path: Path
) -> None:
    """The aide has mostly looked by the time that the guard is ready; else the next one says it."""
    named = "open('/proc/self/comm', 'w').write('earlyoom'); print('is one', flush=True); input()"
    other = subprocess.Popen(
        [sys.executable, "-I", "-c", named], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout
        assert other.stdout.readline() == b"is one\n"
        own.write(mode="observe", watch=False, tick_most_seconds=1)
        own.begin(tmp_path / "out")
        found = [f"earlyoom (pid {other.pid}) kills on its own"]
        assert own.page()["others"] in (["not looked yet"], found)
        assert within(15, lambda: own.page()["others"] == found), own.text()
    finally:
        other.communicate(b"\n")


@pytest.mark.system
@pytest.mark.beside
@needs_room
def test_sighup_while_it_starts_is_done_when_it_has_started(own: Room, tmp_path: Path) -> None:
    own.write(mode="observe", watch=False, tick_most_seconds=1)
    guard = started(own, tmp_path / "out")
    assert within(20, lambda: bool(children(guard.pid))), "no child that reads the file"
    guard.send_signal(signal.SIGHUP)
    assert within(30, lambda: "the configuration was read anew" in own.sentences()), (
        guard.poll(), own.sentences(),
    )  # fmt: skip
    assert own.page()["pid"] == guard.pid


@pytest.mark.system
@pytest.mark.beside
@needs_room
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_while_it_starts_afresh_is_not_forgotten(
    own: Room, tmp_path: Path, number: signal.Signals
) -> None:
    """It waits for its watcher to end just then, before it becomes the launcher."""
    own.write(mode="observe", tick_most_seconds=1)
    guard = own.begin(tmp_path / "out")
    assert within(16, lambda: own.page()["watcher"].startswith("heard "))
    os.kill(own.child(guard.pid, "aide"), signal.SIGKILL)
    assert within(40, lambda: "it starts afresh" in own.sentences()), own.text()
    guard.send_signal(number)
    if number == signal.SIGTERM:
        assert guard.wait(9) in (0, -signal.SIGTERM)
        return
    assert within(30, lambda: "the configuration was read anew" in own.sentences()), own.sentences()
    assert own.page()["pid"] == guard.pid
    assert guard.poll() is None


@pytest.mark.system
@pytest.mark.beside
@needs_room
def test_a_reload_makes_no_guard_believe_in_a_watcher(own: Room, tmp_path: Path) -> None:
    own.write(mode="enforce", watch=False, tick_most_seconds=1)
    guard = own.begin(tmp_path / "out")
    own.write(mode="enforce", watch=True, protect=["shop/*"], tick_most_seconds=1)
    assert own.guard("check", str(own.config)).returncode == 0
    guard.send_signal(signal.SIGHUP)
    refused = 'the old one stays: protect: "shop/*" is a name, and this guard was started with'
    assert within(10, lambda: refused in own.sentences()), own.sentences()
    own.write(mode="enforce", watch=True, tick_most_seconds=1)
    guard.send_signal(signal.SIGHUP)
    told = "; watch is read at the start only: as before until it is started anew"
    assert within(10, lambda: told in own.sentences()), own.sentences()
    time.sleep(3)  # a watcher that is wanted and not there is told of at once
    assert "watcher" not in own.sentences().replace("watch = false", "")
    assert own.page()["watcher"] == "none: claims and names are missing"


def children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


# --- a file that is wrong ---------------------------------------------------------------------


def test_under_a_unit_a_wrong_file_takes_no_processor_for_ever(tmp_path: Path) -> None:
    """The unit starts it again a second after it has ended: it stays for a while before that."""
    config, out = tmp_path / "guard.toml", tmp_path / "out"
    config.write_text("watch = 7\n")
    config.chmod(0o600)
    argv = [sys.executable, "-m", "seawall", "guard", "run", "--config", str(config)]
    environ = {**own_environment(), "PYTHONPATH": str(SOURCES)}
    with out.open("w") as file:
        alone = subprocess.run(argv, env=environ, stderr=file, check=False, timeout=20)
    assert (alone.returncode, WRONG in out.read_text()) == (2, True)
    with out.open("w") as file:
        unit = subprocess.Popen(argv, env={**environ, "NOTIFY_SOCKET": "/none"}, stderr=file)
    try:
        assert within(20, lambda: WRONG in out.read_text()), "said at once"
        assert "in 20 s it is looked at again" in out.read_text()
        time.sleep(2)
        assert unit.poll() is None
        unit.terminate()
        assert unit.wait(3) == -signal.SIGTERM, "and a stop does not wait"
    finally:
        unit.kill()
        unit.wait()
