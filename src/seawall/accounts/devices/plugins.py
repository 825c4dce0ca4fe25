# SPDX-License-Identifier: Apache-2.0
"""Device plugins: whose pods they are by name, and what their own /dev lacks.

A plugin that makes lists of nodes looks into its own /dev, which is as the runtime made it when
the plugin was started: nodes that the host got later are not in it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from seawall.accounts.devices.classes import CLASSES, DeviceClass, class_of_path, class_of_resource
from seawall.accounts.devices.device_inputs import HostSide
from seawall.accounts.devices.kernel_rules.device_rules import is_everything
from seawall.accounts.devices.layers import Names, Plugin
from seawall.accounts.devices.promised.promises import Promise, Sources, hook_of
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.device_nodes import DeviceNode
from seawall.readings.device_specs import DeviceSpec
from seawall.readings.kubelet_devices import KubeletDevices, PodDevices

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


def without_needless_lacks(
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


# Whether a device plugin's answers name nodes: only then what its own /dev lacks matters.
#
# NVIDIA's plugin names nodes with PASS_DEVICE_SPECS=true or in CDI files of its own; otherwise its
# answer is a variable, and a hook or the runtime gives what the host has.  Witnesses: the answers
# in the kubelet's checkpoint (ContainerAllocateResponse of deviceplugin/v1beta1), configs of pods'
# containers that name some nodes of the class and lack those that the plugin lacks, and what the
# plugin was told itself, where its environment is seen.

_OF_PLUGIN: Final = "k8s.device-plugin."
"""How the kind of a CDI file begins that a plugin wrote itself."""
_OPTION: Final = "PASS_DEVICE_SPECS"


def names_nodes(
    plugin: Workload, lacks: Collection[str], promised: Iterable[Promise], sources: Sources
) -> Names:
    """Witnesses that contradict one another tell nothing."""
    spec = sources.spec_of(plugin)
    told = spec.environment.get(_OPTION, "").lower() if isinstance(spec, DeviceSpec) else ""
    if told == "true":
        return "yes"
    classes = [one for one in {class_of_path(path) for path in lacks} if one is not None]
    found = {*_by_checkpoint(classes, sources), *_by_configs(classes, lacks, promised, sources)}
    if not found and told == "false":
        return "no"
    return found.pop() if len(found) == 1 else "unknown"


def _by_checkpoint(classes: Collection[DeviceClass], sources: Sources) -> Iterator[Names]:
    entries = sources.kubelet.entries if isinstance(sources.kubelet, KubeletDevices) else ()
    for entry in entries:
        if class_of_resource(entry.resource) in classes:
            yield from _by_answer(entry)


def _by_answer(entry: PodDevices) -> Iterator[Names]:
    """An entry that holds no answer at all tells nothing."""
    if entry.devices or any(name.startswith(_OF_PLUGIN) for name in entry.cdi_names):
        yield "yes"
    elif entry.environment or entry.mounts or entry.cdi_names:
        yield "no"


def _by_configs(
    classes: Collection[DeviceClass],
    lacks: Collection[str],
    promised: Iterable[Promise],
    sources: Sources,
) -> Iterator[Names]:
    """What a runtime with CDI writes into a config is not the plugin's, and is whole."""
    for promise in promised:
        one, spec = promise.device_class, sources.spec_of(promise.workload)
        if one not in classes or one is None or not isinstance(spec, DeviceSpec):
            continue
        given = {device.path for device in spec.devices if one.member.match(device.path)}
        is_lists = bool(given) and given.isdisjoint(lacks) and promise.source != "cdi"
        is_others = hook_of(one, spec) or any(map(is_everything, spec.rules))
        if promise.workload.pod_uid is not None and is_lists and not is_others:
            yield "yes"
