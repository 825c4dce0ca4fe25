# SPDX-License-Identifier: Apache-2.0
"""The last boot of a black box that is not the running one, as ``agent/last_death.py`` judges it.

Only its last quarter of an hour is unpacked, tick by tick: a box is hostile and a node has little
memory.
"""

import json
import os
import signal
from typing import Any, Final

from seawall.agent.culprits import Accusation, Culprit, accusation_of, culprit_of
from seawall.agent.guard_page import PageHolder
from seawall.agent.last_death import DeathTick, RecordedBoot, last_death
from seawall.agent.page_watch import boot_id_here
from seawall.blackbox.frame import FrameHead
from seawall.blackbox.moments import chain
from seawall.blackbox.reader import Boot, Box
from seawall.guard.tell.guard_sentences import STOPPED
from seawall.guard.tick_facts import Node
from seawall.own_process import be_ordinary
from seawall.problems import BundleProblem, UsageProblem
from seawall.proc.process_rights import keep_only
from seawall.replay.tick import Tick
from seawall.replay.tick_decoder import TickDecoder

BACK_SECONDS: Final = 900.0
LINES_MOST: Final = 2000
_TICKS_MOST: Final = 20_000
_HOLDERS_MOST: Final = 16
_READ_SECONDS: Final = 120


def main(words: list[str]) -> int:
    """The agent's child: ``last_death_of`` as JSON on stdout."""
    signal.alarm(_READ_SECONDS)  # nobody else may end it
    keep_only("agent")
    be_ordinary()
    data = memoryview(json.dumps(last_death_of(words[0])).encode())
    while data:
        data = data[os.write(1, data) :]
    return 0


def last_death_of(path: str) -> dict[str, Any]:
    """What stands in a NodeReport as ``report.lastDeath``, or ``problem``: why there is none."""
    try:
        boot = last_boot(Box.open(path), boot_id_here(), _booted())
    except UsageProblem as problem:
        return {"problem": str(problem)}
    return {"problem": "it holds no other boot"} if boot is None else last_death(boot)


def _booted() -> float | None:
    """When the running kernel began, Unix seconds by today's clock (/proc/stat btime)."""
    try:
        with open("/proc/stat", "rb") as file:
            rows = [line.split() for line in file if line.startswith(b"btime ")]
        return float(rows[0][1])
    except (OSError, ValueError, IndexError):
        return None


def last_boot(box: Box, running_boot_id: str, booted: float | None) -> RecordedBoot | None:
    """None: the box holds no other boot.  ``booted``: when the running one began, Unix seconds."""
    others = [boot for boot in box.boots() if boot.boot_id != running_boot_id]
    if not others:
        return None
    boot = others[-1]
    # Lines are written later than what they are about, passes and ticks are not.
    end = max(boot.heads, key=lambda head: head.monotonic_seconds)
    since = end.monotonic_seconds - BACK_SECONDS
    ticks, holders = _ticks(box, boot, since)
    accusations, kernel, stopped = _lines(box, boot, since)
    if stopped is not None and ticks and ticks[-1].seconds > stopped + 1:
        stopped = None  # another guard went on
    return RecordedBoot(
        boot.boot_id, ticks, end.unix_seconds, end.monotonic_seconds, stopped, accusations, kernel,
        holders, booted,
    )  # fmt: skip


def _ticks(box: Box, boot: Boot, since: float) -> tuple[list[DeathTick], list[Culprit]]:
    heads = [head for head in boot.heads if head.kind == "tick"]
    late = [head for head in heads if head.monotonic_seconds >= since]
    if not late:
        return [], []
    reader = TickDecoder()
    found: dict[int, DeathTick] = {}
    last: Tick | None = None
    for _, body in chain(box, heads, late[0].unix_seconds):
        try:
            ticks = reader.take(body)
        except BundleProblem:
            continue
        for tick in ticks:
            if tick.node.seconds >= since and len(found) < _TICKS_MOST:
                found[tick.number] = _tick(tick)
                last = tick if last is None or tick.number >= last.number else last
    rows = sorted(found.values(), key=lambda tick: tick.seconds)
    return rows, [] if last is None else _holders(last)


def _tick(tick: Tick) -> DeathTick:
    node: Node = tick.node
    return DeathTick(
        tick.unix_seconds, node.seconds, tick.state, node.total_bytes,
        node.headroom_bytes if node.is_seen else None, node.residual_bytes,
        node.residual_grown_bytes, node.protected_stall, node.kernel_kills,
    )  # fmt: skip


def _holders(tick: Tick) -> list[Culprit]:
    groups = [group for group in tick.groups.values() if group.outside.most_bytes > 0]
    groups.sort(key=lambda group: -group.outside.most_bytes)
    rows = [
        PageHolder(
            group.name, group.path, group.charge_bytes, group.outside.certain_bytes,
            group.outside.most_bytes,
        )
        for group in groups[:_HOLDERS_MOST]
    ]  # fmt: skip
    return [one for row in rows if (one := culprit_of(row, is_proved=False))]


def _lines(
    box: Box, boot: Boot, since: float
) -> tuple[list[Accusation], list[tuple[float, str]], float | None]:
    heads = [h for h in boot.heads if h.kind == "line" and h.monotonic_seconds >= since]
    accusations: list[Accusation] = []
    kernel: list[tuple[float, str]] = []
    stopped: float | None = None
    for head in heads[-LINES_MOST:]:
        line, text = _line(box, head)
        if text:
            kernel.append((head.unix_seconds, text))
        elif said := accusation_of(line.encode("utf-8", "replace")):
            accusations.append(said)
        elif _is_stop(line):
            stopped = head.monotonic_seconds
    return accusations, kernel, stopped


def _line(box: Box, head: FrameHead) -> tuple[str, str]:
    """A line of the journal, and one of the kernel's log; one of them is empty."""
    try:
        body = box.frame(head).body
    except BundleProblem:
        return "", ""
    line, kernel = body.get("line"), body.get("kernel")
    return line if isinstance(line, str) else "", kernel if isinstance(kernel, str) else ""


def _is_stop(line: str) -> bool:
    if '"kind":"event"' not in line[:400]:
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("sentence") == STOPPED
