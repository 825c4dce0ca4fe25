# SPDX-License-Identifier: Apache-2.0
"""Who of a user's session is the system's own: root's sshd and its child, the user's manager.

A session's scope holds who opened it: sshd's monitor as root and, below it, the one that speaks
for the user (sshd.c, privsep_postauth; ``sshd-session`` since OpenSSH 9.8), login(1), cron, the
display manager's worker.  They write the session's end and close it; a login that is killed with
its programs leaves that to others.  ``user@UID.service`` holds the user's systemd and its
``(sd-pam)``: without the first all of that user's services end, those in other cgroups too.

Names anybody chooses, and whoever starts a program in the background and ends has given it process
1 as its parent.  So root's are known by a real uid of 0 beside the name, sshd's other half by that
it is root's sshd's own child, the manager by the cgroup in which process 1 starts it and into which
no session's process can be moved (cgroup-v2.rst, Delegation Containment; on v1 the memory tree is
not delegated), ``(sd-pam)`` by such a parent and a program file of root's.
"""

import os
import re
from typing import Final

from seawall.actions.identity import cgroups_of

_PLACE: Final = re.compile(
    r"/user\.slice/user-[0-9]+\.slice(?:/(?:[^/]+\.scope|user@[0-9]+\.service(?:/init\.scope)?))?\Z"
)
_ROOTS: Final = frozenset({
    "sshd", "sshd-session", "login", "cron", "crond", "atd", "gdm-session-wor", "lightdm",
    "sddm-helper",
})  # fmt: skip
_SSHD: Final = frozenset({"sshd", "sshd-session"})
_MANAGERS_PLACE: Final = re.compile(
    r"/user\.slice/user-[0-9]+\.slice/user@([0-9]{1,10})\.service(?:/init\.scope)?\Z"
)
_STATUS_BYTES: Final = 1024
"""Name, PPid and Uid stand in its first lines (proc.rst 1.1)."""


def is_of_session(folder: int) -> bool:
    """Whether this open folder is a user's slice, a session or the user's manager, in whichever
    tree: a cgroup in which such processes may be.
    """
    try:
        path = os.readlink(f"/proc/self/fd/{folder}")
    except OSError:
        return False
    return _PLACE.search(path) is not None


def is_session_daemon(pid: int) -> bool:
    """Whether it keeps a user's session or manager; no for one that is gone."""
    name, parent, uid = _facts(pid)
    if uid == 0:
        return name in _ROOTS
    if name in _SSHD:
        above, _, above_uid = _facts(parent)
        return above in _SSHD and above_uid == 0
    if name == "systemd":
        return parent == 1 and _is_at_managers_place(pid, uid)
    if name == "(sd-pam)":
        above, first, above_uid = _facts(parent)
        return (
            above == "systemd" and first == 1 and uid == above_uid
            and _is_at_managers_place(parent, uid) and _is_systemds(pid)
        )  # fmt: skip
    return False


def _facts(pid: int) -> tuple[str, int, int]:
    """Name, parent and real uid; no name where they cannot be read."""
    try:
        fd = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "", 0, -1
    try:
        text = os.read(fd, _STATUS_BYTES).decode("ascii", "replace")
    except OSError:
        return "", 0, -1
    finally:
        os.close(fd)
    # A name has no line break in it here: the kernel writes it as \\n.
    rows = dict(line.split(":\t", 1) for line in text.split("\n") if ":\t" in line)
    try:
        return rows["Name"], int(rows["PPid"]), int(rows["Uid"].split("\t")[0])
    except (KeyError, ValueError):
        return "", 0, -1


def _is_at_managers_place(pid: int, uid: int) -> bool:
    """Where its memory is charged is ``user@UID.service`` itself, or its ``init.scope``."""
    try:
        text = cgroups_of(pid)
    except OSError:
        return False
    places = {}
    for line in text.split("\n")[:-1]:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        places.update(dict.fromkeys(controllers.split(","), path))
    found = _MANAGERS_PLACE.search(places.get("memory", places.get("", "")))
    return found is not None and int(found[1]) == uid


def _is_systemds(pid: int) -> bool:
    """It runs systemd's own file still: it was forked and started nothing."""
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        about = os.stat(f"/proc/{pid}/exe")
    except OSError:
        return False
    name = program.rpartition("/")[2]
    return about.st_uid == 0 and name in ("systemd", "systemd-executor")
