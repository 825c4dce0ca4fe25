# SPDX-License-Identifier: Apache-2.0
"""Since when a device has been refused, from what really tells it, and only then.

What was never given is missing since the container was started.  What was taken away: on cgroup
v2 the kernel knows when the program that refuses was loaded (bpf_prog_info.load_time, 4.15); one
before it may have refused already, so that is the latest moment.  cgroup v1 keeps no time of a
change: the start of the container is the earliest moment, and systemd's last reload the latest
at which systemd can have done it.  A driver that came back with another number: the host's node
was made for it then.
"""

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Final

from seawall.accounts.devices.device_inputs import ContainerSide, HostSide
from seawall.accounts.devices.kernel_rules.cgroup_rules import refusing
from seawall.accounts.devices.kernel_rules.device_rules import device_of
from seawall.accounts.devices.layers import DeviceRow, Diagnosis, Since
from seawall.host.host import Unread

STARTED: Final = "the container was started"
_SAME_SECONDS: Final = 10.0
"""From the begin of a reload until its programs are loaded, on a node with many units."""
_AT_START_SECONDS: Final = 3.0
"""From the load of a runtime's program until the container's process runs."""
CUT_SECONDS: Final = 1.0
"""btime is cut to seconds, and so is the time of a node."""
_BY_SYSTEMD: Final = ("F3", "F4")


def since_when(
    diagnosis: Diagnosis | None, rows: Sequence[DeviceRow], side: ContainerSide, host: HostSide
) -> Since | None:
    """None: nothing that was seen tells it."""
    if diagnosis is None or host.clock is None:
        return None
    broken = [row for row in rows if row.broken_at is not None]
    for row in [row for row in broken if row.is_needed] or broken:
        if (found := _of_row(diagnosis, row, side, host)) is not None:
            return found
    return None


def _of_row(
    diagnosis: Diagnosis, row: DeviceRow, side: ContainerSide, host: HostSide
) -> Since | None:
    if diagnosis.mode in ("F1", "F2"):
        return _never_given(row, side, host)
    if diagnosis.mode == "F10":
        return _renumbered(row, side, host)
    if row.layers["kernel"].says == "no" or diagnosis.mode in _BY_SYSTEMD:
        return _taken_away(diagnosis, row, side, host)
    return None


# --- never given: F1, F2 ------------------------------------------------------------------


def _never_given(row: DeviceRow, side: ContainerSide, host: HostSide) -> Since | None:
    start = host.started_at(side.pid)
    if start is None or row.broken_at not in ("promised", "configured"):
        return None
    return Since(start, STARTED + _plugin_words(row, host))


def _plugin_words(row: DeviceRow, host: HostSide) -> str:
    """``; the host's node was made 8 s after the device plugin was started``."""
    made = host.changed_at(row.path)
    for plugin in host.plugins:
        start = host.started_at(plugin.pid)
        if made is None or start is None or row.path not in plugin.lacks:
            continue
        if made > start + CUT_SECONDS:
            return (
                f"; the host's {row.path} was made or changed {elapsed(made - start)} after the"
                " device plugin was started"
            )
    return ""


# --- taken away: F3, F4, F6 ---------------------------------------------------------------


def _taken_away(
    diagnosis: Diagnosis, row: DeviceRow, side: ContainerSide, host: HostSide
) -> Since | None:
    start, reloaded = host.started_at(side.pid), host.reloaded_at()
    if (loaded := _loaded_at(row, side, host)) is not None:
        return _by_program(loaded, start, host)
    if start is None:
        return None
    if reloaded is not None and reloaded < start:
        reloaded = None
    if reloaded is not None and diagnosis.mode in _BY_SYSTEMD:
        words = f"at the latest: the last daemon-reload; the container was started {moment(start)}"
        return Since(reloaded, words)
    is_v1 = not isinstance(host.groups, Unread) and host.groups.version == 1
    return _at_the_earliest(start, reloaded) if is_v1 else None


def _loaded_at(row: DeviceRow, side: ContainerSide, host: HostSide) -> float | None:
    """When the program that refuses it was loaded."""
    if isinstance(host.groups, Unread) or (device := device_of(row)) is None:
        return None
    number = refusing(host.groups, side.cgroup, device)
    loaded = None if number is None else host.groups.loaded.get(number)
    return None if loaded is None or host.clock is None else host.clock.booted_at + loaded


def _by_program(loaded: float, start: float | None, host: HostSide) -> Since:
    if start is not None and loaded < start + _AT_START_SECONDS:
        return Since(start, STARTED)
    reloaded = host.reloaded_at()
    if reloaded is not None and abs(loaded - reloaded) < _SAME_SECONDS:
        words = "at the latest: the last daemon-reload put systemd's own device program there"
        return Since(loaded, words)
    return Since(loaded, "at the latest: the cgroup's device program that refuses it was loaded")


def _at_the_earliest(start: float, reloaded: float | None) -> Since:
    words = (
        "at the earliest: the container was started then, and cgroup v1 keeps no time of a change"
    )
    if reloaded is not None:
        words += f"; the last daemon-reload was at {moment(reloaded)}"
    return Since(start, words)


# --- another number: F10 ------------------------------------------------------------------


def _renumbered(row: DeviceRow, side: ContainerSide, host: HostSide) -> Since | None:
    """By the host's node, where that has the number of now."""
    start, node, made = host.started_at(side.pid), host.node(row.path), host.changed_at(row.path)
    if node is None or node.major not in host.majors(row.path) or made is None or start is None:
        return None
    if made <= start + CUT_SECONDS:
        return Since(start, f"{STARTED}, with a number that was old already")
    return Since(float(made), "the host's node of the driver's new number was made or changed")


# --- words --------------------------------------------------------------------------------


def elapsed(seconds: float) -> str:
    """``8 s``, ``2 h 5 min``, ``3 d 4 h``: the two greatest units."""
    left, parts = max(0, int(seconds)), list[str]()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts)) or "0 s"


def moment(unix_seconds: float) -> str:
    """``2026-11-22 03:14:07 UTC``; ``an unknown time`` where no calendar has it."""
    try:
        return datetime.fromtimestamp(unix_seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"
