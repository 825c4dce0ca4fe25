# SPDX-License-Identifier: Apache-2.0
"""Lines of which the log has only the beginning.

A pager that does not wrap puts ``>`` into its last column (``less -S``, journalctl), people and
programs write ``...``; printk (about 1,000 bytes), syslog (1 or 2 KiB) and narrow screens leave
no mark, so that only a value without its end tells.
"""

import re
from typing import Final

_MARK: Final = re.compile(r"\s{0,40}(?:>|\.\.\.|\u2026)\s{0,40}\Z")
_SUMMARY_KEYS: Final = (
    "constraint", "nodemask", "cpuset", "mems_allowed", "oom_memcg", "task_memcg", "task", "pid",
    "uid",
)  # fmt: skip
_SUMMARY_KEY: Final = re.compile(rf"(?:oom-kill:\s*|,)({'|'.join(_SUMMARY_KEYS)})=|,(global_oom)")
_KILL_ORDER: Final = (
    "total-vm", "anon-rss", "file-rss", "shmem-rss", "UID", "pgtables", "oom_score_adj"
)  # fmt: skip
# The last word of a kill's line, where it is no value with its unit.
_KILL_REST: Final = re.compile(r"(?:\A|[,)\s])([A-Za-z_-]{1,20}):?-?\d{0,20}k?\Z", re.ASCII)


def before_mark(text: str) -> tuple[str, bool]:
    """The text without the mark of a cut at its end, and whether it had one."""
    found = _MARK.search(text, max(len(text) - 90, 0))
    return (text[: found.start()], True) if found else (text, False)


def cut_summary(text: str) -> tuple[dict[str, str], str, str] | None:
    """``oom-kill:constraint=...`` without its end: the whole values, the name of the one that
    is cut, and what is there of it.  None for a line that is none.
    """
    text, _ = before_mark(text)
    values: dict[str, str] = {}
    name, start = "", 0
    for found in _SUMMARY_KEY.finditer(text):
        key = found[1] or found[2]
        if key in values or key == name:
            continue  # of a path or a name that looks like it
        if name:
            values[name] = text[start : found.start()]
        name, start = key, found.end()
    return (values, name, text[start:].strip()) if name else None


def is_kill_cut(tail: str, sizes: frozenset[str]) -> bool:
    """Whether a kill's line lacks its end; ``tail`` begins behind the name of the process, and
    ``sizes`` are those that were read.

    Since 2.6.33 three sizes are printed; UID is followed by others (5.4).
    """
    rest, is_marked = before_mark(tail)
    if is_marked:
        return True
    if not sizes:
        return tail.startswith(("total-vm", "vsz"))
    if not {"anon-rss", "file-rss"} <= sizes:
        return True
    found = _KILL_REST.search(rest.rstrip())
    word = found[1] if found else ""
    return bool(word) and word != "oom_score_adj" and any(n.startswith(word) for n in _KILL_ORDER)
