# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox export``: a moment and the time before it, as a bundle."""

import io
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from seawall.blackbox.moments import BACK_SECONDS, Pass, boot_at, choose, in_order, read_passes
from seawall.blackbox.reader import Box
from seawall.blackbox.record_times import rfc3339_of
from seawall.cli.console import terminal_columns
from seawall.cli.output_file import FOLDER, check_output, write_whole
from seawall.host.archive import MEMBERS_LIMIT, TOTAL_LIMIT_BYTES
from seawall.host.bundle import ROUNDS_LIMIT
from seawall.host.bundle_writer import write_bundle
from seawall.host.host import JSON
from seawall.problems import UsageProblem
from seawall.sources.box_claims import with_claims
from seawall.sources.box_lines import WEIGHTY, lines_between, note
from seawall.sources.box_source import (
    MANIFEST_KEY,
    BoxRequest,
    box_head,
    box_time,
    manifest_passes,
    nothing_before,
    span_of,
)
from seawall.sources.source import NOTE_MOST
from seawall.version import VERSION
from seawall.views.blackbox_page import BoxEvent
from seawall.views.document import render
from seawall.views.documents.bundle_documents import EXPORT, WrittenBundle

WHOLES_MOST: Final = 3
"""Each is thousands of files; between them the light ones show how the node changed."""
_NOTES_MOST: Final = 18
"""Two of its own come with whoever reads it."""


def run(arguments: Namespace) -> int:
    """Write it, and say where; the exit status."""
    _check(arguments)
    box = Box.open(arguments.file)
    until = box_time(box, arguments.at, span_of(box))
    passes = with_claims(box, chosen(_passes(box, until, arguments.seconds)))
    top = box_head("blackbox-export", box, until)
    manifest = _manifest(box, passes, top["host"])
    packed = io.BytesIO()
    write_bundle([one.round for one in passes], manifest, packed)
    if arguments.output == "-":
        sys.stdout.buffer.write(packed.getvalue())
        sys.stdout.buffer.flush()
        return 0
    path = arguments.output or _new_name(top["host"].get("node"), passes[-1].unix_seconds)
    write_whole(path, packed)
    size = len(packed.getbuffer())
    seconds = passes[-1].monotonic_seconds - passes[0].monotonic_seconds
    words = f"{size / 2**20:.1f} MiB, {len(passes)} passes of {seconds:.0f} s"
    sys.stderr.write(f"seawall blackbox export: {words}\n")
    if arguments.json:
        top = {**top, "window_seconds": round(seconds, 3)}
        print(render(EXPORT.of(top, WrittenBundle(path, size, len(passes)))))
    else:
        print(path)
    return 0


def _check(arguments: Namespace) -> None:
    """UsageProblem, before anything is read."""
    if arguments.output != "-":
        check_output(arguments.output)
    elif arguments.json:
        raise UsageProblem("-o - and --json both want stdout; give -o FILE")
    elif terminal_columns() is not None:
        raise UsageProblem("a bundle is no text: -o FILE, or redirect stdout to a file")


def _passes(box: Box, until: float, seconds: float) -> list[Pass]:
    """By time: those that were asked for, and before them what their first moment needs."""
    since = until - seconds
    found = _read(box, since, until)
    if not found:
        raise nothing_before(BoxRequest(until, f"the black box {box.path}"))
    needed = [one for one in found if one.unix_seconds > since] or found[-1:]
    needed += [one for one in found if one.is_whole and one.unix_seconds <= since][-1:]
    needed += choose(found).whole or ()
    first = min(one.monotonic_seconds for one in needed)
    return [one for one in found if one.monotonic_seconds >= first]


def _read(box: Box, since: float, until: float) -> list[Pass]:
    """As far back as a whole pass before ``since`` lies, if there is one."""
    boot = boot_at(box, until)
    found: list[Pass] = []
    if boot is None:
        return found
    for back in BACK_SECONDS:
        found = in_order(read_passes(box, boot, since - back, until))
        has_base = any(one.is_whole and one.unix_seconds <= since for one in found)
        if has_base and choose(found).whole:
            break
    return found


def chosen(passes: Sequence[Pass]) -> list[Pass]:
    """As many as a bundle takes, spread over the time; what the last moment needs is among them."""
    moments = choose(passes)
    middles = filter(None, (moments.whole_middle, moments.near_middle))
    needed = [passes[0], *(moments.whole or ()), *(moments.near or ()), *middles, moments.now]
    wholes = WHOLES_MOST
    while True:
        kept = {id(one) for one in needed}
        kept |= {id(one) for one in _spread([p for p in passes if p.is_whole], wholes)}
        light = [one for one in passes if not one.is_whole]
        kept |= {id(one) for one in _spread(light, ROUNDS_LIMIT - len(kept))}
        found = [one for one in passes if id(one) in kept]
        if wholes == 0 or _fits(found):
            return found
        wholes //= 2


def _spread(passes: Sequence[Pass], most: int) -> list[Pass]:
    """Evenly by their count; the first and the last are among them."""
    if len(passes) <= most:
        return list(passes)
    if most < 2:
        return []
    step = (len(passes) - 1) / (most - 1)
    return [passes[round(number * step)] for number in range(most)]


def _fits(passes: Sequence[Pass]) -> bool:
    """Within half of what a bundle may hold, should nothing be the same in two passes."""
    texts = [data for one in passes for data in one.round.files.values() if isinstance(data, bytes)]
    return len(texts) < MEMBERS_LIMIT // 2 and sum(map(len, texts)) < TOTAL_LIMIT_BYTES // 2


def _manifest(box: Box, passes: Sequence[Pass], host: dict[str, JSON]) -> dict[str, JSON]:
    first, last = passes[0], passes[-1]
    lines = lines_between(box, first.unix_seconds, last.unix_seconds + 1)
    told = [line for line in lines if line.boot_id == last.boot_id]
    weighty = [line for line in told if line.kind in WEIGHTY] or told
    ticks = [h.tick for h in box.heads if h.unix_seconds <= last.unix_seconds]
    return {
        "tool_version": VERSION,
        "taken_at": rfc3339_of(last.unix_seconds),
        "node": host.get("node"),
        "kernel": host.get("kernel"),
        "with_cmdline": False,
        "notes": [_note(line) for line in weighty[-_NOTES_MOST:]],
        MANIFEST_KEY: {"passes": manifest_passes(passes), "frame": max(ticks, default=0)},
    }


def _note(line: BoxEvent) -> str:
    frame = f" (frame {line.tick})" if line.tick else ""
    return f"{note(line)}{frame}"[:NOTE_MOST]


def _new_name(node: JSON, unix_seconds: float) -> str:
    """On a tmpfs: the node's disk may be what is stuck."""
    words = node if isinstance(node, str) and node else "node"
    safe = "".join(char if char.isalnum() or char in "-." else "-" for char in words)[:64]
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(unix_seconds))
    return f"{FOLDER}/{safe}-{moment}.blackbox.bundle"
