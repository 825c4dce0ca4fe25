# SPDX-License-Identifier: Apache-2.0
"""Whether a process may use a device, by trying as somebody in its cgroup with its files.

The worker joins the process's device cgroup.  Each path is resolved below the process's root
(openat2 RESOLVE_IN_ROOT: links stay inside, magic links are refused) as O_PATH, which opens
nothing; then faccessat(2) for reading and writing through that descriptor.  The cgroup is asked
within inode_permission (security/device_cgroup.c), so no driver notices.  EPERM: the cgroup.
ENOENT: no such node.  A node that nobody may write is only read: MIG's capabilities
have mode 444.  Only ``opens`` calls the driver: ENXIO and ENODEV are its own answers.

It is asked with the real ids of that process (owner.py), so that a refusal by file mode or owner
(EACCES) is seen; one by seccomp or by a security module is not.  open(2) is root's own: ``nodev``
shows in it alone (EACCES).

The worker never enters the mount namespace: it needs no more than the root, and an interpreter
that stood in it would load a container's files.  With v2 it is for some milliseconds a process
of the container: it counts in pids.current, has touched its memory before, and is the first that
the OOM killer takes.
"""

import ctypes
import json
import os
import stat
from contextlib import suppress
from errno import EINVAL
from typing import Final, NamedTuple

from seawall.host.device_access.apart import ask_apart, problem
from seawall.host.device_access.device_cgroup import Hierarchy, JoinError, join, own_hierarchy
from seawall.host.device_access.process_handle import process_handle
from seawall.host.host import JSON
from seawall.host.rooted import Rooted

# As whom a container's process asks: faccessat(2) checks the *real* ids (fs/open.c).
#
# Only those are changed, and only in the worker: its effective ids stay root's, so that it can go
# on to the next.  Whoever has CAP_DAC_OVERRIDE is asked for as root: modes do not hold it.

_DAC_OVERRIDE: Final = 1 << 1  # uapi/linux/capability.h
_GROUPS_MOST: Final = 1024
_ROOT: Final = 0


class Credentials(NamedTuple):
    """Of /proc/PID/status, as this host numbers them."""

    uid: int
    gid: int
    groups: tuple[int, ...]


ROOT: Final = Credentials(_ROOT, _ROOT, ())


def owner_of(status: bytes) -> Credentials:
    """Root where it may pass by any mode, or where its lines cannot be understood."""
    lines = dict(line.partition(b":")[::2] for line in status.split(b"\n"))
    try:
        if int(lines[b"CapEff"], 16) & _DAC_OVERRIDE:
            return ROOT
        uid, gid = int(lines[b"Uid"].split()[0]), int(lines[b"Gid"].split()[0])
        groups = tuple(int(word) for word in lines.get(b"Groups", b"").split()[:_GROUPS_MOST])
    except (KeyError, ValueError, IndexError):
        return ROOT
    return Credentials(uid, gid, groups)


def become(owner: Credentials) -> None:
    """Without CAP_SETUID and CAP_SETGID the answer is that of whoever asks."""
    with suppress(OSError):
        os.setgroups(owner.groups)
        os.setresgid(owner.gid, -1, -1)
        os.setresuid(owner.uid, -1, -1)


_EACH_SECONDS: Final = 0.9  # who hangs is set aside after 30 ms; a starved CPU is slow
_ALL_SECONDS: Final = 2.5
_TARGETS_MOST: Final = 4096
_PATHS_MOST: Final = 512
_PATH_BYTES_MOST: Final = 4096
_OPEN: Final = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_WRITABLE: Final = 0o222
_KINDS: Final = {stat.S_IFCHR: "c", stat.S_IFBLK: "b"}


class _Target(NamedTuple):
    pid: int
    start_ticks: int
    paths: list[str]


def device_access(argument: str) -> JSON:
    """{"targets": {pid: {"tried": [[path, errno, kind, major, minor, mode, open_errno], ...],
    "problem": [why, words] or null}}}.

    argument: JSON, {"targets": [[pid, start_ticks, [path, ...]], ...], "opens": bool}.  ``kind``
    is c, b, ``other`` (a file, a FIFO, a link to nowhere), or null: nothing is there.
    """
    asked = json.loads(argument)
    targets = [
        _Target(int(pid), int(ticks), [str(path) for path in paths][:_PATHS_MOST])
        for pid, ticks, paths in asked["targets"]
    ][:_TARGETS_MOST]
    trier = _Trier(own_hierarchy(), is_opening=asked.get("opens") is True)
    answers = ask_apart(targets, trier.answer, each_seconds=_EACH_SECONDS, all_seconds=_ALL_SECONDS)
    rows = zip(targets, answers, strict=True)
    return {"targets": {str(one.pid): {"tried": [], "problem": None, **_row(told)}
                        for one, told in rows}}  # fmt: skip


def _row(told: JSON) -> dict[str, JSON]:
    return told if isinstance(told, dict) else {}


class _Trier:
    """Tries target after target; its process belongs to none of them for long."""

    def __init__(self, hierarchy: Hierarchy | None, *, is_opening: bool) -> None:
        self._hierarchy = hierarchy
        self._is_opening = is_opening
        self._access = ctypes.CDLL(None, use_errno=True).faccessat
        self._is_ready = False

    def answer(self, target: _Target) -> JSON:
        if not self._is_ready:
            self._prepare()
        with process_handle(target.pid) as process:
            if process.start_ticks() != target.start_ticks:
                return problem("vanished", "another process has its number now")
            cgroups, owner = process.read("cgroup"), owner_of(process.read("status"))
            rooted = Rooted(process.inside())
            try:
                tried = self._try(rooted, target.paths, cgroups, owner)
            except JoinError as error:
                return problem(error.why, error.words)
            finally:
                os.close(rooted.fd)
            if process.start_ticks() != target.start_ticks or process.read("cgroup") != cgroups:
                return problem("vanished", "it ended, or went to another cgroup, meanwhile")
        return {"tried": tried}

    def _prepare(self) -> None:
        """Be the first to go if memory runs out, and touch now what will be touched there."""
        try:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write("1000")
        except OSError:
            pass  # a sandbox without it
        rooted = Rooted("/")
        for path in ("/dev/null", "/nothing"):
            self._try_one(rooted, path, is_opening=self._is_opening)
        os.close(rooted.fd)
        self._is_ready = True

    def _try(self, rooted: Rooted, paths: list[str], cgroups: bytes, owner: Credentials) -> JSON:
        """One row for each path, inside the cgroup."""
        if self._hierarchy is None:
            raise JoinError("absent", "no cgroup hierarchy with devices is mounted here")
        join(self._hierarchy, cgroups)
        become(owner)
        try:
            return [self._try_one(rooted, path, is_opening=self._is_opening) for path in paths]
        finally:
            become(ROOT)

    def _try_one(self, rooted: Rooted, path: str, *, is_opening: bool) -> list[JSON]:
        if len(path) > _PATH_BYTES_MOST or not path.startswith("/"):
            return [path, EINVAL, None, None, None, None, None]
        try:
            fd = rooted.open(path, os.O_PATH)
        except (OSError, ValueError) as error:
            code = getattr(error, "errno", None) or EINVAL
            return [path, code, "other" if _is_link(rooted, path) else None, *[None] * 4]
        try:
            status = os.fstat(fd)
            kind = _KINDS.get(stat.S_IFMT(status.st_mode))
            name = f"/proc/self/fd/{fd}".encode("ascii")
            mode = stat.S_IMODE(status.st_mode)
            wanted = os.R_OK | os.W_OK if mode & _WRITABLE else os.R_OK
            code = ctypes.get_errno() if self._access(-1, name, wanted, 0) else 0
            access = os.O_RDWR if mode & _WRITABLE else os.O_RDONLY
            opened = self._open(name, access) if kind and is_opening else None
        finally:
            os.close(fd)
        if kind is None:
            return [path, code, "other", None, None, mode, None]
        number = status.st_rdev
        return [path, code, kind, os.major(number), os.minor(number), mode, opened]

    @staticmethod
    def _open(name: bytes, access: int) -> int:
        """The errno of open(2) on exactly the node that was looked at; 0."""
        try:
            os.close(os.open(name, access | _OPEN))
        except OSError as error:
            return error.errno or EINVAL
        return 0


def _is_link(rooted: Rooted, path: str) -> bool:
    """Whether what could not be followed is a link, to nowhere or in a ring."""
    try:
        fd = rooted.open(path, os.O_PATH | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return False
    os.close(fd)
    return True
