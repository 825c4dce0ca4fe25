"""Looks at devices made by hand, one after the other, for tests of what changed between them."""

from collections.abc import Mapping
from errno import EPERM
from typing import Any

from seawall.accounts.devices.watch.changes import Changes
from seawall.accounts.devices.watch.events import (
    Event,
    Key,
    Look,
    Moment,
    Rule,
    Stand,
    Told,
)
from seawall.readings.device_writers import Write, Writer

START = 1_700_000_000.0
APP = "/kubepods/poda/app"
OTHER = "/kubepods/podb/other"
UVM = Key(APP, "/dev/nvidia-uvm")
GPU = Key(APP, "/dev/nvidia0")
ALLOWED = Stand(0, "c 510:0")
REFUSED = Stand(EPERM, "c 510:0")
SHELL = Writer(pid=4701, comm="sh", exe="dash", start_ticks=7, parent_comm="sshd")
RUNC = Writer(pid=4711, comm="runc", exe="runc", start_ticks=9, workload="unit:containerd.service")


def moment(seconds: float) -> Moment:
    return Moment(START + seconds, 100 + seconds)


def told(
    seconds: float = 0.0, names: Mapping[str, str] | None = None, **more: Any
) -> Told:  # fmt: skip
    """A table in which every layer says yes of both devices."""
    yes = dict.fromkeys(("promised", "configured", "systemd"), ("yes", "why"))
    values = {"layers": {UVM: yes, GPU: yes, Key(OTHER, UVM.path): yes}, "lacks": {}, **more}
    return Told(at=moment(seconds), names=names or {APP: "shop/app"}, **values)  # type: ignore[arg-type]


def write(seconds: float, writer: Writer, file: str = "devices.deny") -> Write:
    at = moment(seconds)
    return Write(f"/sys/fs/cgroup/devices{APP}", file, at.unix, at.monotonic, writer)


def look(
    seconds: float, stands: Mapping[Key, Stand] | None = None, *writes: Write, **more: Any
) -> Look:
    """One that took a hundredth of a second."""
    own = {APP: writes} if writes else {}
    at = moment(seconds)
    return Look(
        began=at.monotonic - 0.01, at=at, stands=stands or {}, writes=own, **more
    )  # fmt: skip


def rule(*parts: str) -> dict[str, Rule]:
    return {APP: Rule("devices.list", parts)}


def watching(*looks: Look) -> tuple[Changes, list[Event]]:
    """From a table and the first look on; the events of all of them."""
    changes = Changes()
    assert changes.tell(told()) == []
    events = []
    for number, one in enumerate(looks):
        found = changes.see(one)
        assert number or not found
        events += found
    return changes, events
