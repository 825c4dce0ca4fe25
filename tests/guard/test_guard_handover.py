"""What the launcher hands over, the lock, and what systemd hears."""

import fcntl
import os
import socket
import threading
from pathlib import Path

import pytest

from seawall.actions.orders import Mounts
from seawall.guard import lock_file
from seawall.guard.handover import (
    GuardHandover,
    from_json,
    handover_from_json,
    handover_json,
    left_for_start,
    reloaded_settings,
    settings_descriptor,
    take_handover,
    take_settings,
    to_json,
)
from seawall.guard.launcher import take_place
from seawall.guard.notify import Notify
from seawall.guard.own_place import cgroup_holding, cgroup_in_text
from seawall.guard.settings import Settings
from seawall.problems import UsageProblem

HANDED = GuardHandover(
    settings=Settings(mode="enforce", scope=("/a", "/\udcff"), freeze_seconds=1.0),
    config_path="/etc/seawall/guard.toml",
    mounts=Mounts("/sys/fs/cgroup/memory", 1, "/sys/fs/cgroup/freezer", None),
    own_cgroup="/seawall-guard.service",
    boot_id="5eed",
    folder="/run/seawall",
    lock_fd=3,
    other_guard_pid=0,
    watcher_fd=-1,
    watcher_pid=0,
    others=("earlyoom (pid 7)",),
)


def test_everything_arrives() -> None:
    assert handover_from_json(handover_json(HANDED)) == HANDED
    fd = os.memfd_create("handed")
    os.write(fd, handover_json(HANDED).encode())
    os.lseek(fd, 0, os.SEEK_SET)
    assert take_handover(fd) == HANDED
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"mode": "observe"}', to_json(Settings()).replace("0.06", '"0.06"'),
     to_json(Settings()).replace('"stuck": true', '"stuck": 1'),
     to_json(Settings()).replace('"protect": []', '"protect": [1]')],
)  # fmt: skip
def test_what_are_no_settings_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(text)


def test_a_second_guard_observes_whatever_the_file_says_later() -> None:
    text = to_json(Settings(mode="enforce", kills_per_minute=2))
    assert reloaded_settings(text, HANDED).mode == "enforce"
    second = HANDED._replace(other_guard_pid=12)
    assert reloaded_settings(text, second) == Settings(mode="observe", kills_per_minute=2)


def test_what_is_read_at_the_start_only_stays_at_a_reload() -> None:
    """A guard without a watcher does not come to believe in one: who a pod is nobody tells it."""
    started = HANDED._replace(settings=Settings(mode="enforce", watch=False, blackbox="/box"))
    text = to_json(Settings(mode="enforce", blackbox="/box", stuck=False))
    in_force = reloaded_settings(text, started)
    assert in_force == started.settings._replace(stuck=False)
    assert left_for_start(text, in_force) == (
        "; watch is read at the start only: as before until it is started anew"
    )
    text = to_json(Settings(watch=False, blackbox="", blackbox_size_bytes=1 << 20))
    in_force = reloaded_settings(text, started)
    assert in_force == started.settings._replace(mode="observe")
    assert left_for_start(text, in_force) == (
        "; blackbox, blackbox_size are read at the start only: as before until it is started anew"
    )
    assert left_for_start(to_json(started.settings), started.settings) == ""


@pytest.mark.parametrize("key", ["protect", "unprotect", "over_limit_opt_in"])
def test_names_are_refused_by_a_guard_that_has_no_watcher(key: str) -> None:
    """The file alone is right: it says watch = true."""
    started = HANDED._replace(settings=Settings(watch=False))
    names: dict[str, tuple[str, ...]] = {key: ("/a", "*x", "shop/*")}
    with pytest.raises(
        ValueError, match=f'{key}: "shop/\\*" is a name, and this guard was started'
    ):
        reloaded_settings(to_json(Settings()._replace(**names)), started)
    assert (
        getattr(reloaded_settings(to_json(Settings()._replace(**names)), HANDED), key) == names[key]
    )


def test_a_second_guard_has_a_place_of_its_own_and_a_third_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "run")
    first = take_place(folder)
    assert first == (folder, first.lock_fd, 0)
    second = take_place(folder)
    assert second == (f"{folder}/second", second.lock_fd, os.getpid())
    assert f"this one observes, its status is in {folder}/second" in capsys.readouterr().err
    with pytest.raises(UsageProblem, match=r"two guards run .*: a third one is not started"):
        take_place(folder)
    os.close(second.lock_fd)
    again = take_place(folder)
    assert again == (f"{folder}/second", again.lock_fd, os.getpid())
    os.close(first.lock_fd)
    third = take_place(folder)
    assert third == (folder, third.lock_fd, 0), "the first place is free"
    for place in (again, third):
        os.close(place.lock_fd)


def test_one_lock_a_machine(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    assert lock_file.holder(folder) == 0
    first = lock_file.take(folder)
    assert (first.fd >= 0, first.other_pid) == (True, 0)
    assert lock_file.take(folder) == (-1, os.getpid())
    assert lock_file.holder(folder) == os.getpid()
    os.close(first.fd)
    assert lock_file.holder(folder) == 0
    again = lock_file.take(folder)
    assert again.other_pid == 0
    os.close(again.fd)


def test_the_lock_is_the_files_own_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / "guard.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageProblem, match=r"guard\.lock"):
        lock_file.take(str(tmp_path))
    assert (tmp_path / "elsewhere").read_text() == "precious"


def test_a_lock_that_outlives_exec_is_still_seen(tmp_path: Path) -> None:
    lock = lock_file.take(str(tmp_path))
    other = os.dup(lock.fd)
    os.close(lock.fd)
    assert lock_file.holder(str(tmp_path)) == os.getpid()
    fcntl.flock(other, fcntl.LOCK_UN)
    os.close(other)
    assert lock_file.holder(str(tmp_path)) == 0


def test_somebody_who_only_asks_makes_no_second_guard(tmp_path: Path) -> None:
    """``guard status`` has the lock for a moment, shared, just when a guard starts."""
    os.close(lock_file.take(str(tmp_path)).fd)
    asking = os.open(tmp_path / lock_file.NAME, os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    ends = threading.Timer(0.15, os.close, [asking])
    ends.start()
    lock = lock_file.take(str(tmp_path))
    ends.join()
    assert lock.other_pid == 0
    os.close(lock.fd)


@pytest.mark.parametrize("is_left", ["folder", "nothing"])
def test_a_lock_file_that_is_removed_while_it_is_waited_for(tmp_path: Path, is_left: str) -> None:
    """``guard undo --all``: the lock is taken on the file that is there, which everybody finds."""
    folder = tmp_path / "run"
    held = lock_file.hold(str(folder))

    def ends() -> None:
        (folder / lock_file.NAME).unlink()
        if is_left == "nothing":
            folder.rmdir()
        os.close(held.fd)

    timer = threading.Timer(0.15, ends)
    timer.start()
    lock = lock_file.take(str(folder))
    timer.join()
    assert lock.other_pid == 0
    assert lock_file.holder(str(folder)) == os.getpid()
    assert lock_file.take(str(folder)) == (-1, os.getpid())
    os.close(lock.fd)


def test_systemd_hears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        monkeypatch.setenv("WATCHDOG_USEC", "90000000")
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
        notify = Notify()
        assert notify.watchdog_seconds == 45.0
        assert notify.say(b"READY=1")
        assert listening.recv(100) == b"READY=1"
    assert not notify.say(b"WATCHDOG=1")  # nobody listens any more: not waited for, not raised
    notify.close()
    assert notify.fd == -1
    assert not notify.say(b"STOPPING=1")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    monkeypatch.setenv("NOTIFY_SOCKET", "")
    assert Notify().watchdog_seconds == 0.0


def test_an_abstract_socket_is_heard_too() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0seawall-test-{os.getpid()}")
        notify = Notify(f"@seawall-test-{os.getpid()}")
        assert notify.say(b"STATUS=x")
        assert listening.recv(100) == b"STATUS=x"
        notify.close()


def test_our_own_cgroup_in_text_and_in_the_tree(tmp_path: Path) -> None:
    v1, v2 = Mounts("/m", 1), Mounts("/u", 2, None, "/u")
    text = "9:cpu,cpuacct:/c\n4:memory:/pod:1/x\n0::/u/s.scope\n"
    assert cgroup_in_text(text, v1) == "/pod:1/x"
    assert cgroup_in_text(text, v2) == "/u/s.scope"
    with pytest.raises(UsageProblem):
        cgroup_in_text("4:cpu:/\n", v1)
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    (tmp_path / "cgroup.procs").write_text("1\n123\n")
    (inner / "cgroup.procs").write_text("7\n23\n")
    assert cgroup_holding(str(tmp_path), 23) == "/a/b"
    assert cgroup_holding(str(tmp_path), 123) == "/"
    assert cgroup_holding(str(tmp_path), 3) is None


def test_the_settings_in_force_outlive_exec() -> None:
    settings = Settings(mode="enforce", scope=("/x",), freeze_seconds=1.5)
    fd = settings_descriptor(settings)
    assert os.get_inheritable(fd)
    assert take_settings(fd) == settings
