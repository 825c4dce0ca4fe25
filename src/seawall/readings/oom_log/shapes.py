# SPDX-License-Identifier: Apache-2.0
"""Which line of an OOM report a text is, told by how it begins; nothing is taken from it here."""

import re
import string
from functools import lru_cache
from typing import Final, Literal, TypeAlias

Shape: TypeAlias = Literal[
    "header", "cpuset", "cpu", "task_in", "limit_reached", "counter", "protection", "stats",
    "stat", "mem_info", "totals", "node", "zone", "reserve", "buddy", "hugepages", "pages",
    "swap", "per_cpu", "allocs", "alloc", "slab", "slab_row", "tasks", "table", "row",
    "oom_kill", "choice", "killed", "sharing", "group", "reaped", "unreaped", "nobody", "panic",
    "failure", "elision", "slub", "slub_cache", "slub_node",
]  # fmt: skip

# (shape, the characters with which it can begin, the rest of the beginning)
_UPPER, _LOWER = string.ascii_uppercase, string.ascii_lowercase
_BEGINNINGS: Final[tuple[tuple[Shape, str, str], ...]] = (
    ("row", "[", r"\[\s{0,8}\d{1,10}\]\s{1,12}\d"),
    ("table", "[", r"\[\s*pid\s*\]\s+uid\b"),
    ("cpu", "CP", r"CPU:\s*\d+\s.{0,40}?PID:|Pid:\s*\d+,\s*comm:"),
    ("task_in", "T", r"Task\s+in\s.{0,4096}?killed\s+as\s+a\s+res"),
    ("group", "T", r"Tasks\s+in\s+/?.{0,4096}?are\s+going\s+to\s+be\s+killed"),
    ("tasks", "T", r"Tasks\s+state\b"),
    ("limit_reached", "M", r"Memory\s+limit\s+reached\s+of\s+cgroup\s"),
    ("counter", "mks", r"(?:memory|memory\+swap|kmem|swap):\s*usage\s"),
    ("protection", "M", r"Memory\s+cgroup\s+min\s+protection\s"),
    ("stats", "M", r"Memory\s+cgroup\s+stats\b"),
    ("stat", _LOWER, r"[a-z][a-z0-9_]{1,40}\s\d{1,20}\s*$"),
    ("mem_info", "M", r"Mem-[Ii]nfo:"),
    (
        "totals", "AIaiudwsmpbkf",
        (
            r"(?:(?:[Aa]c|[Ii]nac)tive|isolated|unevictable|dirty|writeback|unstable|slab|mapped"
            r"|shmem|pagetables|sec_pagetables|bounce|kernel_misc|free)[a-z_]{0,20}:\d{1,20}(?![0-9kK])"
        ),
    ),
    ("node", "N", r"Node\s+\d{1,5}\s+active_anon:"),
    ("hugepages", "Nh", r"(?:Node\s+\d{1,5}\s+)?hugepages_total="),
    ("per_cpu", _UPPER, r"(?:Node\s+\d{1,5}\s+)?[A-Z]\w{1,15}\s+per-cpu:|CPU\s+\d+:\s+hi:"),
    ("zone", _UPPER, r"(?:Node\s+\d{1,5}\s+)?[A-Z]\w{1,15}\s+free:\s*\d"),
    ("buddy", _UPPER, r"(?:Node\s+\d{1,5}\s+)?[A-Z]\w{1,15}:\s*\d{1,20}\*\d"),
    ("reserve", "l", r"lowmem_reserve\[\]:"),
    (
        "pages", string.digits,
        (
            r"\d{1,20}\s+(?:total\s+pagecache\s+pages|pages\s+(?:in\s+swap\s+cache|(?:of\s+)?RAM"
            r"|HighMem|reserved|hwpoisoned|cma\s|shared|non-shared|slab))"
        ),
    ),
    ("swap", "FTS", r"(?:Free|Total)\s+swap\s*[=:]|Swap\s+cache\b"),
    ("allocs", "M", r"Memory\s+allocations\b"),
    (
        "alloc", string.digits,
        r"\d[\d.]{0,19}\s?(?:[KMGTPE]?i?B)?\s+\d{1,20}\s+\S{1,200}:\d{1,9}\s",
    ),
    ("slab", "U", r"Unreclaimable\s+slab\s+info:"),
    ("slub", "S", r"SLUB:\s*Unable\s+to\s+allocate\s"),
    ("slub_cache", "c", r"cache:\s.{1,80}?,\s+object size:"),
    ("slub_node", "n", r"node\s\d{1,5}:\s+slabs:"),
    ("oom_kill", "o", r"oom-kill:\s*constraint="),
    ("nobody", "MOo", r"(?:Memory\s+cgroup\s+)?[Oo]ut\s+of\s+memory\s+and\s+no\s+killable"),
    ("sharing", "K", r"Kill\s+process\s+\d{1,10}\s+\(.{0,64}\)\s+sharing\s+same\s+memory"),
    (
        "choice", "MOoKk",
        (
            r"(?:Memory\s+cgroup\s+)?[Oo]ut\s+of\s+[Mm]emory\b.{0,40}?:\s*[Kk]ill\b"
            r"|[Kk]ill\s+process\b"
        ),
    ),
    (
        "killed", "MOoK",
        (
            r"(?:Memory\s+cgroup\s+)?[Oo]ut\s+of\s+[Mm]emory\b.{0,40}?:\s*Killed"
            r"|Killed\s+process\s+\d"
        ),
    ),
    ("reaped", "o", r"oom_reaper:\s*reaped\s"),
    ("unreaped", "o", r"oom_reaper:\s*unable\s+to\s+reap\s"),
    ("panic", "K", r"Kernel\s+panic\s+-\s+not\s+syncing:"),
    ("elision", ".[…<", r"(?:\.\.\.|\[\s*(?:\.\.\.|…|snip|cut)\s*\]|…|<\.\.\.>|<snip>)\s*$"),
)  # fmt: skip
_SLAB_ROW: Final = re.compile(r"\S.{0,80}?\s+\d{1,20}KB\s+\d{1,20}KB\s*\Z", re.ASCII)
_FAILURE: Final = re.compile(r".{0,64}?: page allocation (?:failure|stalls)")
_CPUSET: Final = re.compile(r".{1,64}? cpuset=.{0,4096}? mems_allowed=")


@lru_cache(maxsize=256)
def _pattern_for(first: str) -> re.Pattern[str] | None:
    """Of the shapes that begin with this character."""
    groups = [f"(?P<{name}>{rest})" for name, firsts, rest in _BEGINNINGS if first in firsts]
    return re.compile("|".join(groups), re.ASCII) if groups else None


def beginning_of(text: str) -> Shape | None:
    """The same of lines that begin with words of the kernel, not with a name or a path."""
    pattern = _pattern_for(text[:1]) if text else None
    found = pattern.match(text) if pattern else None
    return found.lastgroup if found else None  # type: ignore[return-value]  # named as the shapes


def shape_of(text: str) -> Shape | None:
    """The shape of a text without leading blanks; None for one that no report has."""
    if "oom-killer:" in text and "invoked" in text:
        return "header"
    if " cpuset=" in text and _CPUSET.match(text):
        return "cpuset"
    shape = beginning_of(text)
    if shape:
        return shape
    if text[-2:] == "KB" and _SLAB_ROW.match(text):
        return "slab_row"
    if ": page allocation " in text and _FAILURE.match(text):
        return "failure"
    return None


_ENDS: Final = {
    name: re.compile(pattern, re.ASCII)
    for name, pattern in {
        "header": r".*\b(?:oom_adj|oom_score_adj|oomkilladj)=-?\d{1,6}\s*$",
        "cpuset": r".*\bmems_allowed=[\d,-]+\s*$",
        "cpu": r".*(?:[Nn]ot tainted|Tainted: .*) \d\S* +#\d",
        "task_in": r".*killed\s+as\s+a\s+result\s+of\s+limit\s+of\s+\S",
        "limit_reached": r".*cgroup\s+\S",
        "counter": r".*usage\s*\d+kB,\s*limit\s*\d+kB,\s*failcnt\s*\d+\s*$",
        "stats": r"Memory\s+cgroup\s+stats(?:\s+for\s.*)?:(?:\s*$|\s*\w+\s*:?\s*\d)",
        "hugepages": r".*hugepages_size=\d+kB\s*$",
        "group": r".*memory\.oom\.group\s+set\s*$",
        "oom_kill": r".*,pid=\d+,uid=\d+\s*$",
        "choice": r".*[Kk]ill\s*process\s*\d+\s*\(.*\)\s*score\s*-?\d+"
        r"\s+or\s+(?:sacrifice|a)\s+child",
        "killed": r".*Killed\s*process\s*\d+.*\)",
        "reaped": r".*reaped\s*process\s*\d+\s*\(.*\).*shmem-rss:\d+[kl]B\s*$",
        "unreaped": r".*\s+pid:\d+\s+\(.*\)\s*$",
        "table": r"\[\s*pid\s*\](?:\s+(?:uid|tgid|total_vm|rss|cpu|oom_adj|oom_score_adj|nr_ptes"
        r"|nr_pmds|swapents|pgtables_bytes|rss_anon|rss_file|rss_shmem))+\s+name\s*$",
    }.items()
}


def is_whole(shape: Shape, text: str) -> bool:
    """Whether a line of that shape has the end that such lines have; rows are not asked here."""
    end = _ENDS.get(shape)
    return end is None or end.match(text) is not None
