# SPDX-License-Identifier: Apache-2.0
"""The step for pods and containers: made anew, for their devices were decided when they were."""

import re
import shlex
from collections.abc import Iterator
from typing import Final

from seawall.accounts.devices.layers import ContainerDevices
from seawall.accounts.devices.repairs.removal_commands import delete_named, delete_pod, docker
from seawall.accounts.devices.repairs.step import (
    RepairFacts,
    RepairScope,
    Step,
    diagnosed,
    taken_away,
)
from seawall.words import first

_NAMES_SHOWN: Final = 6
_RESTART_ALONE: Final = (
    "restarting the container alone is not enough: that uses the kubelet's and the runtime's old"
    " answer again"
)


def steps(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    """A pod once, however many of its containers are broken."""
    if scope.what != "workload":
        yield from _named(facts, scope, containers)
        return
    known = sorted(diagnosed(containers), key=_is_unsure)
    wounded = {one.workload.cgroup: (one, "") for one in known}
    for soon in taken_away(facts.table, scope):
        for one in containers:
            if one.workload == soon.workload:
                wounded.setdefault(one.workload.cgroup, (one, soon.when))
    seen: set[str] = set()
    for one, when in wounded.values():
        key = one.workload.pod_uid or one.workload.cgroup
        if key not in seen:
            seen.add(key)
            yield _pod(one, when) if one.workload.pod_uid else _container(one, when)


def _is_unsure(one: ContainerDevices) -> bool:
    """Whether making it anew may be for nothing: then it is not done without a person."""
    return one.diagnosis is not None and one.diagnosis.mode in ("unnamed", "mode")


def _pod(one: ContainerDevices, when: str) -> Step:
    workload, command = one.workload, delete_pod(one.workload)
    is_sure = one.diagnosis is not None and not _is_unsure(one) and bool(command)
    return Step(
        kind="recreate",
        what=f"Recreate the pod of {workload.name}{_how(one, when)}",
        command=_with_bundle(one, command),
        mends=_mends(one),
        does_not_mend=f"{_RESTART_ALONE}; a pod without an owner (Deployment, Job, ...) does not"
        " come back by itself, and the node does not tell whether it has one",
        lasts="for the life of the new pod, if the steps before this one are done",
        by="seawall" if is_sure else "you",
        on=workload,
    )


def _container(one: ContainerDevices, when: str) -> Step:
    away = docker(one.workload, "rm -f")
    return Step(
        kind="recreate",
        what=f"Make the container {one.workload.name} anew, with all that it was started with"
        f"{_how(one, when)}",
        command=_with_bundle(one, f"{away}\n{_run(one)}" if away else ""),
        mends=_mends(one),
        does_not_mend="what is not in its own options: a restart (docker restart) keeps those",
        lasts="for the life of the new container",
        by="you",
        on=one.workload,
    )


def _how(one: ContainerDevices, when: str) -> str:
    if when:
        return f" when it suits: it works until {when}"
    is_unnamed = one.diagnosis is not None and one.diagnosis.mode == "unnamed"
    return ", and look again" if is_unnamed else ""


def _mends(one: ContainerDevices) -> str:
    mode = one.diagnosis.mode if one.diagnosis else ""
    if mode == "unnamed":
        return "not known: what refuses it has no name yet, so keep a bundle first"
    return "its nodes, after 5 is done" if mode == "mode" else "its list of devices is made anew"


def _with_bundle(one: ContainerDevices, command: str) -> str:
    """What has no name yet is looked into later, from a bundle of before."""
    if one.diagnosis is None or one.diagnosis.mode != "unnamed":
        return command
    return f"seawall capture\n{command}".rstrip()


def _run(one: ContainerDevices) -> str:
    lacking = [row.path for row in one.devices if row.broken_at and row.is_needed]
    lacking = [path for path in lacking if re.fullmatch(r"/dev/[A-Za-z0-9/_.:-]+", path)]
    program = "podman" if one.workload.runtime == "podman" else "docker"
    given = " ".join(f"--device {path}" for path in lacking[:_NAMES_SHOWN])
    return f"{program} run {given} ..." if given else f"{program} run ..."


def _named(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    """Who is still to be mended when the host or the plugin is."""
    is_host_whole = all(node.is_there for node in facts.table.host_nodes)
    is_others = scope.what == "host" and is_host_whole
    found = diagnosed(containers, "F2", *(() if is_others else ("F1", "F10")))
    if scope.what == "plugin":
        found = [one for one in found if one.workload.pod_uid is not None]
    told = {one.workload.name: one.workload.name for one in found}
    for name, when in _by_hand(facts, containers) if scope.what == "plugin" else ():
        told.setdefault(name, f"{name} (works by a rule that it was not given, until {when})")
    if told:
        yield _meanwhile(
            f"Then recreate what was started meanwhile: {first([*told.values()], _NAMES_SHOWN)}",
            f"seawall gpu repair {shlex.quote(next(iter(told)))}",
            "meanwhile",
        )
    refused = [one for one in facts.table.refused_pods if one.mode in ("F8", "F9")]
    if refused and scope.what == "plugin":
        names = first([one.name for one in refused], _NAMES_SHOWN)
        yield _meanwhile(
            f"Delete the pods that the kubelet refused: {names}",
            delete_named(refused[0].namespace, refused[0].pod),
            "refused",
        )


def _by_hand(facts: RepairFacts, containers: list[ContainerDevices]) -> Iterator[tuple[str, str]]:
    """Pods that work although the answer to them lacks a node: the next start takes it away."""
    for one in containers:
        lacking = {row.path for row in one.devices if row.layers["configured"].says == "no"}
        for soon in facts.table.about_to_break if one.workload.pod_uid is not None else ():
            if soon.workload == one.workload and soon.device in lacking:
                yield one.workload.name, soon.when
                break


def _meanwhile(what: str, command: str, tag: str) -> Step:
    return Step(
        kind="recreate",
        what=what,
        command=command,
        mends="their lists of devices are made anew",
        does_not_mend=_RESTART_ALONE,
        lasts="for the life of the new pods",
        by="you",
        tag=tag,
    )
