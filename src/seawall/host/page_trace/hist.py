# SPDX-License-Identifier: Apache-2.0
"""Sums in the kernel, by thread and order, where it has hist triggers (CONFIG_HIST_TRIGGERS).

Kernel document: trace/histogram.rst, since 4.7.  They are of what was taken, never of what is
held; they bound what lost events can hide.  A full map drops new threads: then it is blind, so
it is emptied before, and what it said is kept here.
"""

import re
from typing import Final, NamedTuple

from seawall.host.page_trace.instances import Instance

TRIGGER: Final = "events/kmem/mm_page_alloc/trigger"
HIST: Final = "events/kmem/mm_page_alloc/hist"
ENTRIES: Final = 4096
_KEPT_MOST: Final = 4096  # threads
_ROW: Final = re.compile(
    r"^\{ common_pid: +(\d{1,10}), order: +(\d{1,2}) \} hitcount: +(\d{1,19})", re.MULTILINE
)
_DROPPED: Final = re.compile(r"^ +Dropped: (\d{1,19})", re.MULTILINE)


class Sums(NamedTuple):
    """Pages by thread since the trigger was set."""

    pages: dict[int, int]
    dropped: int
    """Happenings of threads that found no room."""
    entries: int = 0
    """Of the kernel's map."""

    @property
    def is_nearly_full(self) -> bool:
        """A busy node has hundreds of new threads each second."""
        return self.entries > 3 * ENTRIES // 4

    def plus(self, other: "Sums") -> "Sums":
        """The sum of both: pages thread by thread, and dropped events."""
        pages = dict(self.pages)
        for tid, number in other.pages.items():
            pages[tid] = pages.get(tid, 0) + number
        return Sums(pages, self.dropped + other.dropped)

    def largest(self) -> "Sums":
        """Those of the threads that took most: of the others it says too little."""
        if len(self.pages) <= _KEPT_MOST:
            return self
        kept = sorted(self.pages.items(), key=lambda item: -item[1])[:_KEPT_MOST]
        return Sums(dict(kept), self.dropped)


def arm(instance: Instance, condition: str) -> bool:
    """Set the trigger; False where this kernel has none."""
    return instance.has(HIST) and _write(instance, condition)


def empty(instance: Instance, condition: str) -> bool:
    """The trigger that ``arm`` set begins again; False: it goes on as it was."""
    return _write(instance, condition, ":clear")


def _write(instance: Instance, condition: str, command: str = "") -> bool:
    line = f"hist:keys=common_pid,order:vals=hitcount:size={ENTRIES}{command} if {condition}"
    try:
        instance.write(TRIGGER, line)
    except OSError:
        return False
    return True


def read(instance: Instance) -> Sums | None:
    """What it counted; None when it cannot be read."""
    try:
        return parse(instance.read(HIST))
    except OSError:
        return None


def parse(text: str) -> Sums:
    """The text of a ``hist`` file; rows of another form are left out."""
    pages: dict[int, int] = {}
    rows = _ROW.findall(text)
    for tid, order, hits in rows:
        pages[int(tid)] = pages.get(int(tid), 0) + (int(hits) << int(order))
    dropped = _DROPPED.search(text)
    return Sums(pages, int(dropped[1]) if dropped else 0, len(rows))
