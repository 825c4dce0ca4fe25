# SPDX-License-Identifier: Apache-2.0
"""Steps on the host itself: load modules, make nodes and links, write CDI specs anew.

Nothing that a plugin or a runtime is told before these are done is of any use.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from seawall.accounts.devices.classes import (
    CLASSES,
    DeviceClass,
    class_name,
    class_of_path,
    class_of_resource,
    majors_now,
)
from seawall.accounts.devices.host_nodes import by_hand
from seawall.accounts.devices.layers import ContainerDevices, HostNode
from seawall.accounts.devices.reasons.upcoming_loss import NEXT_START, NEXT_WITH_IT
from seawall.accounts.devices.repairs.step import (
    Link,
    Modules,
    RepairFacts,
    RepairScope,
    Step,
    diagnosed,
)
from seawall.host.host import Unread
from seawall.readings.device_nodes import DeviceNode
from seawall.words import first

_LINKS_MOST: Final = 1024
_UNTIL_BOOT: Final = "until the next boot"
_AT_BOOT: Final = "for good only what runs at each boot, before the container runtime"


def steps(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    """Repair steps on the host in the order to do them: modules, nodes, links, CDI specs."""
    yield from _modules(facts, scope, containers)
    yield from _nodes(facts, scope, containers)
    yield from _links(facts, scope, containers)
    yield from _cdi(facts, scope, containers)


def classes_of(containers: list[ContainerDevices], *modes: str) -> set[str]:
    """Names of classes of which one is broken in one of these ways."""
    return {one.device_class for one in diagnosed(containers, *modes)}


# --- 1: modules -------------------------------------------------------------------------


def _modules(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    if isinstance(facts.drivers, Unread):
        return
    wanted = classes_of(containers, "F2")
    for one in CLASSES:
        names = {control.drivers[0]: control.drivers for control in one.controls}
        loaded = [name for name, all_of_it in names.items() if majors_now(facts.drivers, all_of_it)]
        lacking = [
            control.drivers[0]
            for control in one.controls
            if control.is_needed and control.drivers[0] not in loaded
        ]
        is_half = scope.what == "host" and bool(loaded)
        if lacking and (one.name in wanted or is_half):
            yield _load(one, tuple(dict.fromkeys(lacking)))


def _load(one: DeviceClass, drivers: tuple[str, ...]) -> Step:
    names = ", ".join(drivers)
    return Step(
        kind="modules",
        what=f"Load the driver: {names} is not in /proc/devices",
        command=one.load,
        mends=f"{names}: without it no node can work, whoever has it",
        does_not_mend="what was started meanwhile: it keeps the list of devices that it was given."
        " Then look at the plan again: nodes and the plugin may follow",
        lasts=f"{_UNTIL_BOOT}; {_AT_BOOT} does (/etc/modules-load.d, or {one.load} in a unit)",
        by="seawall",
        on=Modules(tuple(one.load.split()), ("modprobe", one.module), drivers),
    )


# --- 2: nodes ---------------------------------------------------------------------------


def _nodes(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    wanted = classes_of(containers, "F1", "F2", "F10")
    missing = tuple(
        node
        for node in facts.table.host_nodes
        if not node.is_there and (scope.what != "workload" or class_name(node.path) in wanted)
    )
    if missing:
        yield Step(
            kind="nodes",
            what=f"Make control nodes on the host: {'; '.join(map(_node_words, missing))}",
            command="\n".join(map(by_hand, missing)),
            mends="the host: a plugin or a container that is started from now on can be given them",
            does_not_mend="a plugin and containers that run: each has a /dev of its own, made when"
            " it was started",
            lasts=f"{_UNTIL_BOOT} or load of the module; {_AT_BOOT} does"
            f"{_before_runtime(missing[0].path)}",
            by="seawall",
            on=missing,
        )


def _before_runtime(path: str) -> str:
    """With the dash: a driver that is not there yet must not keep the runtime from starting."""
    found = class_of_path(path)
    load = found.load if found else ""
    return f": ExecStartPre=-/usr/bin/{load}, with its dash" if load.startswith("nvidia-") else ""


def _node_words(node: HostNode) -> str:
    number = f"c {node.major}:{node.minor}"
    return f"{node.path} ({f'{node.found} there, ' if node.found else ''}{number} now)"


# --- 3: links ---------------------------------------------------------------------------


def _links(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    """Only where a rule was left out for want of one: newer runtimes look at none."""
    if isinstance(facts.nodes, Unread) or scope.what == "plugin":
        return
    there = facts.nodes.by_path
    known = {
        number for number, to in facts.nodes.char_links.items() if not _lies(number, to, there)
    }
    lost = list(dict.fromkeys(_lost(facts, containers, _paths(there))))
    if scope.what == "host":
        paths = [one.device for one in facts.table.about_to_break if one.when == NEXT_WITH_IT]
        lost += [
            Link(path, *there[path][2:4])
            for path in paths
            if path in there and there[path].kind == "c"
        ]
    classes = {class_name(link.path) for link in lost} - {None}
    near = [
        Link(path, node.major, node.minor)
        for path, node in sorted(there.items())
        if node.kind == "c" and class_name(path) in classes
    ]
    made = {link[1:]: link for link in (*near, *lost)}
    links = tuple(link for number, link in made.items() if number not in known)[:_LINKS_MOST]
    if any(link[1:] not in known for link in lost) and links:
        yield _link_step(links)


def _paths(there: Mapping[str, DeviceNode]) -> dict[tuple[int, int], str]:
    """What the host itself calls a device: a container may call it as it likes."""
    nodes = sorted(there.items(), reverse=True)
    return {(node.major, node.minor): path for path, node in nodes if node.kind == "c"}


def _lies(number: tuple[int, int], target: str, there: Mapping[str, DeviceNode]) -> bool:
    """Whether a link leads to a node of another number."""
    node = there.get(f"/dev/{target.removeprefix('../')}")
    return node is not None and (node.kind != "c" or (node.major, node.minor) != number)


def _lost(
    facts: RepairFacts, containers: list[ContainerDevices], paths: Mapping[tuple[int, int], str]
) -> Iterator[Link]:
    """Devices that the config has and systemd's list lacks, where that is for want of a link; with
    the paths of the host, by number.
    """
    soon = {one.workload for one in facts.table.about_to_break if "/dev/char" in one.remedy}
    for one in containers:
        if one.workload not in soon and (one.diagnosis is None or one.diagnosis.mode != "F4"):
            continue
        for row in one.devices:
            says = {layer: answer.says for layer, answer in row.layers.items()}
            is_lost = says["configured"] == "yes" and says["systemd"] == "no"
            if row.kind != "c" or row.major is None or row.minor is None:
                continue
            path = paths.get((row.major, row.minor))
            if is_lost and path is not None:
                yield Link(path, row.major, row.minor)


def _link_step(links: tuple[Link, ...]) -> Step:
    names = first([f"{one.major}:{one.minor}" for one in links], 6)
    is_nvidia = any(class_name(one.path) == "nvidia" for one in links)
    by_hand = "\n".join(
        f"ln -s ../{one.path.removeprefix('/dev/')} /dev/char/{one.major}:{one.minor}"
        for one in links[:6]
    )
    return Step(
        kind="links",
        what=f"Make links in /dev/char: {names}",
        command=(
            "nvidia-ctk system create-dev-char-symlinks --create-all" if is_nvidia else by_hand
        ),
        mends="containers that are made from now on: runc 1.1.3 to 1.1.6, and any with systemd"
        " before 240, leave out the rule of a device without its link",
        does_not_mend="a container that runs: systemd's list of it was written when it was made",
        lasts=f"{_UNTIL_BOOT}; {_AT_BOOT} does, or runc 1.1.7 with systemd 240",
        by="seawall",
        on=links,
    )


# --- 4: CDI -----------------------------------------------------------------------------


def _cdi(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    """Only told: which options its files were made with is not known, and some a pod writes."""
    old = [one for one in facts.table.about_to_break if one.when == NEXT_START]
    if scope.what == "workload":
        # The file may be new by now, and the container older than it: then nothing is to be done.
        given = {name for one in containers if (name := _cdi_class(one)) is not None}
        old = [one for one in old if class_name(one.device) in given]
    if not old or scope.what == "plugin":
        return
    told = "; ".join(dict.fromkeys(f"{one.device}: {one.why}" for one in old[:3]))
    more = f"; and {len(old) - 3} more" if len(old) > 3 else ""
    yield Step(
        kind="cdi",
        what=f"{' '.join(dict.fromkeys(one.remedy for one in old))} {told}{more}",
        command="\n".join(dict.fromkeys(one.command for one in old if one.command)),
        mends="containers that are made from this file from now on",
        does_not_mend="containers that run",
        lasts="until the devices change again: order it after the nodes at boot",
        by="you",
    )


def _cdi_class(one: ContainerDevices) -> str | None:
    is_given = one.promised_by.startswith("CDI")
    known = class_of_resource(one.promised_by.removeprefix("CDI "))
    return (known.name if known else one.device_class) if is_given else None
