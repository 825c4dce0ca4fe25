# SPDX-License-Identifier: Apache-2.0
"""The last lines of an OOM report: who was chosen, who was killed, what the reaper freed.

Kernel source: mm/oom_kill.c oom_kill_process, __oom_kill_process, oom_reap_task; dump_oom_summary
since 5.0.  A name may hold any character, brackets included, so it ends at the last bracket that
is followed by what the kernel prints next.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from seawall.readings.oom_log.cut_lines import before_mark, cut_summary, is_kill_cut
from seawall.readings.oom_log.memcg_block import mend_path
from seawall.readings.oom_log.oom_report import Choice, Kill, Reaped

_CHOICE: Final = re.compile(
    r"[Kk]ill\s*process\s*(\d{1,10})\s*\((.{0,64})\)\s*(?:score\s*(-?\d{1,20})\b|\Z)", re.ASCII
)
_KILLED_SIZED: Final = re.compile(
    r"Killed\s*process\s*(\d{1,10})\s*(?:,\s*UID:?\s*(\d{1,10})\s*,)?\s*\((.{0,64})\)\s*"
    r"(?:,\s*UID:?\s*(\d{1,10})\s*)?,?\s*(?=(?:total-vm|vsz)\s*:)",
    re.ASCII,
)
_KILLED: Final = re.compile(
    r"Killed\s*process\s*(\d{1,10})\s*(?:,\s*UID:?\s*(\d{1,10})\s*,)?\s*\((.{0,64})\)"
    r"(?:,\s*UID:?\s*(\d{1,10}))?",
    re.ASCII,
)
_SHARING: Final = re.compile(r"Kill\s+process\s+(\d{1,10})\s+\((.{0,64})\)\s+sharing", re.ASCII)
_REAPED: Final = re.compile(
    r"oom_reaper:\s*reaped\s*process\s*:?(\d{1,10})\s*\((.{0,64})\),?\s*(?:now\s*)?(?=anon-rss:)",
    re.ASCII,
)
_UNREAPED: Final = re.compile(
    r"oom_reaper:\s*unable\s+to\s+reap\s+pid:(\d{1,10})\s+\(.{0,64}\)\s*\Z", re.ASCII
)
_NOTHING_MORE: Final = re.compile(
    r"(?:(?:Memory\s+cgroup\s+)?[Oo]ut\s+of\s+[Mm]emory\b.{0,40}?:\s*)?[Kk]ill(?:ed)?\s*process"
    r"\s*\d{1,10}\s*\(.{0,64}\)\.?\s*\Z",
    re.ASCII,
)
_SIZE: Final = re.compile(
    r"(total-vm|vsz|anon-rss|file-rss|shmem-rss|pgtables):\s*(\d{1,20})[kl](?:B|\Z)", re.ASCII
)
_UID: Final = re.compile(r",\s*UID:(\d{1,10})(?!\d)", re.ASCII)
_ADJ: Final = re.compile(r"oom_score_adj:(-?\d{1,6})(?!\d)", re.ASCII)
_GROUP: Final = re.compile(r"Tasks\s+in\s+(.{1,4096}?)\s+are\s+going\s+to\s+be\s+killed")
_SUMMARY: Final = re.compile(
    r"oom-kill:\s*constraint=(?P<constraint>[A-Z_]{1,40})"
    r"(?:,nodemask=(?P<nodemask>\(null\)|[\d,-]*?))?"
    r"(?:,cpuset=(?P<cpuset>.*?)(?:,mems_allowed=(?P<mems>[\d,-]*?))?)?"
    r"(?:,global_oom|,oom_memcg=(?P<oom_memcg>.*?))?"
    r"(?:,task_memcg=(?P<task_memcg>.*?))?"
    r"(?:,task=(?P<task>.{0,64}),pid=(?P<pid>\d{1,10}),uid=(?P<uid>\d{1,10}))?\s*\Z",
    re.ASCII,
)


class Summary(NamedTuple):
    """``oom-kill:constraint=...,task=,pid=,uid=``; a part that was cut off is None."""

    constraint: str | None
    nodemask: str | None
    cpuset: str | None
    mems_allowed: str | None
    oom_memcg: str | None
    task_memcg: str | None
    choice: Choice | None
    cut: tuple[str, str] | None = None
    """The value at which the line is cut: its name, and what is there of it."""


def read_summary(text: str, line: int) -> Summary | None:
    """The line that sums a report up, since 5.0."""
    # No blank belongs there but in the name: what else stands there an editor put in.
    paths, comma, task = text.rpartition(",task=")
    found = _SUMMARY.match(re.sub(r"\s{2,}", "", paths) + comma + task)
    found = found or _SUMMARY.match(re.sub(r"\s{2,}", "", text))
    if not found or not found["pid"]:  # all kernels print it
        return _read_cut_summary(text, line)
    nodemask = found["nodemask"]
    return Summary(
        constraint=found["constraint"],
        nodemask=None if nodemask == "(null)" else nodemask,
        cpuset=found["cpuset"],
        mems_allowed=found["mems"],
        oom_memcg=mend_path(found["oom_memcg"]) if found["oom_memcg"] else None,
        task_memcg=mend_path(found["task_memcg"]) if found["task_memcg"] else None,
        choice=Choice(int(found["pid"]), found["task"], None, line),
    )


def _read_cut_summary(text: str, line: int) -> Summary | None:
    found = cut_summary(text)
    if found is None:
        return None
    values, *cut = found
    oom_memcg, task_memcg = values.get("oom_memcg"), values.get("task_memcg")
    pid, nodemask = values.get("pid", ""), values.get("nodemask")
    is_pid = pid.isascii() and pid.isdigit() and len(pid) <= 10
    return Summary(
        constraint=values.get("constraint"),
        nodemask=None if nodemask == "(null)" else nodemask,
        cpuset=values.get("cpuset"),
        mems_allowed=values.get("mems_allowed"),
        oom_memcg=mend_path(oom_memcg) if oom_memcg else None,
        task_memcg=mend_path(task_memcg) if task_memcg else None,
        choice=Choice(int(pid), values.get("task", ""), None, line) if is_pid else None,
        cut=(cut[0], cut[1]),
    )


def read_choice(text: str, line: int) -> Choice | None:
    """``Out of memory: Kill process 651 (x) score 3 or sacrifice child``."""
    found = _CHOICE.search(text)
    if not found:
        return None
    return Choice(int(found[1]), found[2], int(found[3]) if found[3] else None, line)


def read_killed(text: str, line: int) -> Kill | None:
    """``Killed process 651 (x) total-vm:...`` in all its forms."""
    kill = _killed(text)
    return None if kill is None else kill._replace(line=line)


@lru_cache(maxsize=2)  # the parts of a report ask for it one after the other
def _killed(text: str) -> Kill | None:
    found = _KILLED_SIZED.search(text)
    sizes = dict[str, int]()
    uid, adj = None, None
    if found:
        tail = text[found.end() :]
        sizes = _sizes(tail)
        uid, adj = _UID.search(tail), _ADJ.search(tail)
    else:
        found = _KILLED.search(text)
    if not found:
        return None
    tail = text[found.end() :]
    is_cut = is_kill_cut(tail, frozenset(sizes))
    if is_cut:  # the last number may be the beginning of a longer one
        end = len(before_mark(tail)[0].rstrip())
        uid, adj = (m if m and m.end() < end else None for m in (uid, adj))
    owner = found[2] or found[4] or (uid[1] if uid else None)
    return Kill(
        pid=int(found[1]),
        comm=found[3],
        uid=int(owner) if owner else None,
        total_vm_bytes=sizes.get("total-vm", sizes.get("vsz")),
        anon_rss_bytes=sizes.get("anon-rss"),
        file_rss_bytes=sizes.get("file-rss"),
        shmem_rss_bytes=sizes.get("shmem-rss"),
        pgtables_bytes=sizes.get("pgtables"),
        oom_score_adj=int(adj[1]) if adj else None,
        line=0,
        is_cut=is_cut,
    )


def read_sharing(text: str, line: int) -> Kill | None:
    """``Kill process 12 (x) sharing same memory`` (until 4.5): killed with the chosen one."""
    found = _SHARING.match(text)
    return Kill(int(found[1]), found[2], line=line) if found else None


def read_reaped(text: str, line: int) -> Reaped | None:
    """``oom_reaper: reaped process 651 (x), now anon-rss:0kB, ...`` (since 4.6)."""
    found = _REAPED.match(text)
    if not found:
        return None
    sizes = _sizes(text[found.end() :])
    return Reaped(
        int(found[1]), found[2], sizes.get("anon-rss"), sizes.get("file-rss"),
        sizes.get("shmem-rss"), line,
    )  # fmt: skip


def read_unreaped(text: str) -> int | None:
    """The pid of ``oom_reaper: unable to reap pid:651 (x)`` (since 4.6)."""
    found = _UNREAPED.match(text)
    return int(found[1]) if found else None


def reaped_pid(text: str) -> int | None:
    """Of whom a line of the reaper speaks."""
    found = _REAPED.match(text) or _UNREAPED.match(text)
    return int(found[1]) if found else None


def is_global(text: str) -> bool:
    """Whether the line of a choice or of a kill begins with ``Out of memory``."""
    return text[:13].lower() == "out of memory"


def can_open(text: str) -> bool:
    """Whether a line about a kill that nothing marks as the kernel's can begin a report.

    People write ``Killed process 7 (x)`` too, but not as a line of its own, nor with sizes.
    """
    choice = _CHOICE.search(text)
    if (choice and choice[3]) or _KILLED_SIZED.search(text):
        return True
    return _NOTHING_MORE.match(text) is not None


def read_group(text: str) -> str | None:
    """The cgroup all of whose tasks die, since 4.19."""
    found = _GROUP.match(text)
    return mend_path(found[1]) if found else None


def is_about_memory(panic: str) -> bool:
    """Whether the kernel panicked because memory was out."""
    words = panic.lower()
    return any(
        cause in words for cause in ("out of memory", "deadlocked on memory", "panic_on_oom")
    )


def _sizes(text: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, kb in _SIZE.findall(text):
        sizes.setdefault(name, int(kb) << 10)
    return sizes
