# SPDX-License-Identifier: Apache-2.0
"""In words: which limit, node or zone was short, and whether the memory was really gone."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.zone_lack import ram_bytes, zone_lack
from seawall.accounts.oom.zone_sentences import zone_sentences
from seawall.readings.oom_log.oom_report import Counter
from seawall.words import percent, size, times

DROPPABLE_SHARE: Final = 0.05
"""More page cache than this beside a kill is worth a question."""
UNTOLD_SHARE: Final = 0.05
_NEAR: Final = 0.995
_USES_SHOWN: Final = 5
_COUNTERS: Final = ("memory", "memory+swap", "kmem", "swap")


def shortage_sentences(facts: ReportFacts) -> Iterator[str]:
    """The limit and what filled it, or the zones and what filled the machine."""
    if facts.report.kind == "memcg":
        yield from _limits(facts)
        yield from _content(facts)
        return
    yield from zone_sentences(facts)
    yield from _free_in_all(facts)
    yield from _swap(facts)
    yield from _uses(facts)


def hit(counter: Counter | None) -> bool:
    """Whether this counter stood at its limit."""
    if counter is None or not counter.limit_bytes:
        return False
    return counter.usage_bytes >= _NEAR * counter.limit_bytes


def _limits(facts: ReportFacts) -> Iterator[str]:
    report = facts.report
    rows = (
        ("memory", report.memory), ("memory+swap", report.memory_swap),
        ("kernel memory", report.kmem), ("swap", report.swap),
    )  # fmt: skip
    told = [(name, counter) for name, counter in rows if counter is not None]
    cut = [(name, report.cut_text[name]) for name in _COUNTERS if name in report.cut_text]
    for name, text in cut:
        yield f"The line of {name} is cut: its limit is not in the log, only '{text}'."
    if not told and cut:
        return
    if not told:
        yield "The limit and its use are not in the log: those lines are missing."
        return
    at_limit = [(name, counter) for name, counter in told if hit(counter)]
    for name, counter in at_limit:
        hits = f", hit {times(counter.failcnt)} so far" if counter.failcnt else ""
        limit = counter.limit_bytes or 0
        yield f"The limit of {name} was full: {size(counter.usage_bytes)} of {size(limit)}{hits}."
    full = {name for name, _ in at_limit}
    if report.memory is not None and report.memory.limit_bytes == 0:
        yield "The limit of memory is 0 B: every request is one too many."
    elif not full & {"memory", "memory+swap", "kernel memory"}:
        counter = report.memory or told[0][1]
        limit_words = "no limit" if counter.limit_bytes is None else size(counter.limit_bytes)
        yield (
            f"When it was printed, {size(counter.usage_bytes)} of {limit_words} was in use: "
            "something had been freed again, or a single request was too large."
        )


def _content(facts: ReportFacts) -> Iterator[str]:
    use = facts.use
    if use is None:
        yield "What it was made of is not in the log."
        return
    parts = (
        ("anonymous", use.anon_bytes), ("page cache", _cache_of_files(facts)),
        ("tmpfs and shared", use.shmem_bytes), ("kernel", use.kernel_bytes),
        ("not told", untold_bytes(facts) or None), ("swapped out", use.swap_bytes or None),
    )  # fmt: skip
    words = [f"{name} {size(value)}" for name, value in parts if value is not None]
    several = f" (in {len(use.paths)} cgroups)" if len(use.paths) > 1 else ""
    yield f"In it{several}: {', '.join(words)}."
    yield from _droppable(facts)


def _cache_of_files(facts: ReportFacts) -> int | None:
    use = facts.use
    if use is None or use.file_bytes is None:
        return None
    return max(0, use.file_bytes - (use.shmem_bytes or 0))


def untold_bytes(facts: ReportFacts) -> int:
    """What counted against the limit and is in none of the parts; 0 where that is little."""
    use, charged = facts.use, facts.charged_bytes
    if use is None or not charged:
        return 0
    rest = charged - use.total_bytes
    return rest if rest > UNTOLD_SHARE * charged else 0


def is_writing(facts: ReportFacts) -> bool:
    """Whether cache that waits for its writeback is what filled the cgroup."""
    use = facts.use
    if use is None or not use.writing_bytes or not use.droppable_bytes:
        return False
    is_most = use.writing_bytes > 0.5 * use.droppable_bytes
    return is_most and use.writing_bytes > (use.anon_bytes or 0)


def droppable_bytes(facts: ReportFacts) -> int | None:
    """Page cache of files that could be dropped, before a cgroup's kill."""
    if facts.use is None:
        return None
    return facts.use.droppable_bytes


def _droppable(facts: ReportFacts) -> Iterator[str]:
    use = facts.use
    left = droppable_bytes(facts)
    if use is None or left is None:
        return
    whole = facts.limit_bytes or use.total_bytes
    if left <= DROPPABLE_SHARE * whole:
        yield from _little(facts, left, whole)
        return
    share = f" ({percent(left / whole)} of it all)" if whole else ""
    writing = use.writing_bytes or 0
    words = f"; {size(writing)} of it was dirty or being written to disk" if writing else ""
    if is_writing(facts):
        yield (
            f"{size(left)} of page cache was still there{share}{words}: the kernel could not "
            "drop it in time."
        )
        return
    yield (
        f"{size(left)} of page cache was left{share}{words}; why it was not dropped is not in the "
        "log."
    )


def _little(facts: ReportFacts, left: int, whole: int) -> Iterator[str]:
    use = facts.use
    much = f"Only {size(left)}" if left else "None"
    if use is not None and use.shmem_bytes and use.shmem_bytes > 0.5 * whole:
        yield f"{much} of it could be dropped: tmpfs and shared memory are no cache."
    elif untold_bytes(facts):
        yield f"{much} of what is told could be dropped."
    else:
        yield f"{much} of it could be dropped: a real need, not cache."


def _free_in_all(facts: ReportFacts) -> Iterator[str]:
    lack = zone_lack(facts)
    if lack is None or lack.free_bytes is None:
        return
    ram = ram_bytes(facts)
    of = f" of {size(ram)}" if ram else ""
    when = ", by the report just before" if lack.is_free_of_before else ""
    yield (
        f"In all {size(lack.free_bytes)}{of} was free{when}: the machine is not out of memory, "
        "and no kill frees anything in that zone."
    )


def _swap(facts: ReportFacts) -> Iterator[str]:
    info = facts.report.mem_info
    if info is None or info.total_swap_bytes is None:
        return
    if not info.total_swap_bytes:
        yield "There is no swap."
        return
    free = info.free_swap_bytes
    if free is not None:
        yield f"Of {size(info.total_swap_bytes)} of swap {size(free)} was free."


def _uses(facts: ReportFacts) -> Iterator[str]:
    """Where the machine's memory was, largest first."""
    info, page = facts.report.mem_info, facts.page_bytes
    if info is None or page is None or not info.pages:
        return
    pages = info.pages
    shmem = pages.get("shmem", 0)
    anon = sum(pages.get(n, 0) for n in ("active_anon", "inactive_anon"))
    slab = pages.get("slab_unreclaimable", pages.get("slab", 0))
    rows = {
        "anonymous": max(0, anon - shmem), "tmpfs and shared": shmem,
        "page cache": pages.get("active_file", 0) + pages.get("inactive_file", 0),
        "kernel slab that cannot be freed": slab,
        "kernel slab that can be freed": pages.get("slab_reclaimable", 0),
        "page tables": pages.get("pagetables", 0), "free": pages.get("free", 0),
        "huge pages": (info.hugepages_bytes or 0) // page,
        "locked": pages.get("unevictable", 0),
    }  # fmt: skip
    largest = sorted(rows.items(), key=lambda row: -row[1])[:_USES_SHOWN]
    words = ", ".join(f"{name} {size(value * page)}" for name, value in largest if value)
    ram = f" of {size(facts.residual.ram_bytes)}" if facts.residual else ""
    yield f"The machine's memory{ram}: {words}."
