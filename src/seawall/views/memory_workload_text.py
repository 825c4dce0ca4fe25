# SPDX-License-Identifier: Apache-2.0
"""``seawall memory WORKLOAD`` as text: what it is charged with, what it holds besides, its room."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.cgroup_memory.memory_numbers import held_bytes
from seawall.accounts.pods.pod_danger import danger_of
from seawall.accounts.pods.pod_table import PodKills, PodRow, Room
from seawall.host.host import Unread
from seawall.views.claims_text import listed, suspect_name
from seawall.views.memory_workload_page import WorkloadMemoryPage
from seawall.views.pods_text import danger_words, kill_words
from seawall.views.terminal import Console, plain, shorten
from seawall.words import size

_CLAIMS_SHOWN: Final = 3
_SUSPECTS_SHOWN: Final = 2
_AMOUNT_WIDTH: Final = 10


def lines(page: WorkloadMemoryPage, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    row = page.row
    name = shorten(plain(page.workload.name), paper.width)
    yield paper.paint(name, "bold")
    if row is None:
        yield from paper.wrap("Its memory is not counted here, or could not be read.", "  ", "  ")
        yield from _node(page, paper)
        return
    if danger := danger_of(row):
        words = f"{danger.level.upper()}: {danger_words(row, danger)}"
        yield from (paper.paint(x, danger.level) for x in paper.wrap(words, "    ", "  "))
    yield from paper.wrap(_charged(row), "    ", "  ")
    yield from paper.wrap(_room(page, row), "    ", "  ")
    yield from paper.wrap(_kills(row), "    ", "  ")
    yield from _node(page, paper)
    yield ""
    yield paper.paint("Charged to it, by kind", "bold")
    for amount, kind in _kinds(page, row):
        words = f"  {'?' if amount is None else size(amount):>{_AMOUNT_WIDTH}}  {kind}"
        yield shorten(words, paper.width)
    yield ""
    yield from _uncounted(page, row, paper)


def _charged(row: PodRow) -> str:
    charge, kept = row.whole.charge, held_bytes(row.memcg)
    if charge is None:
        return "what it is charged with could not be read"
    own = f"of a limit of {size(row.limit)}" if isinstance(row.limit, int) else (
        "and its limit could not be read" if row.limit is None else "without a limit of its own"
    )  # fmt: skip
    dropped = "" if kept is None else f"; {size(kept)} of it cannot be dropped"
    return f"{size(charge)} charged {own}{dropped}"


def _room(page: WorkloadMemoryPage, row: PodRow) -> str:
    room = row.room
    if room is None:
        return "how much is left to its limit could not be read"
    if not isinstance(room, Room):
        return "no limit above it either: only the node's memory bounds it"
    whose = "its limit" if room.cgroup == row.workload.cgroup else f"the limit of {page.limit_name}"
    left = f"{size(max(room.distance, 0))} left to {whose}"
    if room.cgroup != row.workload.cgroup:
        left += f" of {size(room.limit)}"
    if room.grows - room.distance < 1 << 20:
        return left
    return f"{left}, {size(max(room.grows, 0))} once cache is dropped"


def _kills(row: PodRow) -> str:
    kills = row.kills or PodKills(counted=row.oom_kills)
    if kills.total:
        return f"{kill_words(row)}: seawall oom explain"
    if kills.counted is None:
        return "OOM kills are not counted here"
    gone = "" if kills.counts_gone else "; in cgroups below it that are gone: not known"
    return f"no OOM kill counted since it began{gone}"


def _node(page: WorkloadMemoryPage, paper: Console) -> Iterator[str]:
    """Its shortage explains what no limit of the workload does."""
    headroom = page.headroom
    if isinstance(headroom, Unread):
        words = f"the node: not known, {headroom.path}: {headroom.detail or headroom.why}"
        yield from paper.wrap(words, "    ", "  ")
        return
    words = f"the node has {size(headroom.bytes)} of {size(headroom.total_bytes)} left"
    if page.is_stopped_by_node:
        words += ": it runs out before any limit of this workload does: seawall why"
    elif page.is_node_short:
        words += " and is short too: seawall why"
    for line in paper.wrap(words, "    ", "  "):
        yield paper.paint(line, "critical") if page.is_node_short else line


def _kinds(page: WorkloadMemoryPage, row: PodRow) -> Iterator[tuple[int | None, str]]:
    """What the counters tell; ``?`` for what this kernel does not."""
    parts = page.parts
    if parts is None:
        return
    yield parts.anon, "anonymous"
    dirty = f", {size(row.whole.dirty)} of it waits to be written" if row.whole.dirty else ""
    yield parts.page_cache, f"file: page cache{dirty}"
    estimate = " (estimate)" if parts.shmem_is_estimate else ""
    yield parts.shmem, f"shmem: tmpfs and shared memory{estimate}"
    yield parts.kernel, "kernel: slab, stacks, page tables"
    if row.memcg.version == 2:
        yield page.socket_bytes, "sockets"
    if page.rest_bytes is None or page.rest_bytes:
        yield page.rest_bytes, "rest: locked file pages, charges held in reserve"
    swap_limit = row.memcg.swap_limit
    limit = f", of a limit of {size(swap_limit)}" if isinstance(swap_limit, int) else ""
    yield parts.swap, f"swap, beside the charge{limit}"


def _uncounted(page: WorkloadMemoryPage, row: PodRow, paper: Console) -> Iterator[str]:
    """What it holds and no cgroup is charged with."""
    whole = row.whole
    if page.claims:
        likely = size(whole.uncounted or 0)
        together = "" if whole.shadow_charge is None else (
            f": {size(whole.shadow_charge)} with its charge"
        )  # fmt: skip
        yield paper.paint(f"Uncounted memory of it: {likely}{together}", "bold")
        yield from listed(page.claims, _CLAIMS_SHOWN, 1, paper)
    elif whole.uncounted is None:
        yield "Uncounted memory of it: not known, for not every source could be asked."
    else:
        yield "Uncounted memory of it: none seen."
    for suspect in page.suspects[:_SUSPECTS_SHOWN]:
        words = f"suspected, not proved: {suspect_name(suspect)}: {suspect.why}"
        yield from paper.wrap(words, "    ", "  ")
