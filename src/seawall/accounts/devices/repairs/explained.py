# SPDX-License-Identifier: Apache-2.0
"""What is only explained: the rules of a container that runs, and its process.

A rule that is written under the runtime changes a running tenant and not the cause.  Measured with
systemd 252: what ``set-property --runtime DeviceAllow=`` wrote outlives a daemon-reload.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices
from seawall.accounts.devices.repairs.step import RepairScope, Step, broken, taken_away

_UNTIL: Final = (
    "at most until the container's next start. runc before 1.0 puts its own list back at each"
    " update: a resize in place, or the kubelet's CPU manager with the static policy (every 10 s;"
    " kubelets that remember the last cpuset only when it changed)"
)
_BY_SYSTEMD: Final = (
    ". The next daemon-reload (any package upgrade) takes back what was written into the cgroup,"
    " and not what systemctl set-property --runtime wrote, which is gone with the scope"
)


def rules(
    containers: list[ContainerDevices], table: DeviceTable, scope: RepairScope
) -> Iterator[Step]:
    """Where somebody would be tempted to write into the cgroup, or has."""
    refused = [
        one
        for one in broken(containers, "F1", "F3", "F4", "F6")
        if any(row.broken_at and row.layers["access"].says == "no" for row in one.devices)
    ]
    if not refused and not taken_away(table, scope):
        return
    is_systemd = any(
        row.layers["systemd"].says in ("yes", "no") for one in containers for row in one.devices
    )
    yield Step(
        kind="rules",
        what="Not done: changing the device rules of the running container (devices.allow,"
        " a device program, systemctl set-property)",
        command="",
        mends="the access of this one container, for a while",
        does_not_mend="the cause, and the list that the runtime keeps: it changes a tenant's rules"
        " behind the runtime's back, nobody is told, and a program that opens the device late finds"
        " it gone again",
        lasts=f"{_UNTIL}{_BY_SYSTEMD if is_systemd else ''}",
        by="nobody",
    )


def process(containers: list[ContainerDevices]) -> Iterator[Step]:
    """What only the container's user can do."""
    if broken(containers):
        yield Step(
            kind="process",
            what="Restart the process in the container, when it is not made anew anyway",
            command="",
            mends="the program: a CUDA or driver context that failed does not recover, even when"
            " the device can be opened again",
            does_not_mend="the access itself",
            lasts="as long as the access does; with seawall gpu check at its start it ends with a"
            " sentence instead of computing on the CPU",
            by="user",
        )
