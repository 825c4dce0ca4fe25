# SPDX-License-Identifier: Apache-2.0
"""Whether a device plugin's answers name nodes: only then what its own /dev lacks matters.

NVIDIA's plugin names nodes with PASS_DEVICE_SPECS=true or in CDI files of its own; otherwise its
answer is a variable, and a hook or the runtime gives what the host has.  Witnesses: the answers
in the kubelet's checkpoint (ContainerAllocateResponse of deviceplugin/v1beta1), configs of pods'
containers that name some nodes of the class and lack those that the plugin lacks, and what the
plugin was told itself, where its environment is seen.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from seawall.accounts.devices.classes import DeviceClass, class_of_path, class_of_resource
from seawall.accounts.devices.kernel_rules.device_rules import is_everything
from seawall.accounts.devices.layers import Names
from seawall.accounts.devices.promised.promises import Promise, Sources, hook_of
from seawall.accounts.workloads import Workload
from seawall.readings.device_specs import DeviceSpec
from seawall.readings.kubelet_devices import KubeletDevices, PodDevices

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
