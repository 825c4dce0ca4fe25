# SPDX-License-Identifier: Apache-2.0
"""Who else kills on this machine: earlyoom, oomd, systemd-oomd, nohang, a kubelet's eviction.

A container may call its process earlyoom: only processes of the pid namespace that /proc shows
count (``NSpid`` of /proc/PID/status, since 4.1, one number: in no namespace below it), and of
those inside the scope it is said where they are.  Nor does a process of a user's session count,
unless it is root's.  A kubelet is root's, and no user's session: of no other process is the file
read that it names, and that only when it is a regular one.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from seawall import kubelet_names
from seawall.guard.tell.plain import plain

GUARDS: Final = frozenset({"earlyoom", "oomd", "systemd-oomd", "nohang"})
KUBELETS: Final = kubelet_names.WITH_KUBELET | {kubelet_names.KUBELET}
DEFAULT_CONFIG: Final = "/var/lib/kubelet/config.yaml"
DEFAULT_EVICTION: Final = "100Mi"
_MOST: Final = 8
_DROP_INS_MOST: Final = 64
"""Files and folders below a kubelet's ``--config-dir``."""
_FILE_MOST: Final = 256 << 10
_SESSIONS: Final = "/user.slice"
_QUANTITY: Final = r"([0-9.]+(?:%|[KMGTPE]i?)?)"
_IN_FLAG: Final = re.compile(rf"memory\.available\s*<\s*{_QUANTITY}")
_IN_FILE: Final = re.compile(rf"""memory\.available["']?\s*:\s*["']?{_QUANTITY}""")
_HARD: Final = re.compile(r"""evictionHard["']?[ \t]*:\s*(\{[^}]*\}|(?:\n?[ \t]+[^\n]+)+)""")


class RivalProcess(NamedTuple):
    """One that is of the host."""

    pid: int
    comm: str
    is_in_scope: bool
    is_roots: bool
    is_of_session: bool
    """Below /user.slice: a user's, or of whoever became root there."""


def find(proc: str, scope: Sequence[str]) -> list[str]:
    """Each in words, at most eight."""
    words = []
    for process in host_processes(proc, GUARDS | KUBELETS, scope):
        if process.comm in GUARDS:
            # Some are no root's: a service with CAP_KILL is enough.
            if process.is_roots or not process.is_of_session:
                where = ", in a container" if process.is_in_scope else ""
                words.append(f"{process.comm} (pid {process.pid}{where}) kills on its own")
        elif process.is_roots and not process.is_of_session and not process.is_in_scope:
            words.append(_eviction(proc, process))
    return words[:_MOST]


def host_processes(
    proc: str, names: frozenset[str], scope: Sequence[str]
) -> Iterator[RivalProcess]:
    """Living ones with one of these names in the pid namespace of ``proc``."""
    for entry in sorted(os.listdir(proc), key=lambda name: (len(name), name)):
        if not entry.isdigit():
            continue
        comm = _read(f"{proc}/{entry}/comm", 64).strip()
        if comm not in names or _is_dead(_read(f"{proc}/{entry}/stat", 4096)):
            continue
        status = _read(f"{proc}/{entry}/status", 8192)
        if not is_of_host(status):
            continue
        paths = _read(f"{proc}/{entry}/cgroup", 65536)
        is_of_session = is_within(paths, (_SESSIONS,))
        yield RivalProcess(
            int(entry), comm, is_within(paths, scope), is_roots(status), is_of_session
        )


def eviction_of(arguments: list[str], config: str, drop_ins: Sequence[str] = ()) -> str:
    """The kubelet's evictionHard for memory.available: flag, else the last drop-in that names it,
    else file, else its default; empty when it has one without memory.
    """
    if flags := _given(arguments, "eviction-hard"):
        found = _IN_FLAG.findall(",".join(flags))
        return str(found[-1]) if found else ""
    below = _in_file(config)
    for text in drop_ins:  # a JSON merge patch each: keys that it does not name stay
        below = _in_file(text) or below
    return DEFAULT_EVICTION if below is None else below


def _in_file(text: str) -> str | None:
    """None: it has no evictionHard; empty: one without memory."""
    hard = _HARD.search(text)
    if hard is None:
        return None
    found = _IN_FILE.search(hard[1])
    return found[1] if found else ""


def _given(arguments: list[str], flag: str) -> list[str]:
    """Each value of a flag; where only one can be, the last counts."""
    values = []
    for number, word in enumerate(arguments):
        name, _, value = word.lstrip("-").partition("=")
        if name == flag and word[:1] == "-":
            values.append(value or "".join(arguments[number + 1 : number + 2]))
    return values


def _eviction(proc: str, kubelet: RivalProcess) -> str:
    who = f"{kubelet.comm} (pid {kubelet.pid})"
    if kubelet.comm != kubelet_names.KUBELET:
        return f"{who} has a kubelet in it, whose eviction threshold is not to be seen"
    arguments = _read(f"{proc}/{kubelet.pid}/cmdline", _FILE_MOST).split("\0")
    root = f"{proc}/{kubelet.pid}/root"
    given = _given(arguments, "config")
    text = _regular_below(root, given[-1] if given else DEFAULT_CONFIG)
    drop_ins = _drop_ins(root, _given(arguments, "config-dir"))
    is_unseen = drop_ins is None or (text is None and bool(given))
    if is_unseen and not _given(arguments, "eviction-hard"):
        return f"{who} has an eviction threshold that is not to be seen"
    below = eviction_of(arguments, text or "", drop_ins or ())
    if not below:
        return f"{who} evicts nothing for memory"
    return plain(f"{who} evicts below memory.available {below}", 120)


def _drop_ins(root: str, folders: Sequence[str]) -> list[str] | None:
    """The texts of ``*.conf`` in the kubelet's ``--config-dir`` and below, in the order in which
    it merges them (filepath.WalkDir: by name, a folder where its name stands); None: one of them
    cannot be read, or there are very many.
    """
    texts: list[str] = []
    todo = list(folders[-1:])
    for _ in range(_DROP_INS_MOST):
        if not todo:
            return texts
        path = todo.pop()
        below = _names(f"{root}{path}") if path[:1] == "/" else None
        if below is not None:
            todo += [f"{path}/{name}" for name in reversed(below)]
        elif path.endswith(".conf") and (text := _regular_below(root, path)) is not None:
            texts.append(text)
        elif path.endswith(".conf") or path in folders:
            return None
    return None


def _names(folder: str) -> list[str] | None:
    """Sorted, ``_DROP_INS_MOST`` of them; None: it is no folder, or a link to one, which the
    kubelet does not follow.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with os.scandir(fd) as entries:
            found = [entry.name for entry, _ in zip(entries, range(_DROP_INS_MOST), strict=False)]
        return sorted(found, key=os.fsencode)
    finally:
        os.close(fd)


def is_within(paths: str, scope: Sequence[str]) -> bool:
    """A scope of all says nothing about who is a container's."""
    tops = [top.rstrip("/") for top in scope if top.rstrip("/")]
    for line in paths.split("\n"):  # and nowhere else: containers name cgroups
        path = line.partition(":")[2].partition(":")[2] + "/"  # in which there may be colons
        if any(path.startswith(top + "/") for top in tops):
            return True
    return False


def is_roots(status: str) -> bool:
    """With all four of its uids: who runs a set-uid program under a name of his is not root."""
    return _row(status, "Uid:")[1:] == ["0"] * 4


def is_of_host(status: str) -> bool:
    """A kernel without pid namespaces has no such line."""
    return bool(status) and len(_row(status, "NSpid:")) <= 2


def _row(status: str, name: str) -> list[str]:
    """The words of a line of /proc/PID/status; a process may have a ``\\f`` in its name there."""
    return next((row.split() for row in status.split("\n") if row.startswith(name)), [])


def _is_dead(stat: str) -> bool:
    return stat.rpartition(")")[2].strip()[:1] in ("Z", "X", "x", "")


def _regular_below(root: str, path: str) -> str | None:
    """Of a regular file, looked at before it is opened: opening a device may do something (a
    watchdog begins to run), and so may reading a file of /proc or tracefs, which has no size.
    None: it is none, or ``path`` is not whole.
    """
    if path[:1] != "/":
        return None
    try:
        seen = os.open(root + path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(seen)
        is_one = stat.S_ISREG(about.st_mode) and 0 < about.st_size <= _FILE_MOST
        return _read(f"/proc/self/fd/{seen}", _FILE_MOST) if is_one else None
    finally:
        os.close(seen)


def _read(path: str, most: int) -> str:
    """Empty when it cannot be read: gone, or refused."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(fd, most).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
