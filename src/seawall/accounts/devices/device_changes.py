# SPDX-License-Identifier: Apache-2.0
"""Two moments of one node held against one another: who can use its devices at one and not at the
other, as in a bundle that was taken while something changed.
"""

from collections.abc import Iterator
from typing import NamedTuple

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices, DeviceRow, Mode
from seawall.accounts.workloads import Workload


class Differs(NamedTuple):
    """One container at the last moment, where the first said otherwise."""

    workload: Workload
    device_class: str
    mode: Mode | None
    """None: it can use its devices then."""
    words: str
    """After its name: ``cannot use what it was promised: ...``."""


def differing(first: DeviceTable, last: DeviceTable) -> Iterator[Differs]:
    """Only what was tried, or what the kernel's rules say, at both: a moment that does not hold a
    question answers nothing.
    """
    known = {_key(one): one for one in first.containers}
    for one in last.containers:
        before = known.get(_key(one))
        if before is None or _mode(before) == _mode(one):
            continue
        if one.diagnosis is None:
            if one.works:
                yield Differs(one.workload, one.device_class, None, "can use its devices")
        elif any(_is_refused(row) for row in one.devices):
            words = _words(before, one, one.diagnosis.headline)
            yield Differs(one.workload, one.device_class, one.diagnosis.mode, words)


def _words(before: ContainerDevices, now: ContainerDevices, headline: str) -> str:
    words = f"cannot use all of its devices: {headline}"
    undone = [row.path for row in now.devices if _is_undone(row, before)]
    if undone:
        words += (
            f"; the rule for {', '.join(undone[:3])} that was there at the first moment, and that"
            " its config never had, is gone: a repair by hand was undone (F7)"
        )
    return words


def _is_undone(row: DeviceRow, before: ContainerDevices) -> bool:
    was = next((one for one in before.devices if one.path == row.path), None)
    if was is None or was.layers["kernel"].says != "yes" or row.layers["kernel"].says != "no":
        return False
    return was.layers["configured"].says == row.layers["configured"].says == "no"


def _is_refused(row: DeviceRow) -> bool:
    return "no" in (row.layers["kernel"].says, row.layers["access"].says)


def _mode(one: ContainerDevices) -> Mode | None:
    return one.diagnosis.mode if one.diagnosis else None


def _key(one: ContainerDevices) -> tuple[str, str]:
    return one.workload.cgroup, one.device_class
