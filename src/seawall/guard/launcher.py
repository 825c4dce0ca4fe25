# SPDX-License-Identifier: Apache-2.0
"""The launcher: what has to be done once, by a process that then becomes the guard.

In this order: settings (read by a short-lived child), where the cgroup trees are, the lock, its
companions, and exec of the guard with all of it as one JSON text in a memfd.  The guard's pid is
the launcher's own, so a unit's main process stays one.  Nothing here looks into another process:
one whose memory is in the kernel's hands would hold the start up (who else guards is the aide's
to find out).
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, NoReturn

from seawall import own_process
from seawall.actions.mounts import find_mounts
from seawall.actions.orders import Mounts
from seawall.guard import entry, lock_file
from seawall.guard.handover import (
    GuardHandover,
    from_json,
    handover_json,
    take_settings,
    text_in_memory,
)
from seawall.guard.own_place import enter_host_cgroups, own_cgroup
from seawall.guard.settings import Settings
from seawall.problems import UsageProblem
from seawall.proc import process_rights

FILES_MOST: Final = 65_536
_CONFIG_SECONDS: Final = 20.0
WRONG_FILE_SECONDS: Final = 20.0
"""A unit starts it again a second after it ended, as a guard that died has to be; with a file that
is wrong until somebody mends it that would take a tenth of a processor for ever.
"""
_KEPT: Final = ("PATH", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
"""Of the environment, what the guard or its command may want."""
_NOT_LOOKED: Final = ("not looked yet",)


class WrongFile(UsageProblem):
    """What is wrong with the guard's file: nothing that passes by itself."""


class LaunchPlace(NamedTuple):
    """Where this guard stands on the machine, as ``Handed`` has it."""

    folder: str
    lock_fd: int
    other_guard_pid: int


def run(
    config_path: str, folder: str = lock_file.FOLDER, *, in_force: Settings | None = None,
    is_afresh: bool = False,
) -> NoReturn:  # fmt: skip
    """Become the guard; UsageProblem when that is not possible, with everything taken back.

    ``in_force``: the settings of a guard that starts afresh; the file is read by nobody then.
    """
    # A SIGHUP waits until there is a guard that hears it (``main``); the others end the launcher.
    signal.pthread_sigmask(signal.SIG_SETMASK, (signal.SIGHUP,))
    own_process.no_huge_pages()
    process_rights.bound_all()
    allow_many_files()
    try:
        settings = in_force or settings_of(config_path)
    except WrongFile as wrong:
        hold_back(str(wrong))
        raise
    enter_host_cgroups()
    mounts = own_mounts()
    own = own_cgroup(mounts)
    place = take_place(folder)
    if place.other_guard_pid:
        settings = settings._replace(mode="observe")
    else:
        start_pinner(settings, config_path, folder, mounts)
    watcher_fd, watcher_pid = start_watcher() if settings.watch else (-1, 0)
    # Two guards do not write one black box.
    is_recorded = settings.blackbox and not place.other_guard_pid
    recorder_fd, recorder_pid = start_recorder(settings, folder) if is_recorded else (-1, 0)
    handed = GuardHandover(
        settings=settings,
        config_path=config_path,
        mounts=mounts,
        own_cgroup=own,
        boot_id=_text("/proc/sys/kernel/random/boot_id").strip(),
        watcher_fd=watcher_fd,
        watcher_pid=watcher_pid,
        others=_NOT_LOOKED,
        is_afresh=is_afresh,
        recorder_fd=recorder_fd,
        recorder_pid=recorder_pid,
        **place._asdict(),
    )
    become(handed)


def take_place(folder: str) -> LaunchPlace:
    """The first guard's, or that of the one that observes beside it; UsageProblem: neither is
    free, for two that write the same files would spoil them.
    """
    lock = lock_file.take(folder)
    if not lock.other_pid:
        return LaunchPlace(folder, lock.fd, 0)
    second = second_folder(folder)
    beside = lock_file.take(second)
    if beside.other_pid:
        raise UsageProblem(
            f"two guards run on this machine, one that guards{_with_pid(lock.other_pid)} and one "
            f"that observes beside it{_with_pid(beside.other_pid)}: a third one is not started"
        )
    _say(
        f"another guard runs{_with_pid(lock.other_pid)}: this one observes, its status is in "
        f"{second}"
    )
    return LaunchPlace(second, beside.fd, lock.other_pid)


def allow_many_files() -> None:
    """Up to what the machine allows: two or more are open for each cgroup.  As in the unit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES_MOST if hard == resource.RLIM_INFINITY else min(hard, FILES_MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def main(words: Sequence[str]) -> int:
    """A guard that starts afresh: as ``seawall guard run --config PATH``, under the same pid."""
    try:
        fd = int(words[1])
        run(words[0], in_force=in_force(fd) if fd >= 0 else None, is_afresh=True)
    except UsageProblem as problem:
        _say(str(problem))
        return 2


def in_force(fd: int) -> Settings | None:
    """Of the guard that was; None: another version's, so the file is read."""
    try:
        return take_settings(fd)
    except ValueError:
        return None


def settings_of(config_path: str) -> Settings:
    """By a child that ends: what it took for parsing is gone with it.  WrongFile, or another
    UsageProblem where it could not be read at all.
    """
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and file
            entry.config_argv(config_path), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_CONFIG_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UsageProblem(f"{config_path}: not read within {_CONFIG_SECONDS:g} s") from None
    except OSError as error:
        raise UsageProblem(f"no process could be started: {error.strerror}") from error
    words = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode == 0:
        return from_json(words)
    if done.returncode == 2 and words:
        raise WrongFile(words)
    detail = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    raise UsageProblem(f"{config_path}: could not be read: {' '.join(detail) or done.returncode}")


def hold_back(words: str) -> None:
    """Under a unit: say it, stay for a while, and end with status 2."""
    if "NOTIFY_SOCKET" in os.environ:
        _say(f"{words}; in {WRONG_FILE_SECONDS:.0f} s it is looked at again")
        time.sleep(WRONG_FILE_SECONDS)
        raise SystemExit(2)


def own_mounts() -> Mounts:
    """Of this very process's mount namespace."""
    return find_mounts(_text("/proc/self/mountinfo"))


def second_folder(folder: str) -> str:
    """Where a guard that only observes beside another one writes."""
    path = f"{folder}/{lock_file.SECOND}"
    os.makedirs(path, mode=0o750, exist_ok=True)
    return path


def start_watcher() -> tuple[int, int]:
    """Our end of the pair, and the watcher's pid."""
    return _start_companion(entry.watcher_argv)


def start_recorder(settings: Settings, folder: str) -> tuple[int, int]:
    """Our end of the pair, and the recorder's pid."""
    path, size = settings.blackbox, settings.blackbox_size_bytes
    return _start_companion(lambda fd: entry.recorder_argv(fd, path, size, folder))


def _start_companion(argv_of: Callable[[int], list[str]]) -> tuple[int, int]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        os.set_inheritable(theirs.fileno(), True)
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
            argv_of(theirs.fileno()), stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )  # fmt: skip
    pid = process.pid
    # The guard reaps it: this object must not say that nobody did.
    process.returncode = 0
    return ours.detach(), pid


def start_pinner(settings: Settings, config_path: str, folder: str, mounts: Mounts) -> None:
    """Where anything shall be pinned; it ends with the guard, which reaps it."""
    if not settings.pin and not settings.pin_slices:
        return
    asked = {
        "pin": settings.pin, "pin_at_most_bytes": settings.pin_at_most_bytes,
        "pin_slices": settings.pin_slices, "folder": folder, "config_path": config_path,
        "config_argv": entry.config_argv(config_path), "memory": mounts.memory,
        "version": mounts.version,
    }  # fmt: skip
    fd = text_in_memory("seawall-pinner", json.dumps(asked))
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
        entry.pinner_argv(fd), stdin=subprocess.DEVNULL, pass_fds=(fd,)
    )
    process.returncode = 0  # as the watcher's
    os.close(fd)


def become(handed: GuardHandover) -> NoReturn:
    """Exec the guard; whatever it is handed stays open."""
    fd = text_in_memory("seawall-handed", handover_json(handed))
    _keep_open((fd, handed.lock_fd, handed.watcher_fd, handed.recorder_fd))
    argv = entry.guard_argv(fd)
    sys.stdout.flush()
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.execve(argv[0], argv, environment | entry.ENVIRONMENT)  # noqa: S606 - our own file


def _keep_open(fds: Iterable[int]) -> None:
    for fd in fds:
        if fd >= 0:
            os.set_inheritable(fd, True)


def _with_pid(pid: int) -> str:
    return f" (pid {pid})" if pid > 0 else ""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}") from error


def _say(words: str) -> None:
    sys.stderr.write(f"seawall guard: {words}\n")
    sys.stderr.flush()
