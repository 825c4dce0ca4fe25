# SPDX-License-Identifier: Apache-2.0
"""The guard's own decisions as events: done, or what it would have done."""

import json
from collections.abc import Iterable, Iterator

from seawall.accounts.recent_events import RecentEvent
from seawall.iso_time import iso_datetime

_SENTENCE_MOST = 70
REPORT = "seawall guard report"


def guard_events(lines: Iterable[bytes], source: str) -> Iterator[RecentEvent]:
    """From lines of decisions.jsonl; what is no verdict is skipped."""
    for line in lines:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        match told:
            case {"kind": "verdict", "sentence": str(sentence), "at": str(at)}:
                name = told.get("decision")
                if told.get("mode") == "observe":
                    sentence = f"(observing only) {sentence}"
                yield guard_event(
                    _unix(at), sentence, name if isinstance(name, str) else "", source
                )


def guard_event(
    unix_seconds: float | None, sentence: str, decision: str, source: str
) -> RecentEvent:
    """decision: its id; empty: none."""
    is_act = sentence.startswith(("killed", "froze", "would have", "asked to end", "lowered"))
    words = f"the guard {sentence}" if is_act else f"guard: {sentence}"
    short = words if len(words) <= _SENTENCE_MOST else words[: _SENTENCE_MOST - 2].rstrip() + ".."
    more = f"seawall why --from /var/lib/seawall/blackbox --at {decision}" if decision else REPORT
    return RecentEvent(
        kind="guard_decision", first_at_unix_seconds=unix_seconds,
        last_at_unix_seconds=unix_seconds, sentence=short, details=(sentence[:1000],),
        more=REPORT if not decision else more, source=source,
    )  # fmt: skip


def _unix(text: str) -> float | None:
    """RFC 3339 in UTC, as the guard writes it."""
    try:
        return iso_datetime(text).timestamp()
    except ValueError:
        return None
