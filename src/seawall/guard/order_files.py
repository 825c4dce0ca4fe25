# SPDX-License-Identifier: Apache-2.0
"""Files by which somebody else asks the guard: the brake, a rescue order, the quarantine list.

``/run/seawall/brake`` is a person's; what lies in ``/run/seawall/orders`` is the agent's, which may
write there and nowhere else.  A stat(2) of each at every tick, a read where one has changed.  A
file that is not root's alone is ignored, with words.  Nothing here makes the guard do more than its
own file allows: the brake disarms, and orders are judged.
"""

import errno
import json
import os
import stat
import time
from typing import Any, Final, NamedTuple

from seawall.guard.tell.plain import plain

ORDERS: Final = "orders"
"""The agent's folder, below the guard's."""
BRAKE: Final = "brake"
RESCUE: Final = "rescue"
QUARANTINE: Final = "quarantine"
RESCUE_MOST_BYTES: Final = 4096
QUARANTINE_MOST_BYTES: Final = 64 << 10
ORDER_MOST_SECONDS: Final = 600.0
"""No order holds longer, whatever it says."""
LIST_MOST_SECONDS: Final = 7 * 86_400.0
_PODS_MOST: Final = 8
_ENTRIES_MOST: Final = 50
_LISTED_MOST: Final = 256
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_Mark = tuple[int, int, int]
_NO_MARK: Final = (0, 0, 0)


class RescueOrder(NamedTuple):
    """Somebody asks that a culprit of this node be ended."""

    order: str
    """Its uid: carried out once."""
    boot_id: str
    pods: tuple[str, ...]
    """Uids of the pods that it names."""
    by: str
    until_unix_seconds: float


class QuarantinedPods(NamedTuple):
    """Pods that may not run here, as the agent last heard it."""

    pods: dict[str, str]
    """Uid of the pod to the name of its quarantine."""
    until_unix_seconds: dict[str, float]
    """By the same uid."""


class OrderFiles:
    """``look`` at every tick; whether the brake has changed."""

    __slots__ = (
        "_marks", "_paths", "_problems", "brake_path", "brake_since", "is_list_new",
        "is_order_new", "order", "quarantined",
    )  # fmt: skip

    def __init__(self, folder: str) -> None:
        agents = f"{folder}/{ORDERS}"
        self._paths = (f"{folder}/{BRAKE}", f"{agents}/{BRAKE}", f"{agents}/{RESCUE}",
                       f"{agents}/{QUARANTINE}", agents)  # fmt: skip
        self.brake_since: float | None = None
        """Unix seconds; None: it is off."""
        self.brake_path = ""
        self.order: RescueOrder | None = None
        self.is_order_new = False
        """``order`` is another one than at the look before."""
        self.quarantined: QuarantinedPods | None = None
        self.is_list_new = False
        self._marks: dict[str, _Mark] = {}
        self._problems: dict[str, str] = {}

    def prepare(self) -> None:
        """Make the agent's folder, root's alone; without it no agent can ask for anything."""
        try:
            os.mkdir(self._paths[4], 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            self._problems[self._paths[4]] = f"{self._paths[4]}: {error.strerror}"
            return
        self._problems.pop(self._paths[4], None)

    @property
    def problems(self) -> list[str]:
        """Files that are ignored, and why."""
        return list(self._problems.values())

    def look(self) -> bool:
        """Whether the brake was put on or taken off since the look before."""
        own, agents, rescue, listed, folder = self._paths
        if not os.path.lexists(folder):  # somebody emptied /run/seawall
            self.prepare()
        before = self.brake_since
        found = self._brake(own) or self._brake(agents)
        self.brake_since, self.brake_path = (found[0], found[1]) if found else (None, "")
        self.is_order_new = self._is_new(rescue)
        if self.is_order_new:
            self.order = self._order(rescue)
        self.is_list_new = self._is_new(listed)
        if self.is_list_new:
            self.quarantined = self._list(listed)
        return (before is None) != (self.brake_since is None)

    def _brake(self, path: str) -> tuple[float, str] | None:
        about = self._about(path)
        return None if about is None else (about.st_mtime, path)

    def _is_new(self, path: str) -> bool:
        """It has come, gone or changed."""
        about = self._about(path)
        mark = _NO_MARK if about is None else (about.st_ino, about.st_mtime_ns, about.st_size)
        if mark == self._marks.get(path, _NO_MARK):
            return False
        self._marks[path] = mark
        return True

    def _about(self, path: str) -> os.stat_result | None:
        """None: there is none, or it is ignored."""
        try:
            about = os.stat(path, follow_symlinks=False)
            why = _foreign(about)
            if not why and (folder := os.path.dirname(path)) == self._paths[4]:
                why = _foreign(os.stat(folder, follow_symlinks=False), stat.S_IFDIR)
        except OSError as error:
            why = "" if error.errno in (errno.ENOENT, errno.ENOTDIR) else str(error.strerror)
            about = None
        if why:
            self._problems[path] = f"{path} is ignored: {why}"
            return None
        self._problems.pop(path, None)
        return about

    def _order(self, path: str) -> RescueOrder | None:
        found = self._read(path, RESCUE_MOST_BYTES)
        if found is None:
            return None
        order, boot = _text(found, "order"), _text(found, "boot_id")
        pods, until = found.get("pods"), _seconds(found.get("until_unix_seconds"))
        if not (order and boot and isinstance(pods, list) and 0 < len(pods) <= _PODS_MOST):
            until = None
        if until is None or not isinstance(pods, list):
            self._problems[path] = f"{path} is ignored: it is no rescue order"
            return None
        uids = tuple(plain(pod, 64) for pod in pods if isinstance(pod, str) and pod)
        until = min(until, time.time() + ORDER_MOST_SECONDS)
        return RescueOrder(order, boot, uids, _text(found, "by") or "somebody", until)

    def _list(self, path: str) -> QuarantinedPods | None:
        found = self._read(path, QUARANTINE_MOST_BYTES)
        return None if found is None else quarantined_pods(found)

    def _read(self, path: str, most: int) -> dict[str, Any] | None:
        """None: it is gone, or is ignored."""
        if self._marks.get(path) == _NO_MARK:
            return None
        try:
            found = read_object(path, most)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._problems[path] = f"{path} is ignored: {error.strerror}"
            self._marks.pop(path, None)  # no descriptor left, perhaps: again at the next tick
            return None
        except (ValueError, RecursionError) as error:
            self._problems[path] = f"{path} is ignored: {str(error)[:100]}"
            return None
        return found


def read_object(path: str, most: int) -> dict[str, Any]:
    """A JSON object of at most ``most`` bytes in root's own file; OSError, ValueError."""
    fd = os.open(path, _FLAGS)
    try:
        if why := _foreign(os.fstat(fd)):
            raise ValueError(why)
        data = os.read(fd, most + 1)
    finally:
        os.close(fd)
    if len(data) > most:
        raise ValueError(f"it is longer than {most} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - of a file
    return found


def quarantined_pods(found: dict[str, Any]) -> QuarantinedPods:
    """What the list names; entries that are none are left out."""
    pods: dict[str, str] = {}
    until: dict[str, float] = {}
    rows = found.get("quarantines")
    latest = time.time() + LIST_MOST_SECONDS
    for row in rows[:_ENTRIES_MOST] if isinstance(rows, list) else ():
        name, uids = (row.get("name"), row.get("pods")) if isinstance(row, dict) else (None, None)
        ends = _seconds(row.get("until_unix_seconds")) if isinstance(row, dict) else None
        if not isinstance(name, str) or not isinstance(uids, list) or ends is None:
            continue
        for uid in uids[:_LISTED_MOST]:
            if isinstance(uid, str) and uid and len(pods) < _LISTED_MOST:
                pods[plain(uid, 64)] = plain(name, 63)
                until[plain(uid, 64)] = min(ends, latest)
    return QuarantinedPods(pods, until)


def _foreign(about: os.stat_result, kind: int = stat.S_IFREG) -> str:
    """Why it is not to be believed, in words; empty: it is root's alone."""
    if stat.S_IFMT(about.st_mode) != kind:
        return "it is no ordinary file" if kind == stat.S_IFREG else "its folder is none"
    whose = "it" if kind == stat.S_IFREG else "its folder"
    if about.st_uid != 0:
        return f"{whose} belongs to user {about.st_uid}, not to root"
    if about.st_mode & 0o022:
        return f"others than root can write {whose}: mode {stat.S_IMODE(about.st_mode):04o}"
    return ""


def _text(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    return plain(value, 128) if isinstance(value, str) else ""


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return None
    return float(value)
