# SPDX-License-Identifier: Apache-2.0
"""What a round has seen and done, as the JSON that ``/run/seawall/pins`` and the verb hold."""

from typing import Any, Final, NamedTuple

from seawall.pinner import program_choice
from seawall.pinner.holding import LockedRanges
from seawall.pinner.intervals import common, total
from seawall.pinner.pin_plan import SHARED, File, PinPlan
from seawall.pinner.pin_request import PinRequest
from seawall.pinner.pinner_readings import PinnerReadings
from seawall.version import VERSION

SCHEMA: Final = "seawall.pins-page/1"
FILES_TOLD: Final = 500
REFUSED_TOLD: Final = 100
PROGRAMS_TOLD: Final = 500
_SUMMED: Final = ("mapped_bytes", "before_bytes", "would_bytes", "pinned_bytes", "refused_bytes")


class PinsState(NamedTuple):
    """What one round of the pinner asked, saw, planned and holds."""

    request: PinRequest
    look: PinnerReadings
    plan: PinPlan
    programs: list[program_choice.ChosenProgram]
    before: dict[tuple[str, int], int]
    holding: LockedRanges | None
    budget_bytes: int
    total_bytes: int


def resident_bytes(file: File) -> int:
    """Bytes of the file's mapped text that are in memory now."""
    return total(common(file.mapped, file.resident))


def document(seen: PinsState) -> dict[str, Any]:
    """Programs, files, what was refused, what is left; bytes."""
    files = sorted(seen.look.files.values(), key=lambda file: (file.rank, file.row, file.name))
    rows = [_file(seen, file) for file in files]
    held = seen.holding.bytes if seen.holding else 0
    return {
        "schema": SCHEMA,
        "tool_version": VERSION,
        "pin": list(seen.request.pin),
        "pin_at_most_bytes": seen.request.pin_at_most_bytes,
        "total_bytes": seen.total_bytes,
        "budget_bytes": seen.budget_bytes,
        "would_bytes": seen.plan.bytes,
        "pinned_bytes": held,
        "left_bytes": seen.budget_bytes - (held if seen.holding else seen.plan.bytes),
        "is_pinning": seen.holding is not None,
        "programs": _programs(seen, rows)[:PROGRAMS_TOLD],
        "files": rows[:FILES_TOLD],
        "files_left_out": max(0, len(files) - FILES_TOLD),
        "refused": _refused(seen, files)[:REFUSED_TOLD],
        "names_nobody": program_choice.missing(
            seen.request.pin, seen.programs, seen.look.found_words
        ),
    }


def _programs(seen: PinsState, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row each, most important first, the libraries of several last."""
    rows: dict[str, dict[str, Any]] = {}
    pids: dict[str, set[int]] = {}
    for one in seen.programs:
        rows.setdefault(one.program, _empty(one.program, one.word))
        pids.setdefault(one.program, set()).add(one.pid)
    for file in files:
        name = file["program"]
        row = rows.setdefault(name, _empty(name, "" if name == SHARED else "node"))
        row["files"] += 1
        for number in _SUMMED:
            row[number] += file[number]
    for name, row in rows.items():
        row["processes"] = len(pids.get(name, ()))
    return sorted(rows.values(), key=lambda row: row["name"] == SHARED)


def _empty(name: str, word: str) -> dict[str, Any]:
    return {"name": name, "word": word, **dict.fromkeys(("files", *_SUMMED, "processes"), 0)}


def _file(seen: PinsState, file: File) -> dict[str, Any]:
    holding = seen.holding
    return {
        "name": file.name, "device": file.device, "inode": file.inode, "program": file.row,
        "processes": len(file.pids),
        "mapped_bytes": total(file.mapped),
        "before_bytes": min(seen.before.get(file.key, 0), total(file.mapped)),
        "resident_bytes": resident_bytes(file),
        "would_bytes": total(seen.plan.ranges.get(file.key, [])),
        "pinned_bytes": total(holding.of(file.key)) if holding else 0,
        "pinned_resident_bytes": holding.resident(file.key) if holding else 0,
        "refused_bytes": sum(count for _, count in seen.plan.refused.get(file.key, [])),
    }  # fmt: skip


def _refused(seen: PinsState, files: list[File]) -> list[dict[str, Any]]:
    """Whom it could not look at first, then what did not fit; the largest first."""
    rows: list[dict[str, Any]] = [
        {"what": f"{one.program} (pid {one.pid})", "why": why, "bytes": None}
        for one, why in seen.look.silent
    ]
    rows += [{"what": file.name, "why": file.why, "bytes": None} for file in files if file.why]
    left: list[dict[str, Any]] = [
        {"what": file.name, "why": why, "bytes": count}
        for file in files for why, count in seen.plan.refused.get(file.key, [])
    ]  # fmt: skip
    return [*rows, *sorted(left, key=lambda row: -(row["bytes"] or 0))]
