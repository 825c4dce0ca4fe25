# SPDX-License-Identifier: Apache-2.0
"""Doing what a plan has: one step after the other, each looked at again right before.

A step that is no longer needed is skipped; one that would be for nothing until another is done is
refused, as is one that is not Seawall's to do.  What was done is verified by looking, and trying,
anew.
"""

import os
import time
from collections.abc import Iterable, Iterator
from typing import Final

from seawall.accounts.devices.layers import HostNode, Plugin
from seawall.accounts.devices.repairs.plugin_steps import is_there
from seawall.accounts.devices.repairs.repair_plan import in_the_way
from seawall.accounts.devices.repairs.step import (
    KINDS,
    By,
    Link,
    Modules,
    RepairOutcome,
    RepairPlan,
    Step,
)
from seawall.accounts.workloads import Workload
from seawall.actions.device_repairs.plugin_restart import restart
from seawall.actions.device_repairs.pod_recreation import recreate
from seawall.actions.device_repairs.repair_run import HOST_ROOT, RepairRun, RepairStepOutcome
from seawall.host.char_links import leads_to, make_link
from seawall.host.control_nodes import look, make
from seawall.host.host import Unread
from seawall.host.own_commands import find, run
from seawall.host.own_devices import try_each
from seawall.readings.char_devices import CharDevices

SEAWALLS: Final = ("modules", "nodes", "links", "plugin", "recreate")
"""Kinds of which it can do any."""
_LOAD_SECONDS: Final = 60.0
_LOOKS_MOST: Final = 4
_AGAIN_SECONDS: Final = 0.5
_NOT_OURS: Final[dict[By, str]] = {
    "you": "it is not Seawall's to do: type the command, or do what is said",
    "user": "only who runs the container can do it",
    "nobody": "it is never done: the runtime does not know of it, and the cause stays",
    "seawall": "",
}

_GONE: Final = (
    "its container has ended, and no other of its class runs: kubectl get pods -A | grep"
    " device-plugin says why (CrashLoopBackOff?)"
)


def do(
    repair: RepairRun, first: RepairPlan, wanted: Iterable[int], *, is_all: bool
) -> Iterator[RepairOutcome]:
    """Each as it is done.  ``first``: what the person was shown."""
    numbers = sorted(wanted)
    rest = {_key(one): one for one in first.steps if _is_meant(one, numbers, is_all=is_all)}
    tried: set[str] = set()
    undone = ""
    for number in numbers:
        while True:
            now = _look_again(repair, first)
            if isinstance(now, str):
                yield from (RepairOutcome(one, "failed", now) for one in rest.values())
                return
            meant = (one for one in now.steps if _is_meant(one, (number,), is_all=is_all))
            step = next((one for one in meant if _key(one) not in tried), None)
            if step is None:
                break
            tried.add(_key(step))
            rest.pop(_key(step), None)
            result = RepairOutcome(step, *_one(repair, now, step, undone))
            undone = undone or _undone(result)
            yield result
        for key in [key for key, one in rest.items() if one.number == number]:
            result = RepairOutcome(rest[key], *_skipped(now, rest.pop(key)))
            undone = undone or _undone(result)
            yield result


def _undone(result: RepairOutcome) -> str:
    """Why a plugin may not serve who comes next; empty: it does, or the step is another one."""
    is_well = result.state == "done" or result.is_verified
    return "" if result.step.kind != "plugin" or is_well else result.words


def _skipped(now: RepairPlan, step: Step) -> RepairStepOutcome:
    """A plugin that crashes is in no table either, and is not mended."""
    if isinstance(step.on, Plugin) and not is_there(step.on, now.plugins):
        return RepairStepOutcome("skipped", _GONE)
    words = "it is not needed any more: what it was for is mended, or gone"
    return RepairStepOutcome("skipped", words, is_verified=True)


def _is_meant(step: Step, numbers: Iterable[int], *, is_all: bool) -> bool:
    return step.number in numbers and (step.by == "seawall" or not is_all)


def _look_again(repair: RepairRun, first: RepairPlan) -> RepairPlan | str:
    """The plan of now; in words what could be seen before and cannot now: who does not see a
    step any more must not take it for done.
    """
    words = "the time of --timeout was over before it"
    for _ in range(_LOOKS_MOST):
        if time.monotonic() > repair.until:
            break
        now = repair.plan()
        gaps = [f"{now.path}: {now.detail or now.why}"] if isinstance(now, Unread) else []
        if not isinstance(now, Unread):
            gaps = [gap for gap in now.unseen if gap not in first.unseen]
            if not gaps:
                return now
        words = f"could not look again: {'; '.join(gaps[:3])}"
        time.sleep(_AGAIN_SECONDS)
    return words


def _key(step: Step) -> str:
    """A plugin's new container is still the same plugin: it is not restarted twice."""
    on = step.on.workload if isinstance(step.on, Plugin) else step.on
    if isinstance(on, Workload) and on.pod_uid is not None:
        return f"{step.kind}:{on.pod_uid}:{on.container}"
    return step.id


def _one(repair: RepairRun, now: RepairPlan, step: Step, undone: str) -> RepairStepOutcome:
    """``undone``: why the plugin that serves it was not restarted."""
    if step.by != "seawall":
        return RepairStepOutcome("refused", _NOT_OURS[step.by])
    if (first := in_the_way(now, step)) is not None:
        return RepairStepOutcome(
            "refused", f"first {first.number}, or it is for nothing: {first.what}"
        )
    if undone and step.kind == "recreate":
        return RepairStepOutcome("refused", f"6 was not done, and it may be for nothing: {undone}")
    try:
        return _perform(repair, step)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return RepairStepOutcome("failed", f"{where}{error.strerror or error}")


def _perform(repair: RepairRun, step: Step) -> RepairStepOutcome:
    on = step.on
    if isinstance(on, Modules):
        return _load(repair, on)
    if isinstance(on, Plugin):
        return restart(repair, on)
    if isinstance(on, Workload):
        return recreate(repair, on)
    nodes = [one for one in on or () if isinstance(one, HostNode)]
    links = [one for one in on or () if isinstance(one, Link)]
    return _make_nodes(repair, nodes) if nodes else _make_links(repair, links)


# --- on the host ------------------------------------------------------------------------


def _load(repair: RepairRun, modules: Modules) -> RepairStepOutcome:
    command = modules.command if find(modules.command[0]) else modules.fallback
    program = find(command[0])
    if program is None:
        return RepairStepOutcome(
            "failed", f"neither {modules.command[0]} nor {command[0]} is installed"
        )
    repair.say(f"runs: {' '.join(command)}")
    ran = run([program, *command[1:]], min(_LOAD_SECONDS, repair.seconds_left()))
    drivers = repair.look().get(CharDevices)
    if isinstance(drivers, Unread):
        return RepairStepOutcome("done", f"whether it is loaded was not seen: {drivers.detail}")
    lacking = [name for name in modules.drivers if not drivers.majors_of(name)]
    if lacking:
        said = f": {ran.words}" if ran.words else ""
        return RepairStepOutcome("failed", f"{', '.join(lacking)} is not in /proc/devices{said}")
    return RepairStepOutcome(
        "done", f"{', '.join(modules.drivers)} is in /proc/devices now", is_verified=True
    )


def _make_nodes(repair: RepairRun, nodes: list[HostNode]) -> RepairStepOutcome:
    problems = []
    for node in nodes:
        try:
            repair.say(make(HOST_ROOT, node.path, node.major, node.minor))
        except OSError as error:
            problems.append(f"{node.path}: {error.strerror}")
    seen = look(HOST_ROOT, [node.path for node in nodes])
    tried = {row[0]: row[1] for row in try_each([node.path for node in nodes], opens=False)}
    for node in nodes:
        found = seen.get(node.path)
        if found is None or found[:3] != ("c", node.major, node.minor):
            problems.append(f"{node.path} is not c {node.major}:{node.minor}")
        elif code := tried[node.path]:
            problems.append(f"{node.path} is there and may not be used: {os.strerror(code)}")
    if problems:
        return RepairStepOutcome("failed", "; ".join(problems))
    names = ", ".join(node.path for node in nodes)
    return RepairStepOutcome(
        "done", f"tried: {names} may be read and written here", is_verified=True
    )


def _make_links(repair: RepairRun, links: list[Link]) -> RepairStepOutcome:
    problems = []
    for link in links:
        name = f"/dev/char/{link.major}:{link.minor}"
        try:
            repair.say(make_link(HOST_ROOT, link.path, link.major, link.minor))
        except OSError as error:
            problems.append(f"{name}: {error.filename or link.path}: {error.strerror}")
            continue
        if not leads_to(HOST_ROOT, link.major, link.minor):
            problems.append(f"{name} does not lead to its device")
    if problems:
        return RepairStepOutcome("failed", "; ".join(problems))
    return RepairStepOutcome(
        "done", f"each of the {len(links)} leads to its device", is_verified=True
    )


def doable() -> set[int]:
    """Numbers of the kinds that Seawall can do, for ``--do all``."""
    return {KINDS.index(kind) + 1 for kind in KINDS if kind in SEAWALLS}
