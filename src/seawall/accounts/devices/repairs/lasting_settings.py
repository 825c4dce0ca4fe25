# SPDX-License-Identifier: Apache-2.0
"""What has to be set otherwise so that it does not come back: read, not done, by nobody but a
person.  By failure mode.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices
from seawall.accounts.devices.repairs.step import Step, diagnosed


class _Setting(NamedTuple):
    what: str
    command: str
    mends: str


_KNOWN_TO_RUNTIME: Final = (
    "Give the devices so that the runtime knows of them: by CDI, or by device specs of the plugin"
)
_SETTINGS: Final[dict[str, _Setting]] = {
    "F3": _Setting(
        f"{_KNOWN_TO_RUNTIME}; or use the cgroupfs driver",
        "",
        "the cause: what a hook gives behind systemd's back is lost at each daemon-reload",
    ),
    "F4": _Setting(
        "Upgrade runc to 1.1.7 or later, and systemd to 240 or later",
        "runc --version\nsystemctl --version",
        "the cause: these leave no rule out for want of a link",
    ),
    "F6": _Setting(
        f"{_KNOWN_TO_RUNTIME}; and upgrade runc to 1.0 or later",
        "runc --version",
        "the cause: an update of the container then leaves its devices alone",
    ),
    "mode": _Setting(
        "Let the container's user use the node: its group (supplementalGroups, --group-add), or"
        " mode 0666 on the host",
        "",
        "the refusal: it is the mode, and no device rule",
    ),
}


def steps(table: DeviceTable, containers: list[ContainerDevices]) -> Iterator[Step]:
    """One for each mode that has any."""
    modes = {one.diagnosis.mode for one in diagnosed(containers) if one.diagnosis}
    for mode, setting in _SETTINGS.items():
        if mode in modes:
            yield _step(setting, mode)
    for one in CLASSES:
        f1 = [c for c in diagnosed(containers, "F1") if c.device_class == one.name]
        is_plugins = any(c.workload.pod_uid for c in f1) and bool(table.plugins)
        if one.answer and is_plugins and not any(plugin.lacks for plugin in table.plugins):
            told = _Setting(
                f"See that the device plugin is told to name control nodes ({one.answer})",
                "",
                "the cause, if the plugin's /dev had the node when the pod was allocated",
            )
            yield _step(told, "F1")


def _step(setting: _Setting, mode: str) -> Step:
    return Step(
        kind="settings",
        what=setting.what,
        command=setting.command,
        mends=setting.mends,
        does_not_mend="a container that runs"
        if mode != "mode"
        else "a container that runs, unless the mode of the node in its own /dev is changed",
        lasts="for good",
        by="you",
        tag=mode,
    )
