"""What must hold of each row of ``acts.py``, and its table."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.faults.acts import FREEZE_SECONDS

Row = dict[str, Any]
KILLED_SECONDS = 1.0
"""The helper thaws whom a guard held that was killed."""
STOPPED_SECONDS = FREEZE_SECONDS + 1.0 + 0.5
"""Of one that stands: its own time, the margin of ``late_thaw``, and the helper's pause."""


def rows_of(path: Path) -> list[Row]:
    return list(json.loads(path.read_text()))


def faults_of(row: Row, slack_seconds: float) -> list[str]:
    """What does not hold; ``slack_seconds``: so much slower is this machine."""
    if "failed" in row:
        return [f"could not be tried: {row['failed']}"]
    bound = {"SIGKILL": KILLED_SECONDS, "SIGSTOP": STOPPED_SECONDS}.get(row["what"], 0.0)
    late, guard = row["thawed_seconds"], row["guard"]
    found = {
        "somebody stays frozen": bool(row["still_frozen"]) or late is None,
        f"thawed after {late} s": bound and late is not None and late > bound + slack_seconds,
        "an innocent was touched": row["innocents"] != 2 or row["innocent_named"],
        "the next guard has something left": bool(row["left_in_force"]),
        "an error escaped": guard is not None and guard["raised"],
        "what it changed stays in force": bool(row.get("in_force_of_living")),
        "its limit stays lowered": row["limit"] not in ("", "max"),
        "the helper stays": not row["aide_ended"],
        "it says killed, and somebody lives": _is_wrong(row),
    }
    return [words for words, is_so in found.items() if is_so]


def _is_wrong(row: Row) -> bool:
    outcomes = row["guard"]["outcomes"] if row["guard"] else []
    return bool(row["culprits"]) and any(
        o["step"] == "kill" and o["is_done"] and not o["left"] for o in outcomes
    )


def wrong(rows: Iterable[Row], slack_seconds: float = 1.0) -> list[str]:
    """A line for each that does not hold."""
    return [
        f"{row['act']}, {row['what']} at {row['call']} {row['number']}: {', '.join(found)}"
        f"\n    {json.dumps(row)}"
        for row in rows if (found := faults_of(row, slack_seconds))
    ]  # fmt: skip


def table(rows: Iterable[Row]) -> str:
    """Markdown: a line for each act and fault."""
    by: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.get("is_reached") and row["what"]:
            clock = ", and the wall clock jumps" if row.get("clock_seconds") else ""
            by[row["act"], row["what"] + clock].append(row)
    lines = [
        "| act | fault | at calls | held then | thawed after, most |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (act, what), of in sorted(by.items()):
        held = [row["thawed_seconds"] for row in of if row["was_frozen"]]
        most = f"{max(held):.2f} s" if held else "-"
        lines.append(f"| {act} | {what} | {len(of)} | {len(held)} | {most} |")
    return "\n".join(lines)
