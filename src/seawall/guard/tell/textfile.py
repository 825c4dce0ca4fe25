# SPDX-License-Identifier: Apache-2.0
"""Metrics for the node exporter's textfile collector, in Prometheus' text format 0.0.4.

Rendered by the aide from what the guard sends, written beside and renamed over, so that the
collector never reads half of it.  Whoever writes has 20 s for it: what lies beside for longer is of
one that was killed.

The unit's own view of the file system (ProtectSystem=strict) has for good only those folders that
were there when it started: one that came later is written as the host's first process sees it.
"""

import errno
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from seawall.replaced_file import parts_of, remove, replace_there

MODE: Final = 0o644
PART_SECONDS: Final = 60.0
ROOTS: Final = ("", "/proc/1/root")
"""Its own, then the host's: tried where its own is not to be written to."""
UNCOUNTED: Final = "seawall_workload_uncounted_bytes"
_MODES: Final = ("observe", "enforce")


class Metric(NamedTuple):
    """One family.  ``key``: where its value stands in what the guard sends."""

    name: str
    kind: str
    key: str
    help: str


METRICS: Final = (
    Metric("can_kill", "gauge", "can_kill", "Whether the last self-test proved that it can kill."),
    Metric("config_taken", "gauge", "config_taken",
           "Whether its file was taken when it was last read; else the settings before it hold."),
    Metric("headroom_bytes", "gauge", "headroom_bytes",
           "What programs can still have before reclaim hurts."),
    Metric("residual_bytes", "gauge", "residual_bytes", "Uncounted memory of the node."),
    Metric("residual_grown_bytes", "gauge", "residual_grown_bytes",
           "Growth of the uncounted memory over its base."),
    Metric("kills_total", "counter", "kills", "Workloads killed."),
    Metric("predicted_bytes_total", "counter", "predicted_bytes",
           "What kills were predicted to give back."),
    Metric("returned_bytes_total", "counter", "returned_bytes", "What came back after orders."),
    Metric("reaction_seconds", "gauge", "reaction_seconds",
           "From the last order to its first write or signal."),
    Metric("last_tick_seconds", "gauge", "last_tick_seconds", "How long the last tick took."),
    Metric("watcher_up", "gauge", "watcher_up", "Whether the watcher tells what it learned."),
    Metric("own_major_faults_total", "counter", "own_major_faults", "Major faults of the guard."),
    Metric("resident_bytes", "gauge", "resident_bytes", "Resident memory of the guard."),
    Metric("written_timestamp_seconds", "gauge", "unix_seconds", "When the guard told all this."),
)  # fmt: skip


def render(values: dict[str, Any]) -> str:
    """Without the metrics whose values are not known."""
    now = values.get("mode")
    lines = [*_heading("mode", "gauge", "1 for the mode that it is in.")]
    lines += [f'seawall_guard_mode{{mode="{mode}"}} {int(now == mode)}' for mode in _MODES]
    lines += _heading("decisions_total", "counter", "Decisions, by why and how they were taken.")
    for row in values.get("decisions", ()):
        trigger, how, count = row
        labels = f'trigger="{label(trigger)}",outcome="{label(how)}"'
        lines.append(f"seawall_guard_decisions_total{{{labels}}} {_number(count)}")
    for metric in METRICS:
        number = _number(values.get(metric.key))
        if number is not None:
            lines += _heading(metric.name, metric.kind, metric.help)
            lines.append(f"seawall_guard_{metric.name} {number}")
    lines += _workloads(values.get("workloads", ()))
    return "\n".join(lines) + "\n"


def _workloads(rows: Iterable[tuple[str, int]]) -> Iterator[str]:
    """A name stands once: two cgroups may have it, and a series that is there twice spoils all."""
    held: dict[str, int] = {}
    for name, count in rows:
        held[name] = held.get(name, 0) + count
    if held:
        yield f"# HELP {UNCOUNTED} Least uncounted memory of a workload, of the ten with most."
        yield f"# TYPE {UNCOUNTED} gauge"
    for name, count in held.items():
        yield f'{UNCOUNTED}{{workload="{label(name)}"}} {_number(count)}'


def label(value: object) -> str:
    """A label's value: backslash, quote and newline escaped, as the format wants it."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text.encode("utf-8", "backslashreplace").decode()


def write(request: dict[str, Any], roots: Sequence[str] = ROOTS) -> dict[str, Any]:
    """The file, replaced whole; what went wrong in ``problem``."""
    path, problem = str(request.get("path")), ""
    text = render(request.get("values", {})).encode()
    for root in roots:
        _sweep(root + path)
        try:
            replace_there(root + path, text, MODE)
        except OSError as error:
            problem = problem or f"{path}: {error.strerror}"
            if error.errno != errno.EROFS:
                break
        else:
            return {"problem": ""}
    return {"problem": problem}


def _sweep(path: str) -> None:
    """By age and not by pid: another guard, in a container, may write there too."""
    for part in parts_of(path):
        try:
            found = os.stat(part, follow_symlinks=False)
        except OSError:
            continue
        is_old = abs(time.time() - found.st_mtime) > PART_SECONDS
        if is_old and found.st_uid == os.geteuid():
            remove(part)


def _heading(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP seawall_guard_{name} {words}"
    yield f"# TYPE seawall_guard_{name} {kind}"


def _number(value: object) -> str | None:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return repr(value)
