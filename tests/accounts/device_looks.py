"""Looks at devices made by hand, one after the other, for tests of what changed between them."""

from collections.abc import Mapping
from errno import EPERM
from typing import Any

from seawall.accounts.devices.watch.changes import Changes
from seawall.accounts.devices.watch.device_watch_events import (
    AccessEvent,
    DeviceKey,
    DeviceLook,
    DeviceMoment,
    Stand,
    WatchedRule,
    WatchedTable,
)
from seawall.readings.device_writers import DeviceWriter, Write

START = 1_700_000_000.0
APP = "/kubepods/poda/app"
OTHER = "/kubepods/podb/other"
UVM = DeviceKey(APP, "/dev/nvidia-uvm")
GPU = DeviceKey(APP, "/dev/nvidia0")
ALLOWED = Stand(0, "c 510:0")
REFUSED = Stand(EPERM, "c 510:0")
SHELL = DeviceWriter(pid=4701, comm="sh", exe="dash", start_ticks=7, parent_comm="sshd")
RUNC = DeviceWriter(
    pid=4711, comm="runc", exe="runc", start_ticks=9, workload="unit:containerd.service"
)


def moment(seconds: float) -> DeviceMoment:
    return DeviceMoment(START + seconds, 100 + seconds)


def told(
    seconds: float = 0.0, names: Mapping[str, str] | None = None, **more: Any
) -> WatchedTable:  # fmt: skip
    """A table in which every layer says yes of both devices."""
    yes = dict.fromkeys(("promised", "configured", "systemd"), ("yes", "why"))
    values = {"layers": {UVM: yes, GPU: yes, DeviceKey(OTHER, UVM.path): yes}, "lacks": {}, **more}
    return WatchedTable(at=moment(seconds), names=names or {APP: "shop/app"}, **values)  # type: ignore[arg-type]


def write(seconds: float, writer: DeviceWriter, file: str = "devices.deny") -> Write:
    at = moment(seconds)
    return Write(f"/sys/fs/cgroup/devices{APP}", file, at.unix, at.monotonic, writer)


def look(
    seconds: float, stands: Mapping[DeviceKey, Stand] | None = None, *writes: Write, **more: Any
) -> DeviceLook:
    """One that took a hundredth of a second."""
    own = {APP: writes} if writes else {}
    at = moment(seconds)
    return DeviceLook(
        began=at.monotonic - 0.01, at=at, stands=stands or {}, writes=own, **more
    )  # fmt: skip


def rule(*parts: str) -> dict[str, WatchedRule]:
    return {APP: WatchedRule("devices.list", parts)}


def watching(*looks: DeviceLook) -> tuple[Changes, list[AccessEvent]]:
    """From a table and the first look on; the events of all of them."""
    changes = Changes()
    assert changes.tell(told()) == []
    events = []
    for number, one in enumerate(looks):
        found = changes.see(one)
        assert number or not found
        events += found
    return changes, events
