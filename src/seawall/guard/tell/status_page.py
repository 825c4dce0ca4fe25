# SPDX-License-Identifier: Apache-2.0
"""The text of /run/seawall/status: for ``cat``, on a node that hardly answers any more.

24 lines, so the first are still on an 80x25 rescue console when the last are; each 79 columns
wide, ASCII.  The page is always as long: whoever reads it in two goes gets no tail of another
one.  First what matters most; what has no room is cut at the end of its own section, the lower
ones to one line before the upper ones, and none is left out.
"""

import time
from typing import Final

from seawall.guard.tell.plain import plain
from seawall.guard.tell.status_values import (
    NOT_PROVED,
    STALE_SECONDS,
    TOP,
    StatusValues,
    seconds_left,
)
from seawall.guard.tick_facts import Group, Node
from seawall.words import duration, percent, size

COLUMNS: Final = 79
LINES: Final = 24
PAGE_BYTES: Final = LINES * (COLUMNS + 1)
"""And no more: what is behind the last line would scroll the first ones off a console."""
_LABEL: Final = 11
_ROOM: Final = COLUMNS - _LABEL
_MORE: Final = "\t" + " " * (_LABEL - 1)
"""So a section's second line begins until the page is made: one that may be taken away."""
_STATES: Final = {
    "peace": "node is in peace",
    "near": "node comes NEAR its limit",
    "short": "node is SHORT OF MEMORY",
    "holding": "waits for memory to come back",
    "blind": "guard is BLIND",
    "stopped": "guard has STOPPED",
}
_WHY_LINES: Final = 4
"""The first ones tell how much was left, and for how long: who is guilty stands behind."""
_LATE_SECONDS: Final = 0.1
_WORDS_MOST: Final = 1200
_PATH_COLUMNS: Final = 44
"""Of a path, so that what is wrong with it stands beside it: cgroups of pods have 190 and more."""
_PATH_HEAD: Final = 16
"""Which tree it is of; which file and container stands at the end."""
_DAYS_SECONDS: Final = 7 * 86400


def page(shown: StatusValues) -> bytes:
    """All lines; the same number of bytes every time."""
    lines = [
        *_head(shown),
        *_memory(shown.node),
        *_table(shown.top),
        *_decisions(shown),
        *_labelled("watcher", f"{shown.watcher}; {_claims(shown.node)}", 2),
        *_labelled("black box", shown.blackbox, 2),
        *_labelled("beside it", "; ".join(shown.others) or "no other guard seen", 2),
        *_labelled("scope", " ".join(shown.scope) or "nothing", 1),
        *_labelled("config", f"{shown.config}; decisions in {shown.folder}/decisions.jsonl", 2),
    ]
    _take_away(lines, LINES - bool(shown.blind) - bool(shown.notes))
    room = LINES - len(lines) - bool(shown.notes)
    lines += _labelled("unseen", _with_short_paths(shown.blind), room)
    lines += _labelled("also", _with_short_paths(shown.notes), LINES - len(lines))
    lines += [""] * (LINES - len(lines))
    text = "".join([f"{line[:COLUMNS]:<{COLUMNS}}\n" for line in lines])
    return text.replace("\t", " ").encode("ascii")


def _take_away(lines: list[str], room: int) -> None:
    """Second lines, the lowest first, until the rest has ``room``."""
    for at in range(len(lines) - 1, 0, -1):
        if len(lines) > room and lines[at].startswith(_MORE):
            del lines[at]
            lines[at - 1] = f"{lines[at - 1][: COLUMNS - 4]} ..."


def _head(shown: StatusValues) -> list[str]:
    now = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(shown.unix_seconds))
    since = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(shown.since))
    state = _STATES.get(shown.state) or f"node: {plain(shown.state, 20)}"
    troubles = [f"observes only: {plain(shown.mode_why, 60)}"] if shown.mode_why else []
    troubles += [plain(words, 200) for words in shown.problems]
    return [
        f"seawall guard {plain(shown.mode, 10).upper()}  {state}  {now}",
        f"pid {shown.pid} since {since}; it hangs if the time above is {STALE_SECONDS} s old",
        *_folded(_can_kill(shown), COLUMNS, 2),
        *_folded(f"!! {'; '.join(troubles)}" if troubles else "", COLUMNS, 2),
    ]


def _can_kill(shown: StatusValues) -> str:
    words = plain(shown.can_kill or NOT_PROVED, 200)
    if shown.can_kill_is_proved:
        return words
    why = words.removeprefix("CANNOT KILL: ").removeprefix("can kill: ")
    if shown.mode != "enforce":
        return f"it only observes and kills nothing (self-test: {why})"
    return f"!! IT CANNOT KILL: {why} !!"


def _memory(node: Node) -> list[str]:
    if not node.is_seen:
        return _labelled("headroom", "not known: the node's memory could not be read", 2)
    return [
        *_labelled("headroom", f"{_room(node)}{_left(node)}", 2),
        *_labelled("uncounted", _residual(node), 2),
        *_labelled("signs", _signs(node), 2),
    ]


def _room(node: Node) -> str:
    swap = f" ({size(node.swap_bytes)} of it only in swap)" if node.swap_bytes else ""
    return f"{size(node.headroom_bytes)} of {size(node.total_bytes)}{swap}"


def _left(node: Node) -> str:
    left = seconds_left(node)
    if left is None:
        return ", not shrinking"
    pace = f"at {size(node.slope_bytes_per_second)}/s"
    if left > _DAYS_SECONDS:
        return f", lasts for more than a week {pace}"
    return f", gone in {duration(left)} {pace}"


def _residual(node: Node) -> str:
    if node.residual_bytes is None:
        return "not known: the watcher has not told it"
    words = size(node.residual_bytes)
    if node.residual_grown_bytes <= 0:
        return f"{words}, not grown over its base"
    words = f"{words}, grown by {size(node.residual_grown_bytes)}"
    if node.unexplained_growth_bytes > 0:
        words += f" ({size(node.unexplained_growth_bytes)} of it by nobody known)"
    if node.residual_slope_bytes_per_second >= 1 << 20:
        words += f", +{size(node.residual_slope_bytes_per_second)}/s"
    return words


def _signs(node: Node) -> str:
    mark = "under MIN" if node.is_min else "under LOW" if node.is_low else "over"
    swap = f"; {size(node.swap_used_bytes)} in swap" if node.swap_used_bytes else ""
    late = f"; woke {node.late_seconds:.1f} s late" if node.late_seconds >= _LATE_SECONDS else ""
    return (
        f"free {size(node.free_bytes)}, {mark} watermarks; {node.stalls_per_second:.0f} stalls/s; "
        f"protected stall {percent(node.protected_stall)}{swap}{late}"
    )


def _claims(node: Node) -> str:
    age = node.claims_seconds
    return "no claims" if age is None else f"claims {age:.0f} s old"


def _table(top: list[Group]) -> list[str]:
    if not top:
        return [_first("workloads", "none seen")]
    head = f"{'counted':>9} {'uncounted':>9} {'at most':>9} {'limit':>9}  who holds most uncounted"
    return [head, *[_row(group) for group in top[:TOP]]]


def _row(group: Group) -> str:
    outside = group.outside
    limit = "none" if group.limit_bytes is None else size(group.limit_bytes)
    total = group.charge_bytes + outside.certain_bytes
    over = "OVER " if group.limit_bytes is not None and total > group.limit_bytes else ""
    columns = (size(group.charge_bytes), size(outside.certain_bytes), size(outside.most_bytes))
    figures = " ".join([f"{column:>9}" for column in (*columns, limit)])
    return f"{figures}  {over}{_ended(group.name, COLUMNS - len(figures) - 2 - len(over))}"


def _ended(name: str, most: int) -> str:
    """The end of a name tells more than its beginning."""
    text = plain(name, 300)
    return text if len(text) <= most else "..." + text[len(text) - most + 3 :]


def _decisions(shown: StatusValues) -> list[str]:
    counts = shown.counts
    total = (
        f"decisions {counts['decisions']}, kills {counts['kills']}; came back "
        f"{size(counts['returned_bytes'])} of {size(counts['predicted_bytes'])} predicted"
    )
    last = shown.last
    if last is None:
        return [_first("decided", total)]
    at = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(last.unix_seconds))
    return [
        _first("decided", total),
        _first("last", f"{plain(last.decision, 24)}  {at}  {plain(last.trigger, 20)}: {last.how}"),
        *_labelled("", last.sentence, _WHY_LINES),
        *_labelled("", f"-> {last.result}" if last.result else "", 1),
    ]


def _first(label: str, words: str) -> str:
    return f"{label:<{_LABEL}}{words}"


def _labelled(label: str, words: str, lines: int) -> list[str]:
    folded = _folded(plain(words, _WORDS_MOST), _ROOM, lines)
    return [f"{_MORE}{line}" if i else _first(label, line) for i, line in enumerate(folded)]


def _with_short_paths(sentences: list[str]) -> str:
    """Each path that has more than its columns without its middle; status.json has all of it."""
    words = plain("; ".join(sentences), _WORDS_MOST)
    return " ".join(
        f"{word[:_PATH_HEAD]}...{word[len(word) - _PATH_COLUMNS + _PATH_HEAD + 3 :]}"
        if "/" in word and len(word) > _PATH_COLUMNS
        else word
        for word in words.split(" ")
    )


def _folded(words: str, width: int, lines: int) -> list[str]:
    """At most ``lines`` lines, broken between words where there are any; cut at the end."""
    folded: list[str] = []
    while words and len(folded) < lines:
        cut = len(words)
        if cut > width:
            cut = words.rfind(" ", width // 2, width + 1)
            cut = width if cut < 0 else cut
        folded.append(words[:cut])
        words = words[cut:].lstrip(" ")
    if words and folded:
        folded[-1] = f"{folded[-1][: width - 4]} ..."
    return folded
