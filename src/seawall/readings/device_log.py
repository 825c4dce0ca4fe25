# SPDX-License-Identifier: Apache-2.0
"""The probe ``device_log``: pods that were refused, devices that a plugin gave up, Xids.

From the logs of the kubelet, of device plugins and of the kernel; which lines count is told in
host/device_log/device_log_events.py.  Logs are what programs and their users wrote: each field is
checked again here, for a bundle may hold anything.  Times are unix seconds.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from seawall.host.host import JSON, Host, Unread
from seawall.readings.probe_answer import each, number, reason, seconds

PROBE: Final = "device_log"
What: TypeAlias = Literal[
    "refused", "gone", "started", "registered", "marked", "xid", "lost", "kernel_xid"
]
Why: TypeAlias = Literal["", "no_healthy", "unregistered", "not_healthy_any_more", "too_few"]
Kind: TypeAlias = Literal["kubelet", "plugin", "kernel"]
_WORD: Final = re.compile(r"[A-Za-z0-9_.:/@-]{0,320}\Z")
_PATH_MOST: Final = 4096
_XID_MOST: Final = 1_000_000


class LogEvent(NamedTuple):
    """One line; what it does not tell is empty."""

    what: What
    """``refused``: a pod at admission; ``gone``: that pod was deleted; ``started``: the kubelet;
    ``registered``: the plugin of a resource; ``marked``: a device, unhealthy; ``xid``: what the
    plugin was told by the driver; ``lost``: it lost sight of all devices; ``kernel_xid``."""
    at: float
    namespace: str
    pod: str
    uid: str
    resource: str
    device: str
    xid: int | None
    why: Why


class LogRead(NamedTuple):
    """One log that was read for events of devices: its path, and from when on."""

    kind: Kind
    path: str
    """Or ``journal``."""
    kept: int
    back_to: float | None
    """From when on it was read; None: it is empty, or its first line has no clock."""
    problem: Unread | None


class DriverGpu(NamedTuple):
    """One device of NVIDIA's driver."""

    address: str
    """``0000:3b:00.0``."""
    uuid: str
    """``GPU-...``; empty until the driver used it."""


@dataclass(frozen=True, slots=True)
class DeviceLog:
    """The topic: events in order of time."""

    events: tuple[LogEvent, ...]
    logs: tuple[LogRead, ...]
    gpus: tuple[DriverGpu, ...]
    left_out: int
    """Older events that are not told."""


def read(host: Host) -> DeviceLog | Unread:
    """``absent`` where nothing can be asked, e.g. in a case without it."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return answer
    values = answer if isinstance(answer, dict) else {}
    events, logs = each(values.get("events"), _event), each(values.get("logs"), _log)
    gpus, left_out = each(values.get("gpus"), _gpu), number(values.get("left_out"))
    if events is None or logs is None or gpus is None or left_out is None:
        return Unread(PROBE, "malformed", "expected events, logs, gpus and left_out")
    return DeviceLog(tuple(sorted(events, key=lambda one: one.at)), logs, gpus, left_out)


def _event(value: JSON) -> LogEvent | None:
    """One row of nine."""
    if not isinstance(value, list) or len(value) != len(LogEvent._fields):
        return None
    what, at, *words, xid, why = value
    texts = [word for word in words if isinstance(word, str) and _WORD.match(word)]
    if what not in get_args(What) or why not in get_args(Why) or len(texts) != len(words):
        return None
    moment = seconds(at)
    if moment is None or not (xid is None or (type(xid) is int and 0 <= xid < _XID_MOST)):
        return None
    namespace, pod, uid, resource, device = texts
    return LogEvent(
        cast("What", what), moment, namespace, pod, uid, resource, device,
        xid, cast("Why", why),
    )  # fmt: skip


def _log(value: JSON) -> LogRead | None:
    match value:
        case [str(kind), str(path), int(kept), back, problem]:
            pass
        case _:
            return None
    moment = None if back is None else seconds(back)
    if kind not in get_args(Kind) or len(path) > _PATH_MOST or (moment is None) != (back is None):
        return None
    return LogRead(cast("Kind", kind), path, kept, moment, reason(path, problem))


def _gpu(value: JSON) -> DriverGpu | None:
    match value:
        case [str(address), str(uuid)] if _WORD.match(address) and _WORD.match(uuid):
            return DriverGpu(address, uuid)
    return None
