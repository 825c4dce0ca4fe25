# SPDX-License-Identifier: Apache-2.0
"""Rules as people read them."""

from collections.abc import Iterator, Sequence

from seawall.findings.rule import Rule
from seawall.views.terminal import Console


def list_lines(rules: Sequence[Rule], paper: Console) -> Iterator[str]:
    """One line a rule: id, worst severity, title."""
    for rule in rules:
        mark = "audit" if rule.audit else rule.severity
        yield f"{rule.id}  {paper.paint(f'{mark:<8}', rule.severity)}  {rule.title}"


def show_lines(rule: Rule, paper: Console) -> Iterator[str]:
    """What it says, why it hurts, its thresholds, how to see the same by hand, what to do."""
    yield paper.paint(f"{rule.id}  {rule.title}", "bold")
    yield f"worst: {rule.severity}" + ("; only with why --audit" if rule.audit else "")
    yield ""
    for paragraph in rule.doc.split("\n\n"):
        yield from paper.wrap(" ".join(paragraph.split()))
        yield ""
    if rule.thresholds:
        yield "Thresholds (rules.toml can move them)"
        for name, (default, words) in rule.thresholds.items():
            yield from paper.wrap(f"{name} = {default:g}: {words}", "    ", "  ")
        yield ""
    yield "By hand"
    yield from (f"  {command}" for command in rule.confirm)
    yield ""
    yield "What to do"
    for step in rule.remedy:
        yield from paper.wrap(step, "    ", "  - ")
    yield ""
    yield from paper.wrap(rule.provide, "    ", "When blind: ")
