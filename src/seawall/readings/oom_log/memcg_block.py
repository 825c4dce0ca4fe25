# SPDX-License-Identifier: Apache-2.0
"""The part of an OOM report about the memory cgroup whose limit was hit.

Kernel source: mm/memcontrol.c and memcontrol-v1.c, mem_cgroup_print_oom_context and
mem_cgroup_print_oom_meminfo.  Until 5.2 and again for v1 since 6.5 under the keys of v1; in
KB on one line until 5.2, a line each in bytes since 5.3.
"""

import re
from typing import Final

from seawall.readings.oom_log.cut_lines import before_mark
from seawall.readings.oom_log.oom_report import UNLIMITED_KB, Counter

KEYS_MOST: Final = 256
"""Values of one cgroup; kernels print about 60."""

_TASK_IN: Final = re.compile(
    r"Task\s+in\s+(.{1,4096}?)\s+killed\s+as\s+a\s+result\s+of\s+limit\s+of\s+(.{1,4096})"
)
_LIMIT_REACHED: Final = re.compile(r"Memory\s+limit\s+reached\s+of\s+cgroup\s+(.{1,4096})")
_COUNTER: Final = re.compile(
    r"(memory|memory\+swap|kmem|swap):\s*usage\s*(\d{1,20})kB,"
    r"\s*limit\s*(\d{1,20})kB,\s*failcnt\s*(\d{1,20})\s*\Z",
    re.ASCII,
)
_COUNTER_START: Final = re.compile(
    r"(memory|memory\+swap|kmem|swap):\s*(usage\s.{0,200})\Z", re.ASCII
)
_STATS: Final = re.compile(
    r"Memory\s+cgroup\s+stats(?:\s+for\s+(.{0,4096}?))?\s*:\s*((?:[a-z]\w{0,40}\s*:\s*\d.*)|"
    r"(?:[a-z]\w{0,40} \d.*)|)\Z",
    re.ASCII | re.DOTALL,
)
_LISTED: Final = re.compile(r"([a-z][a-z0-9_]{0,40}):(\d{1,20})KB", re.ASCII)
_WRITTEN: Final = re.compile(r"([a-z][a-z0-9_]{1,40}) (\d{1,20})(?!\S)", re.ASCII)
_PROTECTION: Final = re.compile(
    r"Memory\s+cgroup\s+min\s+protection\s+(\d{1,20})kB\s+--\s+low\s+protection\s+(\d{1,20})kB",
    re.ASCII,
)


def read_task_in(text: str) -> tuple[str, str, bool] | None:
    """(cgroup of the task, cgroup whose limit was hit, whether that is cut)."""
    text, is_cut = before_mark(text)
    found = _TASK_IN.match(text)
    return (mend_path(found[1]), mend_path(found[2]), is_cut) if found else None


def read_limit_reached(text: str) -> str | None:
    """The cgroup in which nobody could be killed (4.4 to 4.20)."""
    found = _LIMIT_REACHED.match(text)
    return mend_path(found[1]) if found else None


def read_counter(text: str) -> tuple[str, Counter] | None:
    """(memory, memory+swap, kmem or swap; its counter)."""
    found = _COUNTER.match(text)
    if not found:
        return None
    limit = int(found[3])
    return found[1], Counter(
        usage_bytes=int(found[2]) << 10,
        limit_bytes=None if limit >= UNLIMITED_KB else limit << 10,
        failcnt=int(found[4]),
    )


def cut_counter(text: str) -> tuple[str, str] | None:
    """(which one, what is there) of a counter's line that lacks its end."""
    found = _COUNTER_START.match(before_mark(text)[0])
    return (found[1], found[2]) if found else None


def read_stats(text: str) -> tuple[str, dict[str, int]] | None:
    """(cgroup, its values in bytes); empty values where they stand on lines of their own."""
    found = _STATS.match(text)
    if not found:
        return None
    values = {name: int(kb) << 10 for name, kb in _LISTED.findall(re.sub(r"\s+", "", found[2]))}
    if not values:
        values = {name: int(value) for name, value in _WRITTEN.findall(found[2])}
    return mend_path(found[1] or ""), dict(list(values.items())[:KEYS_MOST])


def read_stat(text: str) -> tuple[str, int]:
    """One line of memory.stat; its shape has been seen to be right."""
    name, value = text.split()
    return name, int(value)


def read_protection(text: str) -> tuple[int, int] | None:
    """(memory.min, memory.low) in bytes, since 6.19."""
    found = _PROTECTION.match(text)
    return (int(found[1]) << 10, int(found[2]) << 10) if found else None


def mend_path(path: str) -> str:
    """A cgroup's path without the blanks with which an editor broke it."""
    return re.sub(r"\s{2,}", "", path).strip()
