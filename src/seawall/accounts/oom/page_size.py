# SPDX-License-Identifier: Apache-2.0
"""The page size of the kernel that wrote a report, from numbers that stand in it twice.

The task table counts pages, the kill lines and the statistics count bytes: their ratio is the
page size, wherever a report shows one thing in both units.
"""

from collections.abc import Iterator
from typing import Final

from seawall.readings.oom_log.oom_report import OomReport

SIZES: Final = (4096, 8192, 16384, 65536)
"""What Linux has; 32 KiB is on no distribution's kernel."""
_NEAR: Final = 0.2
"""Numbers of one report are taken one after the other, and drift."""
_PAGES_LEAST: Final = 64


def page_size_of(report: OomReport) -> tuple[int, str] | None:
    """(bytes, where it was seen); None when nothing in the report tells."""
    if report.page_bytes is not None:
        return report.page_bytes, "the report's list of free blocks"
    for found, pages, where in _pairs(report):
        if (nearest := _nearest(found, pages)) is not None:
            return nearest, where
    release = report.kernel or ""
    if any(word in release for word in ("x86_64", "amd64", "i686")):
        return 4096, "the kernel's release, which names an x86"
    return None


def _nearest(count: int, pages: int) -> int | None:
    if pages < 1 or count < 1:
        return None
    ratio = count / pages
    return next((page for page in SIZES if abs(ratio / page - 1) < _NEAR), None)


def _pairs(report: OomReport) -> Iterator[tuple[int, int, str]]:
    """(bytes, pages, where) of one quantity, the most exact first."""
    rows = {task.pid: task for task in report.tasks}
    for kill in report.kills:
        row = rows.get(kill.pid)
        if row is not None and kill.total_vm_bytes is not None:
            yield kill.total_vm_bytes, row.total_vm_pages, "the killed process's two sizes"
    if (info := report.mem_info) is not None:
        for name, pages in info.pages.items():
            across = sum(node.get(name, 0) for node in info.nodes.values())
            if pages >= _PAGES_LEAST and name in ("active_anon", "inactive_anon", "mapped"):
                yield across, pages, "the nodes' sizes against the whole machine's"
    anon = sum(s.values.get("anon", s.values.get("rss", 0)) for s in report.memcg_stats)
    rss = sum(task.rss_pages for task in report.tasks)
    if rss >= _PAGES_LEAST and not report.is_cut:
        yield anon, rss, "the cgroup's statistics against its processes"
    elif rss >= _PAGES_LEAST:
        yield anon, max(task.rss_pages for task in report.tasks), "the cgroup's statistics"
