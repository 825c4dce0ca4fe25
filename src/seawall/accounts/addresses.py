# SPDX-License-Identifier: Apache-2.0
"""A WORKLOAD as a person types it: which one is meant, or why that cannot be told.

``namespace/pod[/container]``, a container id prefix, ``pid:N``, ``unit:x``, ``slurm:JOB[.STEP]``,
``user:UID``, a cgroup path; any name as printed; and a bare name where it is the only one of its
kind.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from seawall.accounts.workloads import SANDBOX_NAME, Workload, Workloads
from seawall.cgroup_paths import is_within
from seawall.problems import UsageProblem

LISTED_MOST: Final = 8
_MOUNTED: Final = re.compile(
    r"/sys/fs/cgroup(?:/(?:memory|unified|systemd|pids|devices|freezer|cpu|cpuset|blkio"
    r"|cpu,cpuacct|cpuacct|hugetlb|net_cls|net_prio|perf_event|rdma|misc)(?=/|\Z))?(?=/|\Z)"
)
_USER: Final = re.compile(r"user:([0-9]{1,10})(?:@.*)?\Z")
_FORMS: Final = (
    "namespace/pod[/container], a container id, pid:N, unit:NAME, slurm:JOB[.STEP], user:UID, or a "
    "cgroup path starting with /"
)


def resolve(text: str, workloads: Workloads) -> Workload:
    """The one workload that ``text`` names; UsageProblem that lists the matches, or what is
    near when there is none.
    """
    everything = [*workloads.by_cgroup.values(), *workloads.job_parts.values()]
    for way in _WAYS:
        found = _without_parts(list(way(text, everything, workloads)))
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageProblem(f"{text!r} could be {_listed(found)}; name one by its cgroup path")
    raise UsageProblem(f"no workload {text!r}; {_near(text, everything)}")


def _without_parts(found: list[Workload]) -> list[Workload]:
    """A container that a runtime split into two cgroups of one name is still one."""
    paths = {workload.cgroup for workload in found}
    return [w for w in found if not any(w.cgroup != p and is_within(w.cgroup, p) for p in paths)]


def _by_pid(text: str, _: list[Workload], workloads: Workloads) -> Iterable[Workload]:
    match = re.fullmatch(r"pid:(\d{1,10})", text)
    if match is None:
        return ()
    found = workloads.by_pid.get(int(match[1]))
    if found is None:
        raise UsageProblem(f"no process {match[1]} in any cgroup that can be seen")
    return (found,)


def _by_cgroup(text: str, _: list[Workload], workloads: Workloads) -> Iterable[Workload]:
    """The path itself, with or without its mount point; or one inside a container or unit."""
    if not text.startswith("/"):
        return ()
    path = "/" + _MOUNTED.sub("", text, count=1).strip("/")
    found = workloads.job_parts.get(path) or workloads.of_cgroup(path)
    if found is None or (found.cgroup != path and found.kind not in ("container", "unit")):
        return ()
    return (found,)


def _by_name(text: str, everything: list[Workload], _: Workloads) -> Iterable[Workload]:
    return (w for w in everything if w.name == text)


def _by_pod(text: str, everything: list[Workload], _: Workloads) -> Iterable[Workload]:
    """``namespace/pod``: the pod's own cgroup, else its containers (a pod without one)."""
    parts = text.split("/")
    if len(parts) not in (2, 3):
        return ()
    inside = [w for w in everything if [w.namespace, w.pod] == parts[:2]]
    if len(parts) == 3:
        wanted = parts[2]
        return [w for w in inside if w.kind == "container" and _called(w, wanted)]
    return [w for w in inside if w.kind == "pod"] or inside


def _called(workload: Workload, container: str) -> bool:
    if workload.is_sandbox:
        return container == SANDBOX_NAME
    return workload.container == container or (
        workload.container is None and (workload.container_id or "").startswith(container)
    )


def _by_unit(text: str, everything: list[Workload], _: Workloads) -> Iterable[Workload]:
    """``unit:x`` with or without ``.service``; a user's unit by its last part too."""
    if not text.startswith("unit:"):
        return ()
    name = text.removeprefix("unit:")
    wanted = {name, name + ".service"}
    units = [w for w in everything if w.unit]
    exact = [w for w in units if w.unit in wanted]
    return exact or [w for w in units if w.unit and w.unit.rpartition("/")[2] in wanted]


def _by_job(text: str, everything: list[Workload], _: Workloads) -> Iterable[Workload]:
    """``slurm:7``, ``slurm:7.batch``, ``slurm:7.0/1``, each with ``@USER`` or without; then
    ``slurm:5_2`` for what says that it is task 2 of array 5.
    """
    if not text.startswith("slurm:"):
        return ()
    jobs = [w for w in everything if w.slurm is not None]
    exact = [w for w in jobs if w.name.partition("@")[0] == text]
    return exact or [w for w in jobs if text in _array_names(w)]


def _array_names(workload: Workload) -> tuple[str, ...]:
    """By what the job's environment says: a name for people, which no other name gives way to."""
    claims = workload.slurm.claims if workload.slurm else None
    if claims is None or claims.array_job is None:
        return ()
    _, dot, step = workload.name.partition("@")[0].partition(".")
    return (f"slurm:{claims.array_job}_{claims.array_task}{dot}{step}",)


def _by_user(text: str, _: list[Workload], workloads: Workloads) -> Iterable[Workload]:
    """``user:1000``, or as the guard prints it, ``user:1000@alice``: all sessions of that user."""
    match = _USER.match(text)
    found = workloads.by_cgroup.get(f"/user.slice/user-{match[1]}.slice") if match else None
    return () if found is None else (found,)


def _by_short_name(text: str, everything: list[Workload], _: Workloads) -> Iterable[Workload]:
    """A container id, whole; else what it begins with and bare names together: ``db`` may be a
    name and the beginning of another's id.
    """
    key = text.removeprefix("container:")
    if not key:
        return ()
    exact = [w for w in everything if w.container_id == key]
    begun = [w for w in everything if (w.container_id or "").startswith(key)]
    both = {w.cgroup: w for w in (*begun, *_by_bare_name(text, everything))}
    return exact or both.values()


def _by_bare_name(text: str, everything: list[Workload]) -> list[Workload]:
    """``web`` for ``docker:web``; a pod or unit by its own name; a path without its slash."""
    named = [w for w in everything if text in (w.name.partition(":")[2], w.cgroup[1:])]
    return named or [
        w for w in everything
        if (w.kind == "pod" and w.pod == text)
        or (w.unit is not None and w.unit in (text, text + ".service"))
    ]  # fmt: skip


_WAYS: Final[tuple[Callable[[str, list[Workload], Workloads], Iterable[Workload]], ...]] = (
    _by_pid, _by_cgroup, _by_name, _by_pod, _by_unit, _by_job, _by_user,
    _by_short_name,
)  # fmt: skip


def _listed(found: list[Workload]) -> str:
    rows = [_told(workload) for workload in found[:LISTED_MOST]]
    if len(found) > LISTED_MOST:
        rows.append(f"{len(found) - LISTED_MOST} more")
    return ", ".join(rows)


def _told(workload: Workload) -> str:
    """Its name, and its cgroup where that is not the name."""
    if workload.name == workload.cgroup:
        return workload.name
    return f"{workload.name} ({workload.cgroup})"


def _near(text: str, everything: list[Workload]) -> str:
    """Names that look like it, else which forms there are."""
    import difflib  # noqa: PLC0415 - only on the way out

    names = {w.name for w in everything} | {w.cgroup for w in everything if w.kind == "cgroup"}
    close = difflib.get_close_matches(text, sorted(names), n=LISTED_MOST, cutoff=0.5)
    close += [name for name in sorted(names) if text and text in name and name not in close]
    if close:
        return "near: " + ", ".join(close[:LISTED_MOST])
    return f"expected {_FORMS}; `seawall pods --all` lists them"
