# SPDX-License-Identifier: Apache-2.0
"""Who was promised which devices, by whom.

In this order of proof: the kubelet's checkpoint with the plugin's answer, and its word on the
pod-resources socket; CDI names; the variable that asks for devices; the nodes of the OCI config.
A promise that names its nodes can lack one; a promise that does not leaves them to a hook or to
the runtime.  ``all`` in the variable alone is no promise: images of CUDA carry it, wherever they
run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from seawall.accounts.devices.classes import (
    CLASSES,
    NOT_ASKED,
    OTHER,
    DeviceClass,
    class_of_path,
    class_of_paths,
    class_of_resource,
)
from seawall.accounts.devices.kernel_rules.device_rules import (
    USE,
    RuledDevice,
    is_everything,
    pseudo_name,
)
from seawall.accounts.devices.promised.kubelet_promises import of_kubelet
from seawall.accounts.devices.promised.promise import NODES_MOST, Promise, PromisedDevice, some
from seawall.accounts.devices.promised.promise_sources import Sources, cdi_nodes
from seawall.accounts.workloads import Workload
from seawall.readings.device_specs import DeviceSpec

__all__ = ["Promise", "PromisedDevice", "Sources", "hook_of", "promises"]

_DOCKER: Final = "hostconfig.json"
"""Docker's own file: no OCI config."""


def promises(workloads: Iterable[Workload], sources: Sources) -> list[Promise]:
    """Of every container, one for each class."""
    return [
        promise
        for workload in workloads
        if workload.kind == "container" and not workload.is_sandbox
        for promise in _of_container(workload, sources)
    ]


def _of_container(workload: Workload, sources: Sources) -> list[Promise]:
    spec = sources.spec_of(workload)
    known = spec if isinstance(spec, DeviceSpec) else None
    found: dict[str, Promise] = {}
    candidates = [*of_kubelet(workload, sources)]
    if known is not None:
        candidates += [*_cdi(workload, known, sources), *_environment(workload, known)]
        candidates += _configured(workload, known)
    for promise in candidates:
        before = found.get(promise.name)
        if before is None:
            found[promise.name] = promise
        elif before.source == promise.source:
            found[promise.name] = _both(before, promise)
    told = {path for name, one in found.items() if name != OTHER for path in one.nodes}
    if other := found.pop(OTHER, None):
        rest = {path: node for path, node in other.nodes.items() if path not in told}
        if rest:
            found[OTHER] = replace(other, nodes=rest)
    return list(found.values())


def _both(one: Promise, other: Promise) -> Promise:
    """Several entries of one class: four of one resource may stand in four."""
    return replace(
        one,
        promised_by="; ".join(dict.fromkeys((one.promised_by, other.promised_by))),
        nodes={**one.nodes, **other.nodes},
        names_nodes=one.names_nodes and other.names_nodes,
        unseen=(*one.unseen, *other.unseen),
    )


# --- CDI --------------------------------------------------------------------------------


def _cdi(workload: Workload, spec: DeviceSpec, sources: Sources) -> Iterator[Promise]:
    by_kind: dict[str, list[str]] = {}
    # What its claims tell is no promise of its own.
    claimed = {name for claim in sources.claims_of(workload) for name in claim.cdi_names}
    for name in spec.cdi_names:
        if name in claimed:
            continue
        by_kind.setdefault(name.partition("=")[0], []).append(name)
    for kind, names in by_kind.items():
        one = class_of_resource(kind)
        nodes, lost = cdi_nodes(names, sources)
        yield Promise(
            workload=workload,
            device_class=one,
            name=one.name if one else kind,
            source="cdi",
            promised_by=f"CDI {some(names)}",
            nodes=nodes,
            names_nodes=bool(nodes) and not lost,
            unseen=lost,
        )


# --- the variable, and the config itself ------------------------------------------------


def _environment(workload: Workload, spec: DeviceSpec) -> Iterator[Promise]:
    for one in CLASSES:
        value = spec.environment.get(one.visible, "").strip() if one.visible else ""
        if value in NOT_ASKED or (value == "all" and not hook_of(one, spec)):
            continue
        yield Promise(
            workload=workload,
            device_class=one,
            name=one.name,
            source="environment",
            promised_by=f"{one.visible}={value}",
            nodes={},
            names_nodes=False,
        )


def hook_of(one: DeviceClass | None, spec: DeviceSpec) -> str | None:
    """The program that gives the class's devices at start, if the container has one."""
    for hook in spec.hooks if one else ():
        name = hook.rpartition("/")[2]
        if one is not None and any(name.startswith(word) for word in one.hooks):
            return name
    return None


def _configured(workload: Workload, spec: DeviceSpec) -> Iterator[Promise]:
    """Nodes beyond those that every container has; whoever may use everything was not given
    anything in particular.
    """
    if any(is_everything(rule) for rule in spec.rules):
        return
    paths = [
        device.path
        for device in spec.devices
        if pseudo_name(RuledDevice(device.kind, device.major, device.minor)) is None
    ]
    # /dev/dri is of any vendor: it is of a class where a node tells which.
    main = class_of_paths(paths)
    by_class: dict[str, list[str]] = {}
    for path in paths:
        one = class_of_path(path)
        is_of = one is not None and (one is main or not path.startswith("/dev/dri/"))
        by_class.setdefault(one.name if one and is_of else OTHER, []).append(path)
    for name, members in by_class.items():
        nodes = {path: PromisedDevice(path, path, USE, None) for path in members[:NODES_MOST]}
        yield Promise(
            workload=workload,
            device_class=next((one for one in CLASSES if one.name == name), None),
            name=name,
            source="spec",
            promised_by=_DOCKER if spec.source.endswith(_DOCKER) else "OCI config",
            nodes=nodes,
            names_nodes=True,
        )
