# SPDX-License-Identifier: Apache-2.0
"""What a cgroup's limit means: a container's own, one inside it, or one of many on a node.

By its path alone.  The kubelet's settings: ``--system-reserved``, ``--kube-reserved``,
``enforceNodeAllocatable``, ``--qos-reserved``; systemd's ``MemoryMax=``; Slurm's ``--mem``.
"""

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.oom.report_facts import Owner
from seawall.cgroup_paths import CgroupPlace, place_of
from seawall.slurm_paths import part_of

RoleKind: TypeAlias = Literal[
    "container", "pod", "inside", "allocatable", "qos", "reserved", "system", "users",
    "machines", "machine", "job", "unit", "cgroup",
]  # fmt: skip

_DEPTH_MOST: Final = 48
"""Parts of a path that are looked at for containers within containers."""
_OF_NAMESPACES: Final = frozenset({"ns", ".lxc", "container"})
"""What LXC, and crun below its scope, put between a container's cgroup and what is in it."""
_KUBEPODS: Final = re.compile(r"(?:[\w-]+-)?kubepods(?:\.slice)?\Z", re.ASCII)
_CLASS: Final = re.compile(
    r"(?:(?:[\w-]+-)?kubepods-)?(burstable|besteffort)(?:\.slice)?\Z", re.ASCII
)
_RESERVED: Final = re.compile(
    r"(?:[\w-]+-)?(kube|kubelet|system|runtime|podruntime|container-runtime)"
    r"(?P<reserved>[-_.]?reserved)?(?:\.slice)?\Z",
    re.ASCII,
)
_USER: Final = re.compile(r"user-(\d{1,10})\.slice\Z", re.ASCII)
_CLASSES: Final = {"burstable": "Burstable", "besteffort": "BestEffort"}


class LimitRole(NamedTuple):
    """What a cgroup's limit is, in words: whose it is, what it means, and what to raise."""

    kind: RoleKind
    subject: str
    """``pulse.service inside lxc:703``: what a verdict says has reached its limit."""
    meaning: str
    """A sentence: whose limit it is and whose not; empty where the subject says it."""
    remedy: str
    """What to raise, and where: after ``..., or``."""


def role_of(owner: Owner) -> LimitRole:
    """Of the cgroup whose limit was hit."""
    outer, rest = _inside(owner.path)
    if outer is None:
        return _own(owner)
    place = place_of(outer)
    name = owner.name if owner.place.cgroup == outer else short_name(place)
    return _inner(name, rest, place)


def short_name(place: CgroupPlace) -> str:
    """A cgroup's short name: ``lxc:703``, ``container:648ff0b11197``, ``pod UID``."""
    return Owner(place.cgroup, place, None, None, None).name


@lru_cache(maxsize=512)
def _inside(path: str) -> tuple[str | None, str]:
    """The innermost container above the cgroup, and the path from there; None: it is itself one,
    or is in none.
    """
    parts = [part for part in path.split("/") if part]
    outer, rest, here = None, "", ""
    for index, part in enumerate(parts[:_DEPTH_MOST]):
        here += "/" + part
        place = place_of(here)
        if place.kind != "container" or place.cgroup != here:
            continue
        below = parts[index + 1 :]
        while below and below[0] in _OF_NAMESPACES:
            below = below[1:]
        if below:
            outer, rest = here, "/" + "/".join(below)
    return outer, rest


def _inner(name: str, rest: str, outer: CgroupPlace) -> LimitRole:
    """A cgroup that something inside a container made."""
    place = place_of(rest)
    kept = f"container {outer.machine or (outer.container_id or '')[:12]}".rstrip()
    changes = f"raising the memory of {kept} itself changes nothing"
    if place.kind not in ("container", "pod"):
        inner = _by_path(rest, place)
        if inner.kind in ("allocatable", "qos", "reserved"):  # a node in a container: kind, k3d
            return inner._replace(subject=f"{inner.subject} inside {name}")
    if place.kind in ("container", "pod"):
        what = short_name(place) if rest == place.cgroup else f"the cgroup {rest}"
        return LimitRole(
            "inside", f"{what} inside {name}",
            f"That is the limit of a {place.kind} that {kept} started itself, not of {kept}: "
            f"{changes}.", f"raise the limit of {what} inside {kept}",
        )  # fmt: skip
    unit = rest.rpartition("/")[2]
    is_unit = place.unit is not None
    what = unit if is_unit else f"the cgroup {rest}"
    setting = "raise its MemoryMax= in there" if is_unit else "raise that cgroup's limit in there"
    by = f"set in there (MemoryMax= of {unit})" if is_unit else "set in there"
    return LimitRole(
        "inside", f"{what} inside {name}",
        f"That is the limit of {what} inside {kept}, {by}, not that of {kept}: {changes}.",
        setting,
    )  # fmt: skip


def _own(owner: Owner) -> LimitRole:
    place = owner.place
    if place.kind == "container":
        pod = f" in pod {place.pod_uid}" if place.pod_uid and not owner.pod else ""
        remedy = "raise the limit" if place.machine or not place.pod_uid else (
            "raise the container's limit (resources.limits.memory)"
        )  # fmt: skip
        return LimitRole("container", owner.name + pod, "", remedy)
    if place.kind == "pod" and owner.path == place.cgroup:
        return LimitRole(
            "pod", owner.name,
            "That is the limit of the whole pod, the sum of its containers' limits: tmpfs volumes "
            "(emptyDir Memory) and the sandbox count too." if place.qos else "",
            "raise the limits of its containers" if place.qos else "raise the limit",
        )  # fmt: skip
    return _by_path(owner.path, place)


def _by_path(path: str, place: CgroupPlace) -> LimitRole:
    parts = [part for part in path.split("/") if part]
    last = parts[-1] if parts else ""
    if _KUBEPODS.match(last):
        return LimitRole(
            "allocatable", f"all pods of the node together ({path})",
            "That is the node's allocatable memory, what all its pods may use together: no pod's "
            "own limit, and the node itself may still have memory.",
            "leave them more: smaller --system-reserved, --kube-reserved or --eviction-hard of the "
            "kubelet",
        )  # fmt: skip
    if (found := _CLASS.match(last)) and (
        "kubepods" in last or (len(parts) > 1 and _KUBEPODS.match(parts[-2]))
    ):
        name = _CLASSES[found[1]]
        return LimitRole(
            "qos", f"all {name} pods of the node together ({path})",
            f"That is what all {name} pods may use together, as the kubelet's --qos-reserved "
            "leaves it to them: no pod's own limit.", "lower --qos-reserved of the kubelet",
        )  # fmt: skip
    if place.job:
        return _job(path)
    if daemons := _reserved(parts):
        return daemons
    if place.is_machine:
        return LimitRole(
            "machine", f"the virtual machine {last}",
            "That is the limit of the process that runs it: the guest's memory and what QEMU "
            "needs beside it.", "raise the machine's memtune or its scope's MemoryMax=",
        )  # fmt: skip
    return _of_systemd(path, last, place)


def _of_systemd(path: str, last: str, place: CgroupPlace) -> LimitRole:
    if found := _USER.match(last):
        return LimitRole(
            "users", f"all sessions of user {found[1]} together ({path})",
            f"That is the limit of everything that uid {found[1]} runs here.",
            f"raise MemoryMax= of {last} (or of user-.slice)",
        )  # fmt: skip
    groups = {
        "user.slice": ("users", "all users' sessions together"),
        "system.slice": ("system", "all system services together"),
        "machine.slice": ("machines", "all virtual machines and containers of machined together"),
    }
    if path.count("/") == 1 and last in groups:
        kind, words = groups[last]
        kubelet = " (or --system-reserved of the kubelet)" if kind == "system" else ""
        return LimitRole(
            kind, f"{words} ({path})", f"That is the limit of {last}: no single unit's.",  # type: ignore[arg-type]
            f"raise MemoryMax= of {last}{kubelet}",
        )  # fmt: skip
    if place.unit and place.kind in ("unit", "slice") and path == place.cgroup:
        return LimitRole("unit", place.unit, "", f"raise its limit (MemoryMax= of {last})")
    return LimitRole("cgroup", f"the cgroup {path}", "", "raise the limit")


def _reserved(parts: list[str]) -> LimitRole | None:
    """Cgroups for the node's own daemons, which the kubelet limits where it is told to."""
    found = _RESERVED.match(parts[0]) if parts else None
    if found is None or len(parts) > 2 or (found[1] == "system" and not found["reserved"]):
        return None
    whole = "/" + "/".join(parts)
    option = "--system-reserved" if found[1] == "system" else "--kube-reserved"
    what = "the system's daemons" if found[1] == "system" else "the node's own Kubernetes daemons"
    where = "" if len(parts) == 1 else f"{parts[-1]} in "
    return LimitRole(
        "reserved", f"{where}{what} ({whole})",
        f"That is no pod's limit but one for {what}, which the kubelet sets from {option} where "
        "enforceNodeAllocatable names it.",
        f"raise {option}, or take it out of enforceNodeAllocatable",
    )  # fmt: skip


def _job(path: str) -> LimitRole:
    part = part_of(path)
    subject = "a Slurm job"
    if part is not None:
        subject = f"Slurm job {part.job}" + (f" step {part.step}" if part.step else "")
        subject += f" task {part.task}" if part.task else ""
        subject += f" of uid {part.uid}" if part.uid is not None else ""
    return LimitRole(
        "job", subject,
        "That is the memory that was allocated to the job (--mem, --mem-per-cpu), with all that "
        "its processes share.", "ask for more memory (--mem, --mem-per-cpu)",
    )  # fmt: skip
