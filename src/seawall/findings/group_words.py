# SPDX-License-Identifier: Apache-2.0
"""What findings about a container's memory have in common: evidence and shell lines."""

from seawall.accounts.cache.dirty_groups import holders, unwritten
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.limits.group_progress import GroupProgress
from seawall.accounts.numbers.tool_numbers import DOCKER, PROMETHEUS, ToolNumber, tool_numbers
from seawall.accounts.workloads import SHORT_ID_CHARACTERS
from seawall.findings.finding import Evidence, Finding, blind
from seawall.findings.shell import quote
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo
from seawall.words import count, size

_WRITERS_SHOWN = 3


def filled(group: MemoryGroup) -> list[Evidence]:
    """The group's memory usage and limit in bytes as evidence, each with its file."""
    return [
        Evidence("usage", group.memcg.usage, "bytes", group.usage_file),
        Evidence("limit", group.limit, "bytes", group.limit_file),
    ]


def parts(group: MemoryGroup) -> list[Evidence]:
    """What the usage is made of, as far as this kernel tells."""
    memcg = group.memcg
    total = "total_" if memcg.version == 1 else ""
    rows = [
        ("anonymous", memcg.anon, "total_rss" if total else "anon"),
        ("tmpfs and shared", memcg.shmem, f"{total}shmem"),
        (
            "file pages that can be dropped",
            group.cache,
            f"{total}inactive_file + {total}active_file",
        ),
        ("kernel", memcg.kernel, "kernel"),
    ]
    stat = group.file("memory.stat")
    kmem = group.file("memory.kmem.usage_in_bytes")
    return [
        Evidence(name, value, "bytes", kmem if total and name == "kernel" else f"{stat} {key}")
        for name, value, key in rows
        if value is not None
    ]


def show(group: MemoryGroup, *names: str) -> str:
    """A shell line that prints these files of the group with their names."""
    folder = quote(group.folder)
    return f"cd {folder} && grep -H . {' '.join(names)}"


def show_usage(group: MemoryGroup) -> str:
    """The shell line for usage, limit and statistics."""
    names = [group.usage_file, group.limit_file, group.file("memory.stat")]
    return show(group, *(name.rpartition("/")[2] for name in names))


def write(group: MemoryGroup, value: object, name: str) -> str:
    """A shell line that writes one of the group's files."""
    return f"echo {value} > {quote(group.file(name))}"


def unjudged(groups: MemoryGroups) -> list[Finding]:
    """BLIND, when there are cgroups and not one of them could be read."""
    readable = any(group.memcg.usage is not None for group in groups.by_path.values())
    if readable or not groups.unread:
        return []
    first = groups.unread[0]
    return [blind(f"no cgroup's memory could be read: {first.path}: {first.why}", *groups.unread)]


def no_parts(group: MemoryGroup) -> Finding:
    """BLIND about one full container: its memory.stat tells too little."""
    stat = group.file("memory.stat")
    missing = next(
        (unread for unread in group.memcg.unread if unread.path == stat),
        Unread(stat, "absent", "inactive_file and active_file"),
    )
    return blind(f"{group.name} is near its limit and {stat} does not tell why", missing)


def at_the_limit(group: MemoryGroup, meminfo: Meminfo | Unread) -> str:
    """What the kernel does to this container next."""
    memcg = group.memcg
    words = ""
    if group.high and group.limit and group.high < group.limit:
        words = f"Above memory.high ({size(group.high)}) it is slowed down. "
    if memcg.swap_limit != 0 and not isinstance(meminfo, Unread) and meminfo.swap_free:
        words += "First it swaps. "
    if memcg.oom_kill_disable:
        return words + "At the limit its processes wait for ever: the OOM killer is off for it."
    whom = "all its processes" if memcg.oom_group else "the one with the highest oom_score in it"
    return words + f"At the limit the OOM killer takes {whom}; other containers are not touched."


def mostly(group: MemoryGroup) -> str:
    """The largest kind of what cannot be dropped."""
    private, shmem = group.memcg.anon or 0, group.memcg.shmem or 0
    rest = (group.held_bytes or 0) - private - shmem
    return max((private, "anonymous"), (shmem, "tmpfs and shared"), (rest, "kernel"))[1] + " memory"


def progress_rows(group: MemoryGroup, seen: GroupProgress) -> list[Evidence]:
    """What was seen of its progress, and how many processes it has."""
    stats, pressure = "/proc/*/stat", group.file("memory.pressure")
    rows = [
        Evidence("all tasks stalled on memory", seen.full, "fraction", pressure),
        Evidence("processors in user mode", seen.user_cpus, "count", stats),
        Evidence("largest process / limit", seen.largest, "fraction", stats),
    ]
    number = Evidence("processes", seen.processes, "count", group.file("cgroup.procs"))
    return [*(row for row in rows if row.value is not None), number]


def processes(group: MemoryGroup) -> str:
    """``3 processes``; without a number where cgroup.procs could not be read."""
    if group.pids is None:
        return "its processes"
    return f"{count(len(group.pids))} {'process' if len(group.pids) == 1 else 'processes'}"


def raise_limit(*groups: MemoryGroup) -> str:
    """A shell line that gives them a quarter more, the outermost first."""
    by_path = {group.path: group for group in groups}
    return " && ".join(_raise_one(by_path[path]) for path in sorted(by_path))


def _raise_one(group: MemoryGroup) -> str:
    memcg, limit = group.memcg, (group.limit or 0) * 5 // 4
    line = write(group, limit, group.limit_file.rpartition("/")[2])
    if memcg.version == 1 and isinstance(memcg.swap_limit, int):
        # v1 refuses a limit above the one for memory and swap together.
        first = write(group, limit + memcg.swap_limit, "memory.memsw.limit_in_bytes")
        line = f"{first} && {line}"
    return line


FOR_GOOD = "for good: resources.limits.memory (Kubernetes), --memory (Docker), MemoryMax= (systemd)"


def drop_cache(group: MemoryGroup) -> str:
    """A shell line that drops the file pages of this cgroup alone (v2: since 5.19)."""
    if group.memcg.version == 1:
        return write(group, 0, "memory.force_empty")
    return write(group, group.cache, "memory.reclaim")


def limit_steps(group: MemoryGroup, rule_id: str, more: str = "give it more") -> tuple[str, str]:
    """For one screen: more memory, or an end, in the words of whoever runs the container; the
    cgroup's own files, too long for it, are in ``why`` of the rule.
    """
    workload, now = group.workload, size(group.limit or 0)
    if workload is not None and workload.namespace and workload.pod:
        pod = f"-n {quote(workload.namespace)} {quote(workload.pod)}"
        return (
            f"{more}: raise resources.limits.memory, now {now}; at once: seawall why {rule_id}",
            f"or end it: kubectl delete pod {pod}",
        )
    if workload is not None and workload.unit and workload.kind == "unit":
        unit, bytes_ = quote(workload.unit), (group.limit or 0) * 5 // 4
        return (
            f"{more}: systemctl set-property --runtime {unit} MemoryMax={bytes_}",
            f"or end it: systemctl kill -s KILL {unit}",
        )
    # One within another's tree is not known to the daemon of the host.
    if _is_of_docker(group) and workload is not None and workload.container_id:
        short = quote(workload.container_id[:SHORT_ID_CHARACTERS])
        return f"{more}: {_docker_update(group)} {short}", f"or end it: docker kill {short}"
    return (
        f"{more}: raise its limit of {now}",
        f"or end it; lines to paste for both: seawall why {rule_id}",
    )


def _is_of_docker(group: MemoryGroup) -> bool:
    workload = group.workload
    return workload is not None and workload.runtime == "docker" and group.path.count("docker") == 1


def _docker_update(group: MemoryGroup) -> str:
    """A quarter more; Docker refuses a limit above the one for memory and swap together."""
    limit, swap = (group.limit or 0) * 5 // 4, group.memcg.swap_limit
    line = f"docker update --memory {limit >> 20}m"
    if swap is None:
        return line
    both = f"{limit + swap >> 20}m" if isinstance(swap, int) else "-1"
    return f"{line} --memory-swap {both}"


def as_tools_show(group: MemoryGroup) -> list[Evidence]:
    """What Docker, cAdvisor and the kubelet print for it, each with its formula."""
    return [
        Evidence(_tool(number), number.bytes, "bytes", _formula(group, number.formula))
        for number in tool_numbers(group)
        if number.tool in (DOCKER, PROMETHEUS) and "total" not in number.name
    ]


def _tool(number: ToolNumber) -> str:
    return f"{DOCKER} ({number.name})" if number.tool == DOCKER else number.name


def dirty_writers(groups: MemoryGroups | Unread) -> list[Evidence]:
    """Whose dirty pages they are, the largest first: the kernel charges a page to whoever
    touched it first, which is nearly always who wrote it.
    """
    if isinstance(groups, Unread):
        return []
    found = sorted(holders(groups), key=lambda group: -unwritten(group))[:_WRITERS_SHOWN]
    key = "total_dirty + total_writeback" if groups.version == 1 else "file_dirty + file_writeback"
    return [
        Evidence(
            f"charged to {one.name}", unwritten(one), "bytes", f"{one.file('memory.stat')} {key}"
        )
        for one in found
    ]


def end_all(group: MemoryGroup) -> str:
    """A shell line that kills every process of the cgroup (v2: since 5.14, and below it)."""
    if group.memcg.version == 1:
        return f"kill -9 $(cat {quote(group.file('cgroup.procs'))})"
    return write(group, 1, "cgroup.kill")


def _formula(group: MemoryGroup, formula: str) -> str:
    """The formula as paths: a bare key is one of memory.stat."""
    file = "" if formula.startswith("memory.") else "memory.stat "
    return f"{group.folder}/{file}{formula}"
