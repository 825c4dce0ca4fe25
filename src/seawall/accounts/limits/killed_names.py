# SPDX-License-Identifier: Apache-2.0
"""Whom the kernel OOM-killed in a window, by the reports that it still holds in its log."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from seawall.readings.kernel import Kernel
from seawall.readings.kernel_log import KernelLog

_SLACK_SECONDS: Final = 1.0
"""Its log is stamped by another clock than the window's (local_clock, CLOCK_MONOTONIC)."""


def killed_names(log: KernelLog, kernel: Kernel, seconds: float) -> Mapping[str, Counter[str]]:
    """Cgroup of the victim -> how many of each ``comm``, of the last ``seconds``."""
    found: dict[str, Counter[str]] = {}
    now = kernel.monotonic_seconds
    for report in log.reports:
        at = _seconds(report.at)
        if now is None or at is None or not -_SLACK_SECONDS <= now - at <= seconds + _SLACK_SECONDS:
            continue
        if report.task_memcg is not None:
            names = found.setdefault(report.task_memcg, Counter())
            names.update(kill.comm for kill in report.kills)
    return found


def names_below(names: Mapping[str, Counter[str]], path: str) -> Counter[str]:
    """Of this cgroup and those below it."""
    inside = path.rstrip("/") + "/"
    total: Counter[str] = Counter()
    for place, counts in names.items():
        if place == path or place.startswith(inside):
            total.update(counts)
    return total


def _seconds(at: str | None) -> float | None:
    """Of a stamp in seconds since boot; None for one with a date."""
    try:
        return None if at is None else float(at.strip("[] "))
    except ValueError:
        return None
