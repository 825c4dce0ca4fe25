# SPDX-License-Identifier: Apache-2.0
"""``seawall numbers`` as text: what it holds, what each tool makes of it, and why.

Tools that show the same number by the same formula share a row: that is most of the answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.cgroup_memory.memory_numbers import working_set
from seawall.accounts.cgroup_memory.memory_parts import LETTERS
from seawall.accounts.numbers.tool_numbers import PROMETHEUS, ToolNumber
from seawall.accounts.numbers.tool_numbers_node import EXPORTER
from seawall.readings.reading import Unlimited
from seawall.views.memory_text import whole_bar
from seawall.views.numbers_page import NodePage, WorkloadPage
from seawall.views.numbers_words import (
    alert,
    lags,
    no_alert,
    node_alert,
    node_left,
    node_why,
    of_limit,
    unread_limit,
    unwritten,
    whose_limit,
    why,
)
from seawall.views.slurm_words import job_words
from seawall.views.terminal import Console
from seawall.words import count, percent, size

_INDENT: Final = " " * 34
_NODE_INDENT: Final = " " * 17
_MEANINGS: Final = {
    "A": "the programs' own: goes when they end, or to swap",
    "I": "page cache, used once: dropped first",
    "F": "page cache, used again: dropped after that",
    "T": "cannot be dropped; goes with its file, or to swap",
    "K": "slab, page tables, stacks; reserves; locked files",
}


def lines(page: WorkloadPage | NodePage, paper: Console, *, exact: bool = False) -> Iterator[str]:
    """Everything between the heading and "Could not see"; ``exact`` prints bytes."""
    if isinstance(page, NodePage):
        yield from _node(page, paper, exact=exact)
        return
    yield from _summary(page, paper)
    yield ""
    yield from _parts(page, paper)
    yield ""
    yield from _table(page, paper, exact=exact)
    yield from _containers(page, paper)
    yield ""
    yield paper.paint("Why they differ", "bold")
    for words in why(page):
        yield from paper.wrap(words, "    ", "  - ")
    yield from _alert(page, paper)


def _summary(page: WorkloadPage, paper: Console) -> Iterator[str]:
    usage = page.group.memcg.usage or 0
    words = f"{page.name}: {size(usage)} in use"
    told, unread = of_limit(usage, page), unread_limit(page)
    if unread:
        words += f"; {unread}"
        words += f". It is at most {told}" if told else ""
    elif told:
        words += f", {told}"
    else:
        words += "; no limit of its own or above it"
    yield from paper.wrap(words + _cache_words(page, usage) + ".")
    if page.group.workload is not None and (told := job_words(page.group.workload)):
        yield from paper.wrap(f"{told}. {page.group.path}")


def _cache_words(page: WorkloadPage, usage: int) -> str:
    cache = page.parts.page_cache
    if cache is None or not usage:
        return ""
    share = percent(min(cache / usage, 1))
    words = f". {size(min(cache, usage))} ({share}) is page cache that can be dropped"
    if waits := unwritten(page):
        words += f", of which {size(min(waits, usage))} must be written first"
    if lags(page):
        words += f"; at least one counter lags ({size(cache)} of page cache is counted)"
    return words


def _parts(page: WorkloadPage, paper: Console) -> Iterator[str]:
    rows = [(letter, name, held) for letter, name, held in page.parts.rows() if held is not None]
    total = sum(held for _, _, held in rows)
    if total:
        yield whole_bar([(letter, held) for letter, _, held in rows], total, paper)
    for letter, name, held in page.parts.rows():
        shown = "not told" if held is None else size(held)
        about = "cannot be dropped; cache less the file lists" if _is_guess(page, letter) else ""
        head = f"{letter} {shown:>9}  {name:<17}"
        yield head + paper.paint(about or _MEANINGS[letter], "dim")


def _is_guess(page: WorkloadPage, letter: str) -> bool:
    return letter == "T" and page.parts.shmem_is_estimate and page.parts.shmem is not None


def _table(page: WorkloadPage, paper: Console, *, exact: bool) -> Iterator[str]:
    head = f"{'SHOWS':>8}  {'SHARE':>5}  {'LEFT':>8}  {'HOLDS':<5}  TOOL"
    yield paper.paint(head, "dim")
    for group in _grouped(page.numbers):
        shown = group[0].bytes
        share, left = "", ""
        if page.limit:
            share = percent(shown / page.limit)
            left = size(max(page.limit - shown, 0))
        first = f"{size(shown):>8}  {share:>5}  {left:>8}  {_mask(group[0].letters)}  "
        yield from _named(group, first, _INDENT, paper)
        yield from _filled(group, _INDENT, paper, exact=exact)
    for times in page.counts:
        first = f"{count(times.count):>8} times".ljust(len(_INDENT))
        words = f"{times.tool} {times.name} ({times.formula})"
        yield from paper.wrap(words, _INDENT, first)
    words = "HOLDS: the letters above; a small one is there in part."
    if page.limit:
        lower = f" ({unread_limit(page)}, and may be lower)" if page.limits_unread else ""
        words = f"SHARE and LEFT are of {whose_limit(page)}, {size(page.limit)}{lower}. {words}"
    yield from (paper.paint(line, "dim") for line in paper.wrap(words))
    if page.missing:
        yield from paper.wrap(
            f"Not shown, for a file could not be read: {'; '.join(page.missing)}."
        )


def _mask(letters: str) -> str:
    """``A.FTK``: one place for each part."""
    return "".join(
        mark if mark in letters else mark.lower() if mark.lower() in letters else "."
        for mark in LETTERS
    )


def _grouped(numbers: Iterable[ToolNumber]) -> list[list[ToolNumber]]:
    """Largest first; what the same counters give the same sum of stands together."""
    found: dict[tuple[object, ...], list[ToolNumber]] = {}
    for number in numbers:
        parts = tuple((part.name, part.sign) for part in number.inputs)
        found.setdefault((number.bytes, parts), []).append(number)
    return sorted(found.values(), key=lambda group: -group[0].bytes)


def _named(group: Sequence[ToolNumber], first: str, indent: str, paper: Console) -> Iterator[str]:
    by_tool: dict[str, list[str]] = {}
    for number in group:
        is_metric = number.tool in (PROMETHEUS, EXPORTER, "kernel")
        note = number.note and (f" ({number.note})" if is_metric else f"; {number.note}")
        by_tool.setdefault(number.tool, []).append(number.name + note)
    words = []
    for tool, names in by_tool.items():
        if tool in (PROMETHEUS, EXPORTER, "kernel"):
            words += names
        else:
            words.append(f"{tool} ({', '.join(names)})")
    yield from paper.wrap("; ".join(words), indent, first)


def _filled(
    group: Sequence[ToolNumber], indent: str, paper: Console, *, exact: bool
) -> Iterator[str]:
    """The formula with this moment's values in it; bare where it is one counter, and not at
    all where the name says it.
    """
    number = group[0]
    if len(number.inputs) == 1 and not exact:
        if any(one.formula in one.name for one in group):
            return
        words = number.formula
    else:
        shown = (
            f" {'+' if part.sign > 0 else '-'} {part.name} "
            + (f"{part.bytes:,}" if exact else size(part.bytes))
            for part in number.inputs
        )
        words = "".join(shown).removeprefix(" + ")
    for line in paper.wrap(f"= {words}", indent + "  ", indent):
        yield paper.paint(line, "dim")


def _containers(page: WorkloadPage, paper: Console) -> Iterator[str]:
    if not page.containers:
        return
    yield ""
    rows = [_container_row(group) for group in page.containers]
    yield from paper.table(["IN THE POD", "USAGE", "WORKING SET", "RSS", "LIMIT"], rows)
    usage = page.group.memcg.usage
    known = [group.memcg.usage for group in page.containers]
    if usage is not None and None not in known:
        more = usage - sum(part or 0 for part in known)
        if more > page.stock_bytes:
            yield from paper.wrap(
                f"{size(more)} more is charged to the pod itself, such as removed containers and"
                " tmpfs that outlived the one who wrote it."
            )
        elif more < -page.stock_bytes:
            yield from paper.wrap(
                f"The containers have {size(-more)} more than their pod: the counters were read"
                " at different moments."
            )


def _container_row(group: MemoryGroup) -> list[str]:
    memcg = group.memcg
    name = group.name
    if group.workload is not None and group.workload.container:
        name = group.workload.container
    cells = [memcg.usage, working_set(memcg), memcg.anon]
    limit = "none" if isinstance(memcg.limit, Unlimited) else group.limit
    if not isinstance(limit, str):
        limit = "?" if limit is None else size(limit)
    return [name, *("?" if cell is None else size(cell) for cell in cells), limit]


def _alert(page: WorkloadPage, paper: Console) -> Iterator[str]:
    best = alert(page)
    yield ""
    if best is None:
        yield from paper.wrap(no_alert(page))
        return
    yield paper.paint("Alert on", "bold")
    for line in paper.wrap(best.metric, "    ", "  "):
        yield paper.paint(line, "good")
    share = of_limit(best.bytes, page)
    words = f"{size(best.bytes)}{f', {share}' if share else ''}: {best.why}."
    yield from paper.wrap(words, "  ", "  ")
    if best.fallback:
        words = f"But {best.needs}; without them alert on {best.fallback}"
        yield from paper.wrap(f"{words}, {size(best.fallback_bytes)}.", "  ", "  ")
    yield from paper.wrap("Not on usage: page cache alone fills it up to any limit.", "  ", "  ")


def _node(page: NodePage, paper: Console, *, exact: bool) -> Iterator[str]:
    total = page.meminfo.mem_total
    yield from paper.wrap(node_left(page))
    yield ""
    yield paper.paint(f"{'SHOWS':>8}  {'SHARE':>5}  TOOL", "dim")
    for group in _grouped(page.numbers):
        share = percent(group[0].bytes / total) if total else ""
        yield from _named(group, f"{size(group[0].bytes):>8}  {share:>5}  ", _NODE_INDENT, paper)
        yield from _filled(group, _NODE_INDENT, paper, exact=exact)
    yield ""
    if sentences := list(node_why(page)):
        yield paper.paint("The kubelet and the kernel", "bold")
        for sentence in sentences:
            yield from paper.wrap(sentence, "    ", "  - ")
        yield ""
    if (best := node_alert(page)) is not None:
        yield from paper.wrap(f"Alert on {best.metric}: {best.why}.")
