# SPDX-License-Identifier: Apache-2.0
"""Dirty pages as text: how far from the limits, whose they are, what the settings mean here.

Shown by ``seawall cache --dirty``.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.cache.dirty import EXAMPLE_BYTES, Dirty, Waiter
from seawall.accounts.cache.dirty_groups import DirtyGroup
from seawall.accounts.cache.dirty_thresholds import DirtyLimits
from seawall.views.terminal import Console, plain
from seawall.words import duration, percent, size

GROUPS_SHOWN: Final = 12
WAITERS_SHOWN: Final = 8
OVER_SHOWN: Final = 3
_BAR_WIDTH: Final = 30


def lines(dirty: Dirty, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    yield from _summary(dirty, paper)
    yield ""
    yield from _groups(dirty, paper)
    yield from _waiters(dirty, paper)
    yield ""
    yield paper.paint("What the settings mean here", "bold")
    for words in list(settings_words(dirty)) or ["The limits could not be told, nor the settings."]:
        yield from paper.wrap(words, "    ", "  - ")
    yield ""
    yield paper.paint("What to do about it", "bold")
    for words in _advice():
        yield from paper.wrap(words, "    ", "  - ")


def _summary(dirty: Dirty, paper: Console) -> Iterator[str]:
    for words in _pressing(dirty):
        for line in paper.wrap(words):
            yield paper.paint(line, "warning")
    words = f"{_told(dirty.waits)} has to reach a disk ({_told(dirty.dirty)} dirty,"
    words += f" {_told(dirty.writeback)} being written)"
    limits, waits = dirty.limits, dirty.waits
    if limits is None:
        yield from paper.wrap(f"{words}; the node's limits could not be told.")
        return
    yield from paper.wrap(words + ("." if waits is None else f"; {state(waits, limits)}."))
    if waits is not None:
        share = waits / limits.limit if limits.limit else 0.0
        style = "warning" if waits > limits.freerun else "good"
        bar = paper.paint(paper.bar(share, _BAR_WIDTH), style)
        yield f"  [{bar}] {percent(share)} of the limit"
    rows = (
        (limits.background, "the flusher begins to write"),
        (limits.freerun, "writers are slowed to what the disk takes"),
        (limits.limit, "writers stop until something is written"),
    )
    for count, meaning in rows:
        yield f"  {size(count):>9}  {meaning}"
    yield from paper.wrap(_source(dirty), "  ", "  ")


def _told(count: int | None) -> str:
    return "?" if count is None else size(count)


def _source(dirty: Dirty) -> str:
    """Where the limits are from."""
    if dirty.computed is None:
        return "As the kernel prints them; they could not be computed again."
    base = "free memory and page cache"
    if dirty.settings is not None and dirty.settings.bytes:
        base = "vm.dirty_bytes"
    if dirty.printed is None:
        return f"Computed from {base}: the kernel's own could not be read."
    again = size(dirty.computed.limit)
    return f"As the kernel prints them; computed from {base}: {again}."


def _pressing(dirty: Dirty) -> Iterator[str]:
    """Who is made to wait, and who is over limits of its own: the node's count hides both."""
    if dirty.throttled:
        first = _waiter(dirty.throttled[0])
        more = len(dirty.throttled) - 1
        yield f"Made to wait for dirty pages: {first}{f', and {more} more' if more else ''}."
    for one in [one for one in dirty.groups if one.is_over][:OVER_SHOWN]:
        if (limits := one.limits) is None:
            continue
        stops = (one.waits or 0) >= limits.limit
        at = f"stop at {size(limits.limit)}" if stops else f"are slowed from {size(limits.freerun)}"
        yield (
            f"{one.group.name} is over its own limit: {_told(one.waits)} to write, and its"
            f" writers {at} (where the file system keeps to it, see below)."
        )


def state(waits: int, limits: DirtyLimits) -> str:
    """What the kernel does about this much on the node; a cgroup may wait before."""
    if waits >= limits.limit:
        return "writers stop now"
    if waits > limits.freerun:
        return "writers are being slowed down now"
    if waits > limits.background:
        return "the flusher writes in the background and nobody waits for the node's limit"
    return "nobody waits for the node's limit, and only what is old is written"


def _groups(dirty: Dirty, paper: Console) -> Iterator[str]:
    shown = dirty.groups[:GROUPS_SHOWN]
    if not shown:
        yield from paper.wrap(_nobody(dirty))
        return
    is_v2 = dirty.cgroup_version == 2
    head = ["WHOSE", "DIRTY", "WRITING"]
    if is_v2:
        head += ["SLOWED AT", "STOPS AT", "WAITS"]
    rows = [_group_row(one, is_v2=is_v2) for one in shown]
    yield from paper.table(head, rows)
    yield from _left_out(dirty.groups[GROUPS_SHOWN:])
    for words in _group_notes(dirty, is_v2=is_v2):
        yield from paper.wrap(words)


def _nobody(dirty: Dirty) -> str:
    if not dirty.cgroup_version:
        return "Whose they are: unknown."
    if not dirty.groups_told:
        return "Whose they are: no memory.stat here tells (the kernel does since 4.2)."
    return "No cgroup holds dirty pages."


def _left_out(rest: Sequence[DirtyGroup]) -> Iterator[str]:
    blind = sum(one.dirty is None for one in rest)
    if known := len(rest) - blind:
        more = sum((one.beside_dirty or 0) + (one.beside_writeback or 0) for one in rest)
        yield f"and {known} more with {size(more)}"
    if blind:
        yield f"and {blind} more that could not be read"


def _group_notes(dirty: Dirty, *, is_v2: bool) -> Iterator[str]:
    if any(one.dirty is None for one in dirty.groups):
        yield (
            "?: its memory.stat could not be read; what it holds is in the row of what it is in,"
            " if there is one."
        )
    if not is_v2:
        yield (
            "Cgroup v1 has no limit for dirty pages: one writer may fill the node's, and then all"
            " others wait with it."
        )
        return
    yield (
        "SLOWED and STOPS: its own limits, those below it included, on file systems with cgroup"
        " writeback (ext2, ext4, xfs, btrfs, f2fs); on others only the node's count. WAITS: share"
        " of the last 10 s in which a task of it waited for a disk."
    )
    if dirty.dirtyable is None or dirty.settings is None:
        yield (
            "Its limits need vm.dirty_*, /proc/zoneinfo, and Active(file) and Inactive(file) of"
            " /proc/meminfo, of Linux 3.14 or later."
        )


def _group_row(one: DirtyGroup, *, is_v2: bool) -> list[str]:
    name = one.group.name + (" (beside those below)" if one.is_parent else "")
    row = [name, _told(one.beside_dirty), _told(one.beside_writeback)]
    if is_v2:
        limits = one.limits
        row += ["?", "?"] if limits is None else [size(limits.freerun), size(limits.limit)]
        row.append("?" if one.io_stalled is None else percent(one.io_stalled))
    return row


def _waiters(dirty: Dirty, paper: Console) -> Iterator[str]:
    yield ""
    if dirty.waiting is None:
        yield "Who waits: processes could not be seen."
        return
    if not dirty.waiting:
        yield from paper.wrap(
            "No process waits in state D (first threads only: a thread that waits alone is not"
            " seen)."
        )
        return
    yield from paper.wrap(
        f"Of {dirty.waiting} processes in state D {len(dirty.throttled)} are made to wait for"
        " dirty pages (first threads only):"
    )
    for one in dirty.waiters[:WAITERS_SHOWN]:
        yield from paper.wrap(_waiter(one), "      ", "  ")
    hidden = dirty.waiting - len(dirty.waiters)
    if hidden > 0:
        yield f"  {hidden} more whose place in the kernel is not told"


def _waiter(one: Waiter) -> str:
    home = "" if one.workload is None else f" of {one.workload}"
    return f"pid {one.pid} {plain(one.comm)}{home}: in {one.where}"


def settings_words(dirty: Dirty) -> Iterator[str]:
    """One sentence for each setting, with this host's bytes."""
    sysctls, limits = dirty.sysctls, dirty.limits
    if sysctls is None:
        yield "vm.dirty_* could not be read: what the limits come from is not told."
    elif limits is not None:
        halved = dirty.computed is not None and dirty.computed.is_halved
        begins = f"the flusher begins at {size(limits.background)}"
        if halved:
            begins = f"not below the limit, so the kernel takes half of that: {begins}"
        yield _setting(
            "dirty_background", sysctls.dirty_background_bytes,
            sysctls.dirty_background_ratio_percent, "" if halved else _base(dirty), begins,
        )  # fmt: skip
        yield _setting(
            "dirty", sysctls.dirty_bytes, sysctls.dirty_ratio_percent, _base(dirty),
            f"writers are slowed from {size(limits.freerun)} and stop at {size(limits.limit)}",
        )  # fmt: skip
    if dirty.expire_seconds is not None and dirty.wakeup_seconds is not None:
        yield _periodic(dirty.expire_seconds, dirty.wakeup_seconds)
    if dirty.example is not None:
        size_of = size(EXAMPLE_BYTES)
        yield (
            f"A container of {size_of} on cgroup v2 that holds page cache alone is slowed from"
            f" {size(dirty.example.freerun)} and stopped at {size(dirty.example.limit)} of its own."
            f" On v1 all {size_of} of it may be dirty; then it waits for the disk whenever it"
            " needs memory."
        )


def _base(dirty: Dirty) -> str:
    """What the percentages are of."""
    whole = f"(free memory and page cache, not all {size(dirty.total)})"
    if dirty.dirtyable is None:
        return f"of what may become dirty {whole}"
    return f"of the {size(dirty.dirtyable)} that may become dirty {whole}"


def _setting(name: str, count: int | None, share: int | None, base: str, meaning: str) -> str:
    if count is None or (share is None and not count):
        return f"vm.{name}_bytes or vm.{name}_ratio could not be read; {meaning}."
    if count:
        return f"vm.{name}_bytes {count:,}: {meaning}; vm.{name}_ratio does not count."
    return f"vm.{name}_ratio {share}: {meaning}{f', {share} % {base}' if base else ''}."


def _periodic(expire: float, wakeup: float) -> str:
    words = f"vm.dirty_expire_centisecs {expire * 100:.0f}"
    if not wakeup:
        return (
            f"{words}, but vm.dirty_writeback_centisecs is 0: nothing is written for its age, only"
            " when there is too much of it or somebody calls sync."
        )
    return (
        f"{words}, vm.dirty_writeback_centisecs {wakeup * 100:.0f}: every {duration(wakeup)} the"
        f" flusher writes what has been dirty for {duration(expire)}, however little it is. So"
        f" below the background limit a page stays dirty for {duration(expire + wakeup)} at most,"
        " if the disk keeps up."
    )


def _advice() -> Iterator[str]:
    yield (
        "sync (or sync -f FILE for one file system) writes dirty pages and waits for the disk; it"
        " drops nothing from the cache."
    )
    yield (
        "A slow disk with much dirty memory: lower vm.dirty_bytes and vm.dirty_background_bytes,"
        " so that less piles up; a container's own share needs cgroup v2 (io.max, memory.high)."
    )
    yield (
        "Not: echo 1 > /proc/sys/vm/drop_caches: it takes clean pages that nobody maps from every"
        " container, and not one dirty page. What it drops is read again, from the same disk that"
        " is to write."
    )
