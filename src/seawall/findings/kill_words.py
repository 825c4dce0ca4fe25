# SPDX-License-Identifier: Apache-2.0
"""Why no kill helps a container, in words and evidence."""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.oom.salvage import Hopeless
from seawall.findings.finding import Evidence
from seawall.words import count, size

_SHOWN = 3


def hopeless_words(group: MemoryGroup, found: Hopeless) -> tuple[str, str]:
    """The end of the headline, and what follows from it."""
    played, most = found.relief, size(found.back_most)
    match found.reason:
        case "immune":
            headline = f"{_immune(found)} may not be killed (oom_score_adj -1000): kills bring back"
            headline += f" {most} at most"
            outlook = "At the limit its allocations fail or wait, and the kernel reports an OOM"
            outlook += " that it cannot end."
        case "files":
            shmem = size(group.memcg.shmem or 0)
            headline = f"{shmem} of it are tmpfs or shared memory, which no kill frees: kills bring"
            headline += f" back {most} at most"
            outlook = "At the limit its processes die one after the other, and this memory stays:"
            outlook += " it goes with the files, or with the mount or the segment they are in."
        case "ties":
            first = played.first[0]
            headline = f"{count(played.tied)} of its processes have the same OOM points:"
            headline += f" {first.comm} ({size(first.returns_bytes)}) would die before those that"
            headline += " hold it"
            outlook = "At the limit small processes are killed and started again without relief:"
            outlook += " the container hangs."
        case _:
            headline = f"{count(played.kills)} kills would be needed to bring back"
            headline += f" {size(played.needed_bytes)}: the largest of its"
            headline += f" {count(found.eligible)} processes returns {most}"
            outlook = "At the limit the kernel kills one small process after the other, and each"
            outlook += " kill costs a scan of all of them."
    return headline, outlook


def hopeless_brief(group: MemoryGroup, found: Hopeless) -> str:
    """Why, in a few words."""
    match found.reason:
        case "immune":
            return f"{_immune(found)} may not be killed"
        case "files":
            return f"{size(group.memcg.shmem or 0)} are tmpfs or shared memory, which none frees"
        case "ties":
            return f"{count(found.relief.tied)} of its processes have the same OOM points"
        case _:
            return f"{count(found.relief.kills)} kills would be needed"


def _immune(found: Hopeless) -> str:
    number = count(len(found.immune))
    if not found.eligible:
        return f"all of its {number} processes"
    return "the process that holds it" if number == "1" else f"{number} processes that hold it"


def hopeless_rows(group: MemoryGroup, found: Hopeless) -> list[Evidence]:
    """Evidence that OOM kills would not help: who may be killed, who is immune, what is left."""
    played = found.relief
    procs = group.file("cgroup.procs")
    rows = [Evidence("processes that may be killed", found.eligible, "count", procs)]
    rows += [
        Evidence(f"immune: pid {one.pid}", one.comm, "text", f"/proc/{one.pid}/oom_score_adj")
        for one in found.immune[:_SHOWN]
    ]
    if found.reason == "files":
        total = "total_" if group.memcg.version == 1 else ""
        stat = group.file("memory.stat")
        shmem = Evidence("tmpfs and shared", group.memcg.shmem, "bytes", f"{stat} {total}shmem")
        rows.append(shmem)
    if found.reason == "ties":
        rows.append(Evidence("with the points of the first victim", played.tied, "count", procs))
    if found.reason in ("ties", "many"):
        rows += [
            Evidence(
                f"kill {number}: pid {victim.pid} ({victim.comm}), {victim.points} points",
                victim.returns_bytes, "bytes", f"/proc/{victim.pid}/status",
            )
            for number, victim in enumerate(played.first[:_SHOWN], start=1)
        ]  # fmt: skip
    return rows
