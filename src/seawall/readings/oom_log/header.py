# SPDX-License-Identifier: Apache-2.0
"""The first lines of an OOM report: who asked for memory, for what, on which kernel.

Kernel source: mm/oom_kill.c dump_header, lib/dump_stack.c.  ``oomkilladj`` until 2.6.28,
``oom_adj`` until 3.6, ``oom_score_adj`` since 2.6.36, names of the flags since 4.6,
``nodemask`` 4.9 to 4.20, ``UID:`` in the CPU line since 6.12.
"""

import re
from typing import Final, NamedTuple

from seawall.readings.oom_log.cut_lines import before_mark

COMM_MOST: Final = 64
"""Names have 15 bytes; those of workqueue threads are printed longer."""

_COMM_BYTES_MOST: Final = 15
# ``app[12]: text``, and a quotation mark that opens at a word and is not closed.
_OF_PROGRAM: Final = re.compile(r"\[\d{1,10}\]:\s")
_OPENED: Final = re.compile(r"\s(?:'[^']*|\"[^\"]*|`[^`]*|[\u201c\u2018\xab].*)\Z")
_COMM: Final = re.compile(r"(.*?)\s*\binvoked\s+oom-killer:", re.DOTALL)
_GFP: Final = re.compile(r"gfp_mask=\s*0x([0-9a-fA-F]{1,16})(?:\s*\(([^()]{0,1000})\))?", re.ASCII)
_ORDER: Final = re.compile(r"\border=(-?\d{1,4})\b", re.ASCII)
_ADJ: Final = re.compile(r"\b(?:oom_adj|oomkilladj)=(-?\d{1,5})\b", re.ASCII)
_SCORE_ADJ: Final = re.compile(r"\boom_score_adj=(-?\d{1,6})\b", re.ASCII)
_NODEMASK: Final = re.compile(r"\bnodemask=([\d,-]{1,4096}?),\s*order=", re.ASCII)
_CPUSET: Final = re.compile(r"(.{1,64}?) cpuset=(.{0,4096}?) mems_allowed=([\d,-]{0,4096})")
_CPU: Final = re.compile(
    r"CPU:\s*\d+\s+(?:UID:\s*\d+\s+)?PID:\s*(\d{1,10})\s+Comm:\s*(.{1,64}?)\s+"
    r"(?:Kdump:\s*loaded\s+)?(?:[Nn]ot\s+tainted|Tainted:|#|\d{1,2}\.\d{1,3}[.+-])",
    re.ASCII,
)
_PID: Final = re.compile(
    r"Pid:\s*(\d{1,10}),\s*comm:\s*(.{1,64}?)\s+(?:[Nn]ot\s+tainted|Tainted:)", re.ASCII
)
_RELEASE: Final = re.compile(r"[Tt]ainted.{0,120}?\s(\d{1,2}\.\d\S{0,80})\s+#", re.ASCII)


class Header(NamedTuple):
    """``X invoked oom-killer: gfp_mask=0x140cca(GFP_...), order=0, oom_score_adj=0``."""

    comm: str | None
    gfp_mask: int | None
    """None: the line is cut within it."""
    gfp_flags: tuple[str, ...]
    order: int | None
    oom_adj: int | None
    oom_score_adj: int | None
    nodemask: str | None


class Invoker(NamedTuple):
    """``CPU: 1 PID: 3206 Comm: leaker Not tainted 3.10.0 #1``."""

    pid: int
    comm: str
    kernel: str | None


def read_header(text: str, *, is_marked: bool = False) -> Header | None:
    """None for words about the OOM killer that are no report of it.

    No gfp_mask follows them, or what stands before them can be no name; ``is_marked``: the line
    has a prefix of the kernel's, so that a name with quotation marks is believed.
    """
    comm, mask = _COMM.match(text), _GFP.search(text)
    if comm is None or mask is None or mask.start() < comm.end():
        return None
    if _is_prose(comm[1].strip(), is_marked=is_marked):
        return None
    text, is_cut = before_mark(text)
    nodemask = _NODEMASK.search(text, mask.end())
    order = _ORDER.search(text, mask.end())
    if order and order.end() == len(text) and (is_cut or order[1] == "1"):
        order = None  # all kernels print more behind it: it may be the beginning of another number
    flags = re.sub(r"\s", "", mask[2] or "").split("|")
    return Header(
        comm=comm[1].strip()[-COMM_MOST:] or None,
        gfp_mask=int(mask[1], 16) if mask.end() < len(text) else None,
        gfp_flags=tuple(flag for flag in flags if flag),
        order=int(order[1]) if order else None,
        oom_adj=_number(_ADJ, text, mask.end()),
        oom_score_adj=_number(_SCORE_ADJ, text, mask.end()),
        nodemask=nodemask[1] if nodemask else None,
    )


def read_cpuset(text: str) -> tuple[str, str, str] | None:
    """(name of the task, cpuset, nodes allowed) of ``X cpuset=/ mems_allowed=0-1``."""
    found = _CPUSET.match(text)
    return (found[1], found[2], found[3]) if found else None


def read_invoker(text: str) -> Invoker | None:
    """The task and the kernel of the line above the call trace."""
    found = _CPU.match(text) or _PID.match(text)
    if not found:
        return None
    release = _RELEASE.search(text, found.end() - 12)
    return Invoker(int(found[1]), found[2], release[1] if release else None)


def is_same_name(printed: str, invoker: str) -> bool:
    """Whether the first line and the one above the call trace name the same task.

    Before the first one an unknown log may have put something, or the name itself looked like a
    prefix (``[ 12.345678] x``) and was taken for one.
    """
    return (
        printed == invoker
        or f" {printed}".endswith(" " + invoker)
        or invoker.endswith("] " + printed)
    )


def true_name(printed: str | None, invoker: str | None) -> str | None:
    """The invoker's name as the line above the call trace repeats it."""
    return invoker if printed and invoker and is_same_name(printed, invoker) else printed


def _is_prose(name: str, *, is_marked: bool) -> bool:
    """Whether what stands before ``invoked oom-killer`` can be no name of a task."""
    if len(name.encode("utf-8", "replace")) > _COMM_BYTES_MOST:
        return True
    return _OF_PROGRAM.search(name) is not None or (not is_marked and bool(_OPENED.search(name)))


def _number(pattern: re.Pattern[str], text: str, start: int) -> int | None:
    found = pattern.search(text, start)
    return int(found[1]) if found else None
