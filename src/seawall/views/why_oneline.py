# SPDX-License-Identifier: Apache-2.0
"""``seawall why --oneline``: one line a node, for pdsh, clush and a message of the day.

``NODE CRITICAL|WARNING|INFO ID words | lately: words``; ``NODE OK``, or ``NODE UNKNOWN`` where
most rules could not see.  No colour, no newline, 120 characters or a little less.
"""

from collections.abc import Sequence
from typing import Final

from seawall.accounts.log_episodes.recent_events import RecentEvents
from seawall.findings.causes import Cause, causes
from seawall.findings.finding import Judged
from seawall.host.host import Unread
from seawall.views.terminal import Console, plain, shorten
from seawall.views.why_screen import clipped, named
from seawall.views.why_text import age_words

WIDTH: Final = 120
_NODE_WIDTH: Final = 40
_LATELY_WIDTH: Final = 50


def line(node: str, judged: Sequence[Judged], recent: RecentEvents | Unread | None) -> str:
    """The worst cause, or that there is none; then the last event."""
    start = shorten(plain(node).replace(" ", "_"), _NODE_WIDTH)
    found = causes(judged)
    words = _worst(found) if found else _none(judged)
    lately = _lately(recent)
    room = WIDTH - len(start) - 1 - len(lately)
    return f"{start} {clipped(words, Console(width=room), most=1)[0]}{lately}"


def _worst(found: Sequence[Cause]) -> str:
    cause = found[0]
    finding = cause.item.finding
    words = named(finding.brief.headline or finding.headline)
    if finding.workload and finding.workload not in words:
        words = f"{named(finding.workload)}: {words}"
    return f"{cause.severity.upper()} {cause.item.id} {words}"


def _none(judged: Sequence[Judged]) -> str:
    rules = {item.id for item in judged}
    blind = {item.id for item in judged if item.finding.verdict == "blind"}
    if len(blind) * 2 > len(rules):
        return f"UNKNOWN {len(blind)} of {len(rules)} rules could not see"
    return "OK nothing fires now" + (f", {len(blind)} rules could not see" if blind else "")


def _lately(recent: RecentEvents | Unread | None) -> str:
    if recent is None:
        return ""
    if isinstance(recent, Unread):
        return " | lately: not known"
    if not recent.events:
        return " | lately: not all could be read" if recent.unread else ""
    event = recent.events[0]
    words = f"{age_words(event, recent.now_unix_seconds)} {named(event.sentence)}"
    return f" | lately: {clipped(words, Console(width=_LATELY_WIDTH), most=1)[0]}"
