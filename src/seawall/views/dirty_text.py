# SPDX-License-Identifier: Apache-2.0
"""Dirty pages as text: how far from the limits, whose they are, what the settings mean here.

Shown by ``seawall cache --dirty``.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.dirty import EXAMPLE_BYTES, Dirty, DirtyGroup, Waiter
from seawall.accounts.dirty_limits import DirtyLimits
from seawall.findings.words import duration, percent, size
from seawall.views.terminal import Paper, plain

GROUPS_SHOWN: Final = 12
WAITERS_SHOWN: Final = 8
_BAR_WIDTH: Final = 30


def lines(dirty: Dirty, paper: Paper) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    yield from _summary(dirty, paper)
    yield ""
    yield from _groups(dirty, paper)
    yield from _waiters(dirty, paper)
    yield ""
    yield paper.paint("What the settings mean here", "bold")
    for words in settings_words(dirty):
        yield from paper.wrap(words, "    ", "  - ")
    yield ""
    yield paper.paint("What to do about it", "bold")
    for words in _advice():
        yield from paper.wrap(words, "    ", "  - ")


def _summary(dirty: Dirty, paper: Paper) -> Iterator[str]:
    words = f"{size(dirty.waits)} has to reach a disk ({size(dirty.dirty)} dirty,"
    words += f" {size(dirty.writeback)} being written)"
    limits = dirty.limits
    if limits is None:
        yield from paper.wrap(f"{words}; the node's limits could not be told.")
        return
    yield from paper.wrap(f"{words}; {state(dirty.waits, limits)}.")
    share = dirty.waits / limits.limit if limits.limit else 0.0
    style = "warning" if dirty.waits > limits.freerun else "good"
    yield f"  [{paper.paint(paper.bar(share, _BAR_WIDTH), style)}] {percent(share)} of the limit"
    rows = (
        (limits.background, "the flusher begins to write"),
        (limits.freerun, "writers are slowed to what the disk takes"),
        (limits.limit, "writers stop until something is written"),
    )
    for count, meaning in rows:
        yield f"  {size(count):>9}  {meaning}"
    if dirty.printed is not None and dirty.computed is not None:
        again = size(dirty.computed.limit)
        words = f"As the kernel prints them; computed from free memory and page cache: {again}."
        yield from paper.wrap(words, "  ", "  ")


def state(waits: int, limits: DirtyLimits) -> str:
    """What the kernel does about this much."""
    if waits >= limits.limit:
        return "writers stop now"
    if waits > limits.freerun:
        return "writers are being slowed down now"
    if waits > limits.background:
        return "the flusher writes in the background and nobody waits"
    return "nobody waits, and only what is old is written"


def _groups(dirty: Dirty, paper: Paper) -> Iterator[str]:
    shown = dirty.groups[:GROUPS_SHOWN]
    if not shown:
        told = (
            "No cgroup holds dirty pages." if dirty.cgroup_version else "Whose they are: unknown."
        )
        yield told
        return
    is_v2 = dirty.cgroup_version == 2
    head = ["WHOSE", "DIRTY", "WRITING"]
    if is_v2:
        head += ["SLOWED AT", "STOPS AT", "WAITS"]
    rows = [_group_row(one, is_v2=is_v2) for one in shown]
    yield from paper.table(head, rows)
    rest = dirty.groups[GROUPS_SHOWN:]
    if rest:
        more = sum(one.dirty + (one.writeback or 0) for one in rest)
        yield f"and {len(rest)} more with {size(more)}"
    if is_v2:
        yield from paper.wrap(
            "SLOWED and STOPS: its own limits, on file systems with cgroup writeback (ext2, ext4,"
            " xfs, btrfs, f2fs); on others only the node's count. WAITS: share of the last 10 s"
            " in which a task of it waited for a disk."
        )
    else:
        yield from paper.wrap(
            "Cgroup v1 has no limit for dirty pages: one writer may fill the node's, and then all"
            " others wait with it."
        )


def _group_row(one: DirtyGroup, *, is_v2: bool) -> list[str]:
    writing = "?" if one.writeback is None else size(one.writeback)
    row = [one.group.name, size(one.dirty), writing]
    if is_v2:
        limits = one.limits
        row += ["?", "?"] if limits is None else [size(limits.freerun), size(limits.limit)]
        row.append("?" if one.io_stalled is None else percent(one.io_stalled))
    return row


def _waiters(dirty: Dirty, paper: Paper) -> Iterator[str]:
    yield ""
    if dirty.waiting is None:
        yield "Who waits: processes could not be seen."
        return
    throttled = [one for one in dirty.waiters if one.is_throttled]
    if not dirty.waiting:
        yield from paper.wrap(
            "No process waits in state D (first threads only: a thread that waits alone is not"
            " seen)."
        )
        return
    yield from paper.wrap(
        f"Of {dirty.waiting} processes in state D {len(throttled)} are made to wait for dirty pages"
        " (first threads only):"
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
    settings, limits = dirty.settings, dirty.limits
    if settings is not None and limits is not None:
        base = "" if dirty.dirtyable is None else f" of the {size(dirty.dirtyable)}"
        base += f" that may become dirty (free memory and page cache, not all {size(dirty.total)})"
        yield _setting(
            "dirty_background", settings.background_bytes, settings.background_ratio_percent,
            base, f"the flusher begins at {size(limits.background)}",
        )  # fmt: skip
        yield _setting(
            "dirty", settings.bytes, settings.ratio_percent, base,
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


def _setting(name: str, count: int, share: int, base: str, meaning: str) -> str:
    if count:
        return f"vm.{name}_bytes {count:,}: {meaning}; vm.{name}_ratio does not count."
    return f"vm.{name}_ratio {share}: {meaning}, {share} %{base}."


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
        "echo 1 > /proc/sys/vm/drop_caches drops clean pages that nobody maps, of every container,"
        " and not one dirty page: run sync first or it does nothing for them, and everything"
        " else is read again."
    )
    yield (
        "A slow disk with much dirty memory: lower vm.dirty_bytes and vm.dirty_background_bytes,"
        " so that less piles up; a container's own share needs cgroup v2 (io.max, memory.high)."
    )
