# SPDX-License-Identifier: Apache-2.0
"""The sentences of ``seawall gpu --watch``: what changed, after how long, and who wrote."""

from collections.abc import Sequence
from typing import Final

from seawall.accounts.devices.watch.device_watch_events import AccessEvent
from seawall.readings.device_writers import DeviceWriter
from seawall.views.terminal import shorten_path
from seawall.words import duration, first

DEVICES_SHOWN: Final = 4
_EXACT_SECONDS: Final = 120.0
_PLACE_WIDTH: Final = 48
_LAYERS: Final = {
    "promised": "what it was promised",
    "configured": "the runtime's config",
    "systemd": "systemd's list",
    "kernel": "the kernel's rule",
    "node": "its node",
    "mode": "the node's mode",
}
_SAYS: Final = {"yes": "has it", "no": "does not have it", "none": "has no say"}


def event_words(events: Sequence[AccessEvent]) -> str:
    """One line for what is alike: the same change of several devices of one container."""
    event = events[0]
    names = first([one.device for one in events if one.device], DEVICES_SHOWN)
    who = event.workload or "the host"
    head = f"{who} {names}" if names else who
    return f"{head}: {_what(event)}"


def _what(event: AccessEvent) -> str:
    match event.kind:
        case "access":
            return _access(event)
        case "kernel":
            return f"{event.why}; what may be used is the same{_written(event)}"
        case "written":
            files = " and ".join(event.files)
            return f"{files} written, nothing that was tried changed{_written(event)}"
        case "promised" | "configured" | "systemd":
            said = [_SAYS.get(words or "", words or "?") for words in (event.before, event.after)]
            why = f" ({event.why})" if event.why else ""
            return f"{_LAYERS[event.kind]} {said[0]} -> {said[1]}{why}"
        case "node":
            return f"control node {_words(event.before)} -> {_words(event.after)}"
        case "plugin":
            return f"in the device plugin's own /dev {event.before} -> {event.after}"
        case "container":
            return "came" if event.before is None else "is gone"


def _words(text: str | None) -> str:
    return "not implied" if text is None else text


def _access(event: AccessEvent) -> str:
    if event.before is None:
        return f"{event.after}{f' ({event.why})' if event.why else ''}"
    lasted = lasted_words(event)
    if event.is_back and event.lasted and not event.lasted.is_first:
        again = f"{event.after} again"
        if event.errno and event.before == "allowed":
            again = f"refused again, {event.after}"
        change = f"{event.before} for {lasted}, then {again}"
    else:
        change = f"{event.before} -> {event.after} after {lasted}"
    layer = f"; {_LAYERS[event.layer]}" if event.layer else ""
    why = f" ({event.why})" if event.why else ""
    return f"{change}{layer}{why}{_written(event)}{_undone(event)}"


def lasted_words(event: AccessEvent) -> str:
    """``8.2 s``; about, where neither edge is of a write that was seen; more than, where it
    began before the watch.
    """
    seconds = event.lasted_seconds
    if seconds is None or event.lasted is None:
        return "?"
    words = f"{seconds:.1f} s" if seconds < _EXACT_SECONDS else duration(seconds)
    if event.lasted.is_first:
        return f"at least {words}"
    return words if event.lasted.is_exact and event.is_exact else f"about {words}"


def _written(event: AccessEvent) -> str:
    """``; written by runc (pid 4711, unit:containerd.service)``."""
    if not event.writers:
        return ""
    verb = "written over by" if event.is_back else "written by"
    names = [writer_words(writer) for writer in event.writers]
    if len(names) == 1:
        return f"; {verb} {names[0]}"
    more = "" if len(names) <= DEVICES_SHOWN else f" and {len(names) - DEVICES_SHOWN} more"
    listed = ", ".join(names[-DEVICES_SHOWN:])
    return f"; written by {listed}{more}, and which of them did it is not known"


def _undone(event: AccessEvent) -> str:
    """Whose writing was written over, where it is somebody else's."""
    if not event.is_back or event.lasted is None or len(event.lasted.writers) != 1:
        return ""
    (before,) = event.lasted.writers
    if len(event.writers) == 1 and event.writers[0].is_same(before):
        return ""
    mode = " (F7)" if event.errno else ""
    return f"; what it undid was written by {writer_words(before)}{mode}"


def writer_words(writer: DeviceWriter) -> str:
    """A process by its name, number and place; never its arguments."""
    if not writer.pid:
        return "a process of another pid namespace (run seawall with the host's: hostPID)"
    if writer.comm is None:
        return f"pid {writer.pid}, gone before it could be looked at"
    parts = [f"pid {writer.pid}"]
    if writer.exe and writer.exe[:15] != writer.comm:
        parts.append(f"program {writer.exe}")
    place = writer.workload or (writer.cgroup if writer.cgroup != "/" else None)
    if place:
        parts.append(f"in {shorten_path(place, _PLACE_WIDTH)}")
    if writer.parent_comm:
        parts.append(f"child of {writer.parent_comm}")
    return f"{writer.comm} ({', '.join(parts)})"
