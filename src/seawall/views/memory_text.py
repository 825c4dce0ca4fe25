# SPDX-License-Identifier: Apache-2.0
"""``seawall memory`` as text: one bar for the whole machine, then a line for each use.

Each use has a letter in the bar.  What nobody explains is ``?``, what is free is ``.``.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.node_memory.ledger import Ledger, LedgerLine, NodeLedger
from seawall.accounts.node_memory.ledger_nodes import Imbalance, imbalance
from seawall.accounts.node_memory.ledger_parts import GPU_LINE, NOT_CAPTURED
from seawall.host.host import Unread
from seawall.readings.base import Base
from seawall.readings.meminfo import PATH
from seawall.views.claims_text import holders
from seawall.views.document import taken_at
from seawall.views.memory_page import MemoryPage
from seawall.views.terminal import Console
from seawall.words import percent, size

_LETTERS: Final = {
    "anonymous": "A", "unmapped anonymous": "U", "tmpfs and shared": "T", "page cache": "C",
    "buffers": "B", "swap cache": "W", "slab": "S", "kernel misc": "M", "vmalloc": "V",
    "kernel stacks": "K", "page tables": "P", "secondary page tables": "Y", "percpu": "E",
    "hugetlb": "H", "zspages": "Z", "zfs arc": "F", "gpu (ttm)": "G", "balloon": "O",
    "gpu memory": "D", "charged kernel pages": "N", "per-cpu lists": "L",
    "pipes": "I", "free": ".",
}  # fmt: skip
_RESIDUAL: Final = "uncounted"
_SHOWN_LEAST_BYTES: Final = 1 << 20
_BAR_WIDTH: Final = 12
_NAME_WIDTH: Final = 21
# Letter, size, share, bar and name with their gaps; the source begins behind them.
_BEFORE_SOURCE: Final = 2 + 8 + 2 + 5 + 2 + _BAR_WIDTH + 2 + _NAME_WIDTH + 1
_NOTABLE_FRACTION: Final = 0.01


def lines(page: MemoryPage, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    ledger = page.ledger
    if isinstance(ledger, Unread):
        yield from paper.wrap(f"No ledger: {ledger.path}: {ledger.detail or ledger.why}.")
        return
    for sentence in _summary(page, ledger):
        yield from paper.wrap(sentence)
    rows = _rows(ledger)
    yield ""
    yield whole_bar([(row[0], row[1]) for row in rows], ledger.total_bytes, paper)
    yield ""
    notable = ledger.residual_bytes > _NOTABLE_FRACTION * ledger.total_bytes
    for letter, count, name, source in rows:
        if abs(count) >= _SHOWN_LEAST_BYTES or name in ("free", _RESIDUAL):
            style = "warning" if letter == "?" and notable else None
            yield from _row((letter, count, name, source), ledger.total_bytes, paper, style)
    yield from _small(ledger, paper)
    if not ledger.missing:
        yield ""
    yield from _residual_words(page, ledger, paper)
    if not isinstance(page.claimed, Unread):
        yield from holders(page.claimed, ledger.residual_bytes, paper)
        yield from _shadow(page, paper)
    yield from _unknown(ledger, paper)
    yield from _nodes(ledger.nodes, paper)
    yield from _notes(ledger.notes, paper)


def whole_bar(parts: Sequence[tuple[str, int]], total: int, paper: Console) -> str:
    """One character for each equal share of the memory, in the order of the parts.

    Every part ends where its running sum ends, so the bar is right within a character.
    """
    width = paper.width - 2
    marks = ""
    reached = 0
    for letter, count in parts:
        reached += max(0, count)
        end = width if total <= 0 else min(width, round(reached / total * width))
        marks += letter * (end - len(marks))
    return f"[{marks.ljust(width, '.')}]"


def _summary(page: MemoryPage, ledger: Ledger) -> Iterator[str]:
    """What is uncounted and free, what could be had, and what of the slab can be dropped."""
    free = ledger.line("free")
    total, free_bytes = size(ledger.total_bytes), size(free.bytes if free else 0)
    if ledger.missing:
        yield f"Uncounted memory cannot be said: {PATH} lacks {', '.join(ledger.missing)}."
        yield f"{free_bytes} of {total} is free."
    else:
        error = size(ledger.residual_error_bytes)
        yield (
            f"{size(ledger.residual_bytes)} of {total} is uncounted memory (+- {error}), "
            f"{free_bytes} is free."
        )
    if gpu := ledger.line(GPU_LINE):
        nodes = [str(node.node) for node in ledger.nodes if node.is_gpu]
        where = f"NUMA node{'s' * (len(nodes) > 1)} {', '.join(nodes)}"
        yield (
            f"{size(gpu.bytes)} of the {total} is the memory of GPUs ({where}): neither free nor "
            "uncounted, and not for programs of the host."
        )
    headroom = page.headroom
    if not isinstance(headroom, Unread):
        guess = headroom.is_estimate
        how = " (an estimate: this kernel prints no MemAvailable)" if guess else ""
        about = "About " if guess else ""
        yield f"{about}{size(headroom.available_bytes)} could be had by programs{how}."
    slab = ledger.line("slab")
    if slab and slab.reclaimable_bytes is not None and slab.bytes >= ledger.total_bytes // 20:
        kept = size(max(slab.bytes - slab.reclaimable_bytes, 0))
        yield (
            f"Of {size(slab.bytes)} slab {size(slab.reclaimable_bytes)} can be dropped (mostly "
            f"names of files: dentries and inodes), {kept} cannot."
        )


def _rows(ledger: Ledger) -> list[tuple[str, int, str, str]]:
    """(letter, bytes, name, source), largest first, what is free last."""
    rows = [
        (_LETTERS.get(line.name, "+"), line.bytes, line.name, _source(line))
        for line in ledger.lines
    ]
    if not ledger.missing:
        words = "MemTotal less all lines"
        rows.append(("?", ledger.residual_bytes, _RESIDUAL, words))
    return sorted(rows, key=lambda row: (row[2] == "free", -row[1]))


def _source(line: LedgerLine) -> str:
    if line.reclaimable_bytes is None:
        return line.source
    return f"{line.source}; {size(line.reclaimable_bytes)} can be dropped"


def _row(
    row: tuple[str, int, str, str], total: int, paper: Console, style: str | None
) -> Iterator[str]:
    letter, count, name, source = row
    share = count / total if total > 0 else 0.0
    bar = paper.bar(share, _BAR_WIDTH)
    head = f"{letter} {size(count):>8}  {percent(share):>5}  {bar}  {name:<{_NAME_WIDTH}} "
    # Nearly all are fields of this one file; the legend below the table says so.
    short = source.replace("/proc/meminfo ", "")
    for number, line in enumerate(paper.wrap(short, " " * _BEFORE_SOURCE, " " * _BEFORE_SOURCE)):
        text = line[_BEFORE_SOURCE:]
        shown = paper.paint(head, style) if style else head
        yield (shown if not number else " " * _BEFORE_SOURCE) + paper.paint(text, "dim")


def _small(ledger: Ledger, paper: Console) -> Iterator[str]:
    """Lines too small for a row, and what a bare word in the last column is."""
    small = [line for line in ledger.lines if line.bytes < _SHOWN_LEAST_BYTES]
    names = [f"{line.name} {size(line.bytes)}" for line in small if line.bytes]
    none = [line.name for line in small if not line.bytes and line.name != "free"]
    if names:
        yield from paper.wrap(f"{', '.join(names)}.", "  ", "  Smaller: ")
    if none:
        yield from paper.wrap(f"{', '.join(none)}.", "  ", "  Counted and 0: ")
    yield from paper.wrap("Sources without a path are fields of /proc/meminfo.", "  ", "  ")


def _residual_words(page: MemoryPage, ledger: Ledger, paper: Console) -> Iterator[str]:
    if ledger.missing:
        return
    share = percent(abs(ledger.residual_bytes) / ledger.total_bytes if ledger.total_bytes else 0)
    words = (
        f"Uncounted memory: {size(ledger.residual_bytes)} ({share}), off by "
        f"{size(ledger.residual_error_bytes)} at most. Drivers, network rings and the kernel's "
        "own start hold such memory; no limit and no OOM kill reaches it."
    )
    yield from paper.wrap(words)
    base = page.base
    if isinstance(base, Base):
        more = ledger.residual_bytes - base.residual_bytes
        when = "now" if page.base_is_new else taken_at(base.learned_at_unix_seconds) or "once"
        how = "as asked" if base.how == "asked" else "while only services of the host ran"
        since = f"; {size(abs(more))} {'more' if more >= 0 else 'less'} since"
        yield from paper.wrap(
            f"Normal for this boot: {size(base.residual_bytes)}, learned {when} {how}"
            f"{'' if page.base_is_new else since}."
        )
    else:
        why = f" ({base.detail})" if base.why == "refused" else ""
        yield from paper.wrap(
            f"What is normal for this boot is not known{why}: on an idle host, as root, "
            "seawall memory --learn-base."
        )


def _shadow(page: MemoryPage, paper: Console) -> Iterator[str]:
    """What workloads hold beside their charges, where there is such a thing."""
    shadow = page.shadow
    if isinstance(shadow, Unread) or not shadow.node.bytes:
        return
    node = shadow.node
    least, most = size(node.least_bytes), size(node.most_bytes)
    spread = "" if least == most else f" ({least} to {most})"
    words = (
        f"Workloads hold {size(node.bytes)}{spread} that no cgroup is charged with; seawall "
        "pods shows it against their limits."
    )
    yield ""
    yield from paper.wrap(words)


def _unknown(ledger: Ledger, paper: Console) -> Iterator[str]:
    if not ledger.unknown:
        return
    yield ""
    yield "Lines that this kernel does not tell (part of what is uncounted)"
    for line in ledger.unknown:
        most = "" if line.at_most_bytes is None else f", at most {size(line.at_most_bytes)}"
        yield from paper.wrap(f"{line.name}{most}: {line.why}", "    ", "  ")


def _nodes(nodes: Sequence[NodeLedger], paper: Console) -> Iterator[str]:
    """A bar for each NUMA node, where there is more than one."""
    shown = [node for node in nodes if node.total_bytes]
    if len(shown) < 2:
        return
    yield ""
    yield "NUMA nodes"
    for node in shown:
        is_cut = any(line.name == NOT_CAPTURED for line in node.lines)
        off = size(node.residual_error_bytes)
        rest = "" if is_cut else f", {size(node.residual_bytes)} uncounted (+- {off})"
        if node.is_gpu and not is_cut:
            rest = f", {size(node.residual_bytes)} its driver's (+- {off})"
        cpus = ", without CPUs" if node.has_cpus is False else ""
        cpus = ", memory of a GPU" if node.is_gpu else cpus
        free = sum(line.bytes for line in node.lines if line.name == "free")
        yield from paper.wrap(
            f"node {node.node}{cpus}: {size(node.total_bytes)}, {size(free)} free{rest}",
            "    ",
            "  ",
        )
        parts = [(_LETTERS.get(line.name, "+"), line.bytes) for line in node.lines]
        parts.append(("?", node.residual_bytes))
        parts.sort(key=lambda part: (part[0] == ".", -part[1]))
        narrow = Console(width=paper.width - 2, colour=paper.colour)
        yield "  " + whole_bar(parts, node.total_bytes, narrow)
    if found := imbalance(shown):
        yield from paper.wrap(_imbalance_words(found), "  ", "  ")


def _imbalance_words(found: Imbalance) -> str:
    short = [f"node {n.node} has {size(n.available_bytes or 0)} left" for n in found.short]
    other = f"node {found.other.node} has {size(found.other.available_bytes or 0)}"
    it = "it" if len(short) == 1 else "them"
    return (
        f"{', '.join(short)} while {other}: what is bound to {it} (numactl, cpuset.mems, a driver's"
        " own node) meets reclaim and OOM kills though the machine has memory."
    )


def _notes(notes: Sequence[str], paper: Console) -> Iterator[str]:
    if not notes:
        return
    yield ""
    yield "About this kernel"
    for note in notes:
        yield from paper.wrap(note, "    ", "  - ")
