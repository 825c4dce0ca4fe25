# SPDX-License-Identifier: Apache-2.0
"""The probe ``device_log``: what the logs of kubelet, device plugin and kernel say of devices.

The kubelet's: its journal of this boot, newest first; where there is none, syslog's files.  The
plugin's: /var/log/pods.  The kernel's Xid lines: /dev/kmsg, in a tree syslog's files.  Which
devices NVIDIA's driver has: /proc/driver/nvidia/gpus/ADDRESS/information (nv-procfs.c).

Answer::

    {"events": [[what, at, namespace, pod, uid, resource, device, xid or null, why], ...],
     "logs": [[what, path, lines kept, back to or null, null or [reason, words]], ...],
     "gpus": [[address, uuid or ""], ...], "left_out": events}
"""

import errno
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from seawall.host.device_log.device_log_events import (
    HINT,
    LINE_MOST_BYTES,
    DeviceLogEvent,
    of_kernel,
    of_kubelet,
    of_plugin,
)  # fmt: skip
from seawall.host.device_log.log_line_head import LogLineHead, container_line, service_line
from seawall.host.device_log.tails import (
    KERNEL_FILES,
    KUBELET_FILES,
    PODS,
    LogTail,
    Open,
    first_line,
    hinted_lines,
    names_in,
    plugin_logs,
    tail,
)  # fmt: skip
from seawall.host.expendable import unread_for
from seawall.host.host import JSON
from seawall.kubelet_names import UNITS

SECONDS: Final = 4.0
"""Of all of it; its reader waits a second longer."""
_JOURNAL_SECONDS: Final = 2.0
_EVENTS_MOST: Final = 2000
_LOG_SECONDS: Final = 1.2
_KEPT_MOST: Final = 20_000
"""Of one log, the newest; what repeats is thinned out after that."""
# A log of the system in which no kubelet says anything is not the kubelet's.
_SPEAKS: Final = re.compile(
    rb"^[IWEF]\d{4} \d\d:"
    rb"|[ /](?:kubelet|k3s|rke2|k0s\w{0,20}|microk8s\.daemon-kubel\w{1,9}|kubelite|hyperkube)\[\d",
    re.MULTILINE,
)
PROGRAMS: Final = re.compile(r"kubelet\Z|k3s|rke2|k0s|microk8s\.daemon-kubel|kubelite|hyperkube")
JOURNAL: Final = (
    "journalctl", "-q", "--no-pager", "-o", "short-unix", "-b", "-r", "-n", "400000",
    *(word for unit in UNITS for word in ("-u", unit)),
)  # fmt: skip
_GPUS: Final = "/proc/driver/nvidia/gpus"
_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\Z")
_UUID: Final = re.compile(
    rb"^GPU UUID:[ \t]+(GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s*$", re.MULTILINE
)
_GPUS_MOST: Final = 64
_KMSG: Final = re.compile(rb"\d{1,5},\d{1,20},(\d{1,20}),[^;\n]{0,200};(.*)")


class Collected:
    """What was found so far."""

    def __init__(self) -> None:
        self.until = time.monotonic() + SECONDS
        self.events: list[DeviceLogEvent] = []
        self.logs: list[JSON] = []

    def limit(self) -> float:
        """The monotonic second until which one log may be read: no log takes it all."""
        return min(self.until, time.monotonic() + _LOG_SECONDS)

    def keep(self, events: Iterable[DeviceLogEvent]) -> int:
        """Those of one log, in its order; how many they were once they were thinned out."""
        thin = thinned(events)
        self.events += thin
        return len(thin)

    def add_log(
        self, what: str, path: str, kept: int, back: float | None, error: OSError | None
    ) -> None:
        """One log, and why it or its rest could not be read."""
        problem: JSON = None
        if error is not None:
            unread = unread_for(path, error.errno or errno.EIO)
            problem = [unread.why, error.strerror or unread.detail]
            if isinstance(error, TimeoutError):
                problem = ["not_reached", error.strerror or "it was not read to its end in time"]
        self.logs.append([what, path, kept, back, problem])


def device_log(_: str, open_: Open | None = None) -> JSON:
    """open_: opens below another root than ``/``, where no journal and no /dev/kmsg is asked."""
    found = Collected()
    reader = open_ or os.open
    _plugins(found, reader)
    if open_ is not None or not _kmsg(found):
        _files(found, "kernel", KERNEL_FILES, reader)
    if open_ is not None or not _journal(found):
        _files(found, "kubelet", KUBELET_FILES, reader)
    events = chosen(found.events)
    return {
        "events": [list[JSON](event) for event in events[-_EVENTS_MOST:]],
        "logs": found.logs,
        "gpus": list(_gpus(reader)),
        "left_out": max(0, len(events) - _EVENTS_MOST),
    }


def chosen(events: Iterable[DeviceLogEvent]) -> list[DeviceLogEvent]:
    """In order of time, without deletions of pods that were never refused."""
    thin = thinned(sorted(events, key=lambda one: one.at))
    refused = {(one.namespace, one.pod) for one in thin if one.what == "refused"}
    return [one for one in thin if one.what != "gone" or (one.namespace, one.pod) in refused]


def thinned(events: Iterable[DeviceLogEvent]) -> list[DeviceLogEvent]:
    """What repeats is kept once, until something starts or registers; of a pod, what changes."""
    kept: list[DeviceLogEvent] = []
    last: dict[tuple[str, ...], DeviceLogEvent] = {}
    for event in events:
        same = event._replace(at=0.0)
        if event.what in ("started", "registered"):
            last.clear()
        key = (event.namespace, event.pod) if event.pod else tuple(map(str, same))
        if last.get(key) == same:
            continue
        last[key] = same
        kept.append(event)
    return kept


# --- the kubelet ------------------------------------------------------------------------


def _journal(found: Collected) -> bool:
    """Whether it had lines of a kubelet."""
    from seawall.host.kernel_messages import journal_lines  # noqa: PLC0415 - not in a tree

    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    back: float | None = None
    newest_first: list[DeviceLogEvent] = []
    count = 0
    error: OSError | None = None
    try:
        for line in journal_lines(_JOURNAL_SECONDS, JOURNAL, environment):
            count += 1
            if HINT.search(line, 0, LINE_MOST_BYTES) is None and count % 256 != 1:
                continue
            told = service_line(line[:LINE_MOST_BYTES].rstrip(), 0.0)
            back = told.at or back
            if len(newest_first) < _KEPT_MOST:
                newest_first += _of_service(told)
    except OSError as problem:
        error = problem
    kept = found.keep(reversed(newest_first))
    if not count and error is None and os.geteuid():
        error = PermissionError(errno.EACCES, "only root and the groups adm and systemd-journal")
    if count or not isinstance(error, FileNotFoundError):
        found.add_log("kubelet", "journal", kept, back, error)
    return count > 0


def _of_service(line: LogLineHead) -> Iterator[DeviceLogEvent]:
    if line.at is not None:
        yield from of_kubelet(line.text, line.at)


def _of_kubelet_file(line: LogLineHead) -> Iterator[DeviceLogEvent]:
    if line.at is not None and (not line.program or PROGRAMS.match(line.program)):
        yield from of_kubelet(line.text, line.at)


# --- files --------------------------------------------------------------------------------


def _files(found: Collected, what: str, paths: Iterable[str], open_: Open) -> None:
    read = _of_kubelet_file if what == "kubelet" else _of_kernel_file
    for path in paths:
        _file(found, what, path, open_, lambda line, changed: read(service_line(line, changed)))


def _of_kernel_file(line: LogLineHead) -> Iterator[DeviceLogEvent]:
    if line.at is not None and line.program == "kernel":
        yield from of_kernel(line.text, line.at)


def _plugins(found: Collected, open_: Open) -> None:
    try:
        paths, left_out = plugin_logs(open_)
    except OSError as error:
        found.add_log("plugin", PODS, 0, None, error)
        return
    for path in paths:
        _file(found, "plugin", path, open_, _of_plugin)
    if left_out:
        found.add_log("plugin", PODS, 0, None, OSError(errno.EFBIG, left_out))
    if not paths:
        missing = FileNotFoundError(errno.ENOENT, "no log of a device plugin's pod")
        found.add_log("plugin", PODS, 0, None, missing)


def _of_plugin(line: bytes, changed: float) -> Iterator[DeviceLogEvent]:
    told = container_line(line, changed)
    if told.at is not None:
        yield from of_plugin(told.text, told.at)


def _file(
    found: Collected,
    what: str,
    path: str,
    open_: Open,
    read: Callable[[bytes, float], Iterable[DeviceLogEvent]],
) -> None:
    """One that is not there is not told."""
    end: LogTail | None = None
    newest: deque[DeviceLogEvent] = deque(maxlen=_KEPT_MOST)
    error: OSError | None = None
    try:
        end = tail(path, open_)
        if what == "kubelet" and not _SPEAKS.search(end.data):
            return
        for line in hinted_lines(end.data, found.limit()):
            newest += read(line, end.mtime_seconds)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as problem:
        error = problem
    back = None
    if end is not None:
        line = first_line(end.data, is_cut=end.is_cut)
        is_plugin = what == "plugin"
        back = (container_line if is_plugin else service_line)(line, end.mtime_seconds).at
    found.add_log(what, path, found.keep(newest), back, error)


# --- the kernel, the driver -----------------------------------------------------------------


def _kmsg(found: Collected) -> bool:
    from seawall.host.kernel_messages import kmsg_lines  # noqa: PLC0415 - not in a tree

    booted = time.time() - time.monotonic()
    until = found.limit()
    newest: deque[DeviceLogEvent] = deque(maxlen=_KEPT_MOST)
    try:
        for line in kmsg_lines():
            record = _KMSG.match(line) if b"NVRM: Xid" in line else None
            if record:
                newest += of_kernel(record[2].rstrip(), booted + int(record[1]) / 1e6)
            if time.monotonic() > until:
                break
    except OSError as error:
        found.add_log("kernel", "/dev/kmsg", 0, None, error)
        return False
    found.add_log("kernel", "/dev/kmsg", found.keep(newest), booted, None)
    return True


def _gpus(open_: Open) -> Iterator[JSON]:
    """Address and, once the device was used since the driver came, its UUID."""
    for name in sorted(names_in(_GPUS, open_))[:_GPUS_MOST]:
        if not _ADDRESS.match(name):
            continue
        try:
            fd = open_(f"{_GPUS}/{name}/information", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                found = _UUID.search(os.read(fd, 64 << 10))
            finally:
                os.close(fd)
        except OSError:
            found = None
        yield [name, found[1].decode("ascii") if found else ""]
