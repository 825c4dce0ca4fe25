# SPDX-License-Identifier: Apache-2.0
"""Who held uncounted memory at a recorded moment: what the guard's ticks say of it, as the file
in which a watcher keeps its claims, so that the verbs find it where they find it live.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.claim import RESIDUAL
from seawall.blackbox.moments import Pass, chain
from seawall.blackbox.reader import Box
from seawall.guard.tick_facts import Group
from seawall.host.recording import Round, overlay_passes
from seawall.problems import BundleProblem
from seawall.readings.saved_claims import CLAIMS_MOST, PATH, SavedClaim, SavedClaims, document_of
from seawall.replay.tick import Tick
from seawall.replay.tick_decoder import TickDecoder

RINGS: Final = "packet rings counted by the kernel"
"""The one source of evidence that tells of what kind the memory is; as the watcher says it."""
OLD_MOST_SECONDS: Final = 30.0
"""A tick that is older than that says nothing of a pass; in peace there is one every 10 s."""


def with_claims(
    box: Box, passes: Sequence[Pass], until_unix_seconds: float = -math.inf
) -> list[Pass]:
    """Each pass, of one boot and by time, with what the last tick before it claims; the last one
    with that of the last tick until the moment that was asked for, which may come after it: a
    decision is taken on what its own tick heard.
    """
    if not passes:
        return []
    ends = [one.unix_seconds for one in passes]
    ends[-1] = max(ends[-1], min(until_unix_seconds, ends[-1] + OLD_MOST_SECONDS))
    begin = passes[0].unix_seconds
    newest = _newest_ticks(box, passes[0], ends, begin)
    if newest[0] is None:  # no key at or before the first pass could be read
        newest = _newest_ticks(box, passes[0], ends, begin - OLD_MOST_SECONDS)
    found, last = [], None
    for one, newer in zip(passes, newest, strict=True):
        last = newer or last
        is_known = last and one.unix_seconds - last.unix_seconds <= OLD_MOST_SECONDS
        found.append(_told(one, last) if last and is_known else one)
    return found


def _newest_ticks(
    box: Box, first: Pass, ends: Sequence[float], since_unix_seconds: float
) -> list[Tick | None]:
    """For each of ``ends`` the last tick between the one before it and itself; read from the last
    key before ``since_unix_seconds`` on, in a burst up to a minute of ticks.
    """
    newest: list[Tick | None] = [None] * len(ends)
    for tick in _ticks(box, first, since_unix_seconds, ends[-1]):
        place = bisect_left(ends, tick.unix_seconds)
        if place < len(ends):
            there = newest[place]
            newest[place] = max(there or tick, tick, key=lambda one: one.unix_seconds)
    return newest


def _ticks(box: Box, first: Pass, since: float, until_unix_seconds: float) -> Iterator[Tick]:
    """As written.  One at a time: minutes of hundreds of groups are hundreds of megabytes."""
    reader = TickDecoder()
    heads = [
        head for boot in box.boots() if boot.boot_id == first.boot_id for head in boot.heads
        if head.kind == "tick" and head.unix_seconds <= until_unix_seconds
    ]  # fmt: skip
    for _, body in chain(box, heads, since):
        try:
            yield from reader.take(body)
        except BundleProblem:
            continue  # until the next key


def _told(one: Pass, tick: Tick) -> Pass:
    holders = [group for group in tick.groups.values() if group.outside.most_bytes > 0]
    residual = tick.node.residual_bytes
    if not holders or residual is None:
        return one
    holders.sort(key=lambda group: -group.outside.likely_bytes)
    kept = SavedClaims(
        boot_id=one.boot_id, written_at_unix_seconds=tick.unix_seconds,
        base_residual_bytes=residual - sum(group.outside.likely_bytes for group in holders),
        residual_bytes=residual, blind="",
        claims=tuple(_claim(group, tick) for group in holders[:CLAIMS_MOST]),
    )  # fmt: skip
    told = Round(files={PATH: document_of(kept)})
    return one._replace(round=overlay_passes((one.round, told)))


def _claim(group: Group, tick: Tick) -> SavedClaim:
    """``folder`` is left open: the tick is of the time when that cgroup was there."""
    outside = group.outside
    is_ring = outside.sources == RINGS
    return SavedClaim(
        holder=group.name, workload=group.name, cgroup=group.path, folder=None, cgroup_inode=None,
        driver=None, kind="ring" if is_ring else "unknown",
        what="packet ring" if is_ring else outside.sources, within=RESIDUAL,
        bytes=outside.likely_bytes, least_bytes=outside.certain_bytes,
        most_bytes=outside.most_bytes, source=f"the guard's tick: {outside.sources}", stack=(),
        learned_at_unix_seconds=tick.unix_seconds,
    )  # fmt: skip
