# SPDX-License-Identifier: Apache-2.0
"""Device plugins: whose pods they are by name, and what their own /dev lacks.

A plugin that makes lists of nodes looks into its own /dev, which is as the runtime made it when
the plugin was started: nodes that the host got later are not in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.device_inputs import HostSide
from seawall.accounts.devices.layers import Plugin
from seawall.accounts.devices.plugin_answers import names_nodes
from seawall.accounts.devices.promised.promises import Promise, Sources
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.device_nodes import DeviceNode

ANY: Final = "device-plugin"


def find(workloads: Iterable[Workload]) -> list[Workload]:
    """Containers that are device plugins, by the names of pod and container."""
    words = (ANY, *(word for one in CLASSES for word in one.plugins))
    return [
        workload
        for workload in workloads
        if workload.kind == "container" and not workload.is_sandbox and is_named(workload, words)
    ]


def is_named(workload: Workload, words: Iterable[str]) -> bool:
    """Not by its namespace: whoever has one of that name is not a plugin."""
    names = (workload.pod, workload.container, None if workload.pod else workload.name)
    return any(word in name for name in names if name for word in words)


def plugins_of(
    found: Mapping[int, Workload],
    nodes: Mapping[int, Mapping[str, DeviceNode] | Unread],
    host: HostSide,
) -> Iterator[Plugin]:
    """Each with what its /dev lacks, by pid."""
    for pid, workload in found.items():
        own = nodes.get(pid)
        lacks = () if own is None or isinstance(own, Unread) else tuple(_lacks(own, host))
        yield Plugin(workload=workload, pid=pid, lacks=lacks)


def judged(
    found: Iterable[Plugin], promised: Sequence[Promise], sources: Sources
) -> Iterator[Plugin]:  # fmt: skip
    """The same, without what a plugin lacks that does not hand out nodes at all."""
    for one in found:
        names = names_nodes(one.workload, one.lacks, promised, sources) if one.lacks else "unknown"
        yield replace(one, lacks=() if names == "no" else one.lacks, names_nodes=names)


def _lacks(own: Mapping[str, DeviceNode], host: HostSide) -> Iterator[str]:
    """Control nodes of the classes of which it has some: a plugin that has none of a class's
    nodes does not look into its /dev for them (CDI, volume mounts).
    """
    for one in CLASSES:
        if not any(one.member.match(path) for path in own):
            continue
        for control in one.controls:
            is_expected = control.is_needed or control.is_implied
            if is_expected and control.path not in own and host.node(control.path) is not None:
                yield control.path
