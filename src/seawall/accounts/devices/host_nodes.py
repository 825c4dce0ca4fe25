# SPDX-License-Identifier: Apache-2.0
"""The host's control nodes: which the loaded modules imply, and which of them are there.

The driver does not register its control nodes with devtmpfs: a program (nvidia-modprobe) has to
make them after each load of the module, and a dynamic major is another one then.
"""

from collections.abc import Iterable, Iterator

from seawall.accounts.devices.classes import CLASSES, DeviceClass, load_of
from seawall.accounts.devices.layers import Diagnosis, HostNode
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import DeviceNodes


def host_nodes(drivers: CharDevices, nodes: DeviceNodes) -> tuple[HostNode, ...]:
    """Of every class whose driver is loaded."""
    return tuple(node for one in CLASSES for node in _of_class(one, drivers, nodes))


def _of_class(one: DeviceClass, drivers: CharDevices, nodes: DeviceNodes) -> Iterator[HostNode]:
    for control in one.controls:
        if not control.is_implied:
            continue
        for name in control.drivers:
            majors = drivers.majors_of(name)
            if not majors:
                continue
            there = nodes.by_path.get(control.path)
            found = "" if there is None else f"{there.kind} {there.major}:{there.minor}"
            good = {f"c {major}:{control.minor}" for major in majors}
            yield HostNode(
                path=control.path,
                driver=name,
                major=majors[0],
                minor=control.minor,
                is_there=found in good,
                found="" if found in good else found,
            )
            break


def host_diagnosis(nodes: Iterable[HostNode]) -> Iterator[Diagnosis]:
    """What is wrong with the host itself, whoever uses it."""
    missing = [node for node in nodes if not node.is_there and not node.found]
    stale = [node for node in nodes if node.found]
    if missing:
        yield _missing(missing)
    for node in stale:
        yield Diagnosis(
            "F10",
            f"{node.path} on the host is {node.found}, and the driver {node.driver} has major"
            f" {node.major} now",
            "The module was loaded again and got another major number; the node was made for the"
            " one before, so opening it reaches no driver or a wrong one.",
            f"Remove {node.path} and make it anew ({load_of(node.driver)}), then write the CDI"
            " specs anew, restart the device plugin's pod and recreate the pods that use it."
            " Restarting a container does not mend it: its spec keeps the old number.",
        )


def _missing(missing: list[HostNode]) -> Diagnosis:
    paths = ", ".join(node.path for node in missing)
    are = "is" if len(missing) == 1 else "are"
    return Diagnosis(
        "F2",
        f"{paths} {are} missing on the host although the driver is loaded",
        "The driver does not make its control nodes itself: a program has to, after every boot and"
        " every load of the module, and that did not happen (yet).",
        f"Run {load_of(missing[0].driver)} on the host, and order it before the container runtime"
        " and the device plugin at boot. Then restart the plugin's pod and recreate the pods: what"
        " was started meanwhile does not get the nodes by itself.",
    )


def by_hand(node: HostNode) -> str:
    """The shell line that makes it; /dev/kfd is not for everybody (udev's rule: 0660, render)."""
    away = f"rm -f {node.path} && " if node.found else ""
    mode = "660" if node.path == "/dev/kfd" else "666"
    return f"{away}mknod -m {mode} {node.path} c {node.major} {node.minor}"
