# SPDX-License-Identifier: Apache-2.0
"""What each tool calls "the memory" of one container, with the formula that it uses.

The same container is 1.6 GiB in Prometheus, 631 MiB in ``docker stats`` and 521 MiB in a sum
of resident memory, and every one of them is right about what it counts.  Sources are told in
``memory_numbers.py``, which does the sums; crictl prints the runtime's working set (cri-tools
cmd/crictl/stats.go), ``kubectl top pod`` the sum of that over the pod's containers.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.cgroup_memory.memory_numbers import (
    docker_stats,
    docker_stats_17_06,
    working_set,
)
from seawall.accounts.cgroup_memory.memory_parts import ALL
from seawall.host.host import Unread

PROMETHEUS: Final = "Prometheus (cAdvisor)"
DOCKER: Final = "docker stats"
PODMAN: Final = "podman stats"
CRICTL: Final = "crictl stats"
KUBECTL: Final = "kubectl top pod"
_FOR_PODS: Final = frozenset({"crictl statsp", KUBECTL, "kubelet"})
_FOR_CONTAINERS: Final = frozenset({DOCKER, PODMAN, CRICTL, KUBECTL, "kubelet"})
FILE_LISTS_SINCE: Final = "cAdvisor 0.50 and later"
"""google/cadvisor #3445; the kubelet has it from about 1.32 on."""
_ROWS_OF: Final = {
    "memory.stat": "every row with page cache or anonymous memory",
    "memory.swap.current": "container_memory_swap",
    "memory.events": "memory.events max",
    "memory.failcnt": "container_memory_failcnt",
    "memory.kmem.usage_in_bytes": "container_memory_kernel_usage",
}
"""What a file that could not be read leaves out."""


Sign: TypeAlias = Literal[1, -1]


@dataclass(frozen=True, slots=True)
class Input:
    """One counter that a formula takes."""

    name: str
    """The counter, as the kernel writes it."""
    bytes: int
    """Bytes."""
    source: str
    """Its file, and the key in it."""
    sign: Sign = 1
    """Added or taken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNumber:
    """One tool's number for one workload or node, in bytes."""

    tool: str
    """`docker stats`, `Prometheus (cAdvisor)`, `kubelet`, `free`, ..."""
    name: str
    """The metric, column or version."""
    bytes: int
    """What the tool shows."""
    formula: str
    """Over the names of the inputs."""
    inputs: tuple[Input, ...]
    """This moment's counters; with their signs they sum to bytes, unless the formula says a
    bound.
    """
    letters: str = ""
    """Which of the workload's parts are in it (memory_parts.py); small ones are partly in."""
    note: str = ""
    """Which versions have it, where not all; or in what it is incomplete."""


@dataclass(frozen=True, slots=True)
class ToolCount:
    """How often something happened to a workload, as one tool shows it."""

    tool: str
    name: str
    count: int
    """Times."""
    formula: str
    source: str


def tool_numbers(group: MemoryGroup) -> tuple[ToolNumber, ...]:
    """Every number whose inputs could be read; those that could not are left out."""
    kind = "container" if group.workload is None else group.workload.kind
    hidden = _FOR_CONTAINERS | _FOR_PODS
    if kind in ("container", "pod"):
        hidden -= _FOR_CONTAINERS if kind == "container" else _FOR_PODS
    rows = [*_whole(group, is_unit=kind == "unit"), *_less_inactive(group), *_parts(group)]
    return tuple(row for row in rows if row.tool not in hidden)


def missing_rows(group: MemoryGroup, unread: Iterable[Unread]) -> tuple[str, ...]:
    """Names of the rows that are not there because a file of the cgroup could not be read."""
    files = {one.path for one in unread}
    return tuple(name for file, name in _ROWS_OF.items() if group.file(file) in files)


def unseen_files(group: MemoryGroup) -> Iterator[str]:
    """Paths that gave no value and no reason either: not there, or nothing in them.  Where
    swap is not accounted for, memory.swap.current is rightly not there.
    """
    memcg = group.memcg
    values = {group.limit_file: memcg.limit, group.file("memory.stat"): memcg.stat or None}
    if memcg.version == 1:
        values[group.file("memory.failcnt")] = memcg.failcnt
    else:
        values[group.file("memory.events")] = memcg.events or None
        values[group.file("memory.swap.current")] = memcg.swap_usage
    known = {unread.path for unread in memcg.unread}
    yield from (path for path, value in values.items() if value is None and path not in known)


def tool_counts(group: MemoryGroup) -> tuple[ToolCount, ...]:
    """``container_memory_failcnt``: how often the limit was hit; cAdvisor has it on v1 alone."""
    memcg = group.memcg
    name = "container_memory_failcnt"
    if memcg.version == 2:
        file = group.file("memory.events")
        words = "always 0 on cgroup v2; the kernel's own count is memory.events max"
        rows = [ToolCount(PROMETHEUS, name, 0, words, file)]
        if "max" in memcg.events:
            rows.append(ToolCount("kernel", "memory.events max", memcg.events["max"], "max", file))
        return tuple(rows)
    if memcg.failcnt is None:
        return ()
    file = group.file("memory.failcnt")
    return (ToolCount(PROMETHEUS, name, memcg.failcnt, "memory.failcnt", file),)


def with_pod_sum(
    rows: Sequence[ToolNumber], containers: Sequence[MemoryGroup]
) -> tuple[ToolNumber, ...]:
    """A pod's rows: ``kubectl top pod`` adds up its containers (without the pause container)
    and does not look at the pod's own cgroup; without a number of any of them it has no row.
    """
    counted = [
        (group.workload.container or group.name, group)
        for group in containers
        if group.workload is not None and not group.workload.is_sandbox
    ]
    inputs = [
        Input(name, shown, f"{group.folder}: working set")
        for name, group in counted
        if (shown := working_set(group.memcg)) is not None
    ]
    words, note = "sum of the containers' working sets", ""
    if len(inputs) < len(counted):
        note = f"at least, {len(inputs)} of {len(counted)} containers"
    return tuple(
        number_of(row.tool, row.name, inputs, row.letters, formula=words, note=note)
        if row.tool == KUBECTL
        else row
        for row in rows
        if inputs or row.tool != KUBECTL
    )


def tightest_limit(group: MemoryGroup, groups: MemoryGroups) -> tuple[int, MemoryGroup] | None:
    """The smallest limit of its own or above it, and whose it is; None without any.  One that
    could not be read may be smaller (``unread_limits``).
    """
    chain = [group, *groups.above(group.path)]
    found = [(place.limit, place) for place in chain if place.limit is not None]
    return min(found, key=lambda pair: pair[0], default=None)


def unread_limits(group: MemoryGroup, groups: MemoryGroups) -> tuple[MemoryGroup, ...]:
    """Of it and those above it, whose limit could not be read: nearest first."""
    chain = [group, *groups.above(group.path)]
    return tuple(place for place in chain if place.memcg.limit is None)


def _whole(group: MemoryGroup, *, is_unit: bool) -> Iterator[ToolNumber]:
    """Tools that show the usage as it is."""
    v1, podman = (
        group.memcg.version == 1,
        "before 4.8" if group.memcg.version == 1 else "before 4.0",
    )
    usage = _usage(group)
    if not usage:
        return
    who = [
        ("kernel", usage[0].name), (PROMETHEUS, "container_memory_usage_bytes"),
        (DOCKER, "before 17.06"), (PODMAN, podman),
    ]  # fmt: skip
    if not v1:
        who.append((DOCKER, "17.06 to 19.03"))
    if is_unit:
        who.append(("systemctl status", "Memory"))
    yield from (number_of(tool, name, usage, ALL) for tool, name in who)


def _less_inactive(group: MemoryGroup) -> Iterator[ToolNumber]:
    """Tools that take off page cache, each with its own idea when nothing would be left."""
    inactive = _stat(group, "inactive_file", group.memcg.inactive_file, sign=-1)
    usage = _usage(group)
    shown = working_set(group.memcg)
    if inactive and usage and shown is not None:
        inputs, letters = [*usage, *inactive], "AFTK"
        formula = _formula(inputs)
        zero, whole = f"{formula}, at least 0", f"{formula}; the usage if that is not above 0"
        for tool, name in (
            (PROMETHEUS, "container_memory_working_set_bytes"), (KUBECTL, "MEMORY"),
            ("kubelet", "eviction ranks pods by it"), (CRICTL, "MEM"), ("crictl statsp", "MEM"),
            (PODMAN, "5.6 and later"),
        ):  # fmt: skip
            yield number_of(tool, name, inputs, letters, shown=shown, formula=zero)
        docker = docker_stats(group.memcg)
        yield number_of(DOCKER, "20.10 and later", inputs, letters, shown=docker, formula=whole)
    cache = _stat(group, "cache", group.memcg.file, sign=-1)
    if group.memcg.version == 1 and cache and usage:
        old = docker_stats_17_06(group.memcg)
        yield number_of(DOCKER, "17.06 to 19.03", [*usage, *cache], "AK", shown=old)


def _parts(group: MemoryGroup) -> Iterator[ToolNumber]:
    """Tools that show some of the counters as they are."""
    memcg = group.memcg
    v1 = memcg.version == 1
    anon = _stat(group, "rss" if v1 else "anon", memcg.anon)
    swap = _stat(group, "swap", memcg.stat.get("total_swap"))
    if not v1 and memcg.swap_usage is not None:
        file = "memory.swap.current"
        swap = [Input(file, memcg.swap_usage, group.file(file))]
    kernel = "memory.kmem.usage_in_bytes"
    rows = [
        ("container_memory_rss", anon, "A"),
        ("container_memory_cache", _stat(group, "cache" if v1 else "file", memcg.file), "IFT"),
        ("container_memory_mapped_file",
         _stat(group, "mapped_file" if v1 else "file_mapped", memcg.mapped_file), "ift"),
        ("container_memory_total_inactive_file_bytes",
         _stat(group, "inactive_file", memcg.inactive_file), "I"),
        ("container_memory_total_active_file_bytes",
         _stat(group, "active_file", memcg.active_file), "F"),
        ("container_memory_swap", swap, ""),
    ]  # fmt: skip
    if v1 and memcg.kernel is not None:
        rows.append(
            (
                "container_memory_kernel_usage",
                [Input(kernel, memcg.kernel, group.file(kernel))],
                "k",
            )
        )
    for name, inputs, letters in rows:
        if inputs:
            since = FILE_LISTS_SINCE if name.startswith("container_memory_total_") else ""
            yield number_of(PROMETHEUS, name, inputs, letters, note=since)
    if anon and not v1:
        yield number_of(PODMAN, "4.0 to 5.5", anon, "A")
    lists = [
        *_stat(group, "active_anon", memcg.active_anon),
        *_stat(group, "inactive_anon", memcg.inactive_anon),
    ]
    if len(lists) == 2 and v1:
        yield number_of(PODMAN, "4.8 to 5.5", lists, "AT")


def number_of(
    tool: str, name: str, inputs: Sequence[Input], letters: str = "", *,
    shown: int | None = None, formula: str | None = None, note: str = "",
) -> ToolNumber:  # fmt: skip
    """A row; the sum of its inputs unless ``shown`` tells another number."""
    total = sum(part.bytes * part.sign for part in inputs)
    count = total if shown is None else shown
    return ToolNumber(
        tool=tool, name=name, bytes=count, formula=formula or _formula(inputs),
        inputs=tuple(inputs), letters=letters,
        note=note or ("at least one counter lags" if count < 0 else ""),
    )  # fmt: skip


def _formula(inputs: Sequence[Input]) -> str:
    words = "".join(f" {'+' if part.sign > 0 else '-'} {part.name}" for part in inputs)
    return words.removeprefix(" + ")


def _usage(group: MemoryGroup) -> list[Input]:
    file = group.usage_file
    usage = group.memcg.usage
    return [] if usage is None else [Input(file.rpartition("/")[2], usage, file)]


def _stat(group: MemoryGroup, key: str, count: int | None, sign: Sign = 1) -> list[Input]:
    """A key of memory.stat: ``total_KEY`` on v1, unless the report was cut."""
    if count is None:
        return []
    whole = f"total_{key}"
    name = whole if group.memcg.version == 1 and whole in group.memcg.stat else key
    return [Input(name, count, f"{group.file('memory.stat')} {name}", sign)]
