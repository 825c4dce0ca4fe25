# SPDX-License-Identifier: Apache-2.0
"""The words of ``rings``, ``egl``, ``cuda-host`` and ``cuda-managed``: what no limit counts."""

import shlex
from collections.abc import Iterator
from typing import Final

from seawall.lab.plan import Kind, Plan
from seawall.lab.run_report import LabReport
from seawall.views.terminal import Console, plain
from seawall.words import size

_WHAT: Final[dict[Kind, str]] = {
    "rings": "of packet rings: uncounted memory",
    "egl": "of framebuffers and never frees one",
    "cuda-host": "of host memory pinned by the CUDA driver",
    "cuda-managed": "of managed memory of the CUDA driver, written on the host",
}
_SEEN: Final[dict[Kind, str]] = {
    "rings": "packet_set_ring in its stack, and a claim of class ring",
    "egl": "the driver's functions in its stack, and a claim of class surface",
    "cuda-host": "the driver's functions in its stack, and a claim of class pinned",
    "cuda-managed": "the driver's functions in its stack, and a claim of class managed",
}
SOFTWARE: Final = "this driver is software: its surfaces are counted"


def deed(plan: Plan) -> str:
    """What the process does, in half a sentence."""
    speed = f", {size(plan.step_bytes)} each second" if plan.step_bytes else ", at once"
    return f"one process takes {size(plan.each_bytes)} {_WHAT[plan.kind]}{speed}"


def beside(plan: Plan, path: str, paper: Console) -> Iterator[str]:
    """Before it starts: what to run beside it, and what to look for."""
    own = shlex.quote(path)
    if plan.driver:
        words = plain(plan.driver.name) + (f"; {SOFTWARE}" if plan.driver.is_software else "")
        yield from paper.wrap(words, "  ", "driver: ")
    yield from paper.wrap(
        f"sudo seawall memory --who --for 10 ; sudo seawall memory ; sudo seawall pods {own}",
        "  ", "beside it: ",
    )  # fmt: skip
    if plan.uncounted_bytes:
        yield from paper.wrap(
            f"`memory --who` names {plain(path)} while it takes, with {_SEEN[plan.kind]}; in "
            f"`pods` the cgroup counts far less than {size(plan.wanted_bytes)} and holds the rest "
            "as uncounted memory",
            "  ", "look for: ",
        )  # fmt: skip
    else:
        yield from paper.wrap(
            "`pods` counts all of it in the cgroup, and `memory --who` names nobody for it",
            "  ", "look for: ",
        )  # fmt: skip


def happened(report: LabReport) -> Iterator[str]:
    """What was taken, who counts it, and whether it came back."""
    taken, counted = report.done_bytes, report.peak_bytes  # at the end it may be dead
    driver = report.plan.driver
    if driver and driver.is_software:
        yield f"{plain(driver.name)}: {SOFTWARE}"
    if counted is None:
        yield f"{size(taken)} were taken"
    elif taken and counted < taken / 2:
        yield (
            f"{size(taken)} were taken, and the cgroup counted {size(counted)} at most: no limit "
            "held this memory"
        )
    elif taken:
        yield (
            f"{size(taken)} were taken, and the cgroup counted {size(counted)} at most: this kind "
            "of memory is counted here"
        )
    else:
        yield "nothing was taken"
    available = report.available
    if available and available.before and available.least and available.after:
        still = max(0, available.before - available.after)
        yield (
            f"MemAvailable fell by {size(max(0, available.before - available.least))} at most, and "
            f"was {size(still)} below its beginning when all was removed (others move it too)"
        )
