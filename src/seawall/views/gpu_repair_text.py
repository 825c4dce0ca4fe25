# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu repair`` as text: each step with what it mends, what not, and who does it."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.devices.repairs.step import By, RepairOutcome, RepairScope, Step
from seawall.findings.shell import quote
from seawall.host.host import Unread
from seawall.views.gpu_repair_page import RepairPage, is_left, sentence
from seawall.views.terminal import Console, plain

_INDENT: Final = " " * 12
_WHO: Final[dict[By, str]] = {
    "seawall": "",
    "you": "you",
    "user": "the container's user",
    "nobody": "nobody",
}
_STYLES: Final = {"done": "good", "skipped": "good", "failed": "critical", "refused": "warning"}


def lines(page: RepairPage, paper: Console) -> Iterator[str]:
    """The plan; after ``--do`` what is left of it, for what was done was told as it was."""
    if not isinstance(page.plan, Unread) and not page.is_told:
        for headline in page.plan.headlines:
            yield from _painted(headline, paper, "critical")
    style = {"verified": "good", "unverified": "critical"}.get(page.verdict, "bold")
    yield from _painted(sentence(page), paper, style)
    for note in () if isinstance(page.plan, Unread) else page.plan.notes:
        yield from paper.wrap(note, "  ", "  ")
    if page.is_told:
        yield from _left(page, paper)
        return
    if page.steps:
        yield from paper.wrap("In this order; a number is the same in every plan.")
    for told in page.steps:
        yield ""
        yield from _step(told.step, page.scope, paper)


def _painted(words: str, paper: Console, style: str) -> Iterator[str]:
    for line in paper.wrap(words):
        yield paper.paint(line, style)


def _step(step: Step, scope: RepairScope, paper: Console) -> Iterator[str]:
    for line in paper.wrap(step.what, "   ", f"{step.number}  "):
        yield paper.paint(line, "bold")
    yield from _by(step, scope, paper)
    for label, words in (
        ("mends", step.mends), ("not", step.does_not_mend), ("lasts", step.lasts),
    ):  # fmt: skip
        yield from paper.wrap(words, _INDENT, f"   {label:<8} ")


def _by(step: Step, scope: RepairScope, paper: Console) -> Iterator[str]:
    """Who does it, and with which words."""
    if step.by == "seawall":
        extra = " --kubeconfig FILE" if step.kind == "recreate" else ""
        told = f"sudo seawall gpu repair {_named(scope)} --do {step.number}{extra}"
        yield from _commands(told, "   do       ")
        yield from _commands(step.command, "   or       ")
        return
    yield from paper.wrap(_WHO[step.by], _INDENT, "   who      ")
    yield from _commands(step.command, "   run      ")


def _commands(commands: str, first: str) -> Iterator[str]:
    """Never wrapped, however wide the paper is: a line that was cut does not paste."""
    for command in commands.splitlines():
        yield f"{first}{plain(command)}"
        first = " " * len(first)


def _named(scope: RepairScope) -> str:
    return quote(scope.workload.name) if scope.workload else scope.words


def result_lines(told: RepairOutcome, paper: Console) -> Iterator[str]:
    """One step right after it was done."""
    words = f"{told.state}: {told.step.what}"
    for line in paper.wrap(words, "   ", f"{told.step.number}  "):
        yield paper.paint(line, _STYLES.get(told.state, "bold"))
    yield from paper.wrap(told.words, "     ", "     ")


def _left(page: RepairPage, paper: Console) -> Iterator[str]:
    rest = [told.step for told in page.steps if is_left(page, told)]
    if rest:
        yield ""
        yield "Left to be done"
    for step in rest:
        who = _WHO[step.by] or "seawall"
        yield from paper.wrap(f"{step.what} ({who})", "     ", f"  {step.number}  ")
        yield from _commands(step.command, "     ")
