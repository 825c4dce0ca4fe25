"""The words of every firing case of every rule, on the one screen of ``why``."""

import re
from pathlib import Path

import pytest
from tests.case_host import parse_case

from seawall.accounts.scene import Scene
from seawall.findings.finding import Judged
from seawall.findings.policy import Policy
from seawall.findings.rule import load_rules
from seawall.findings.rule_runner import judge
from seawall.readings.snapshot import Snapshot
from seawall.views.terminal import Console
from seawall.views.why_screen import Answer, columns, lines

RULES_HOME = Path(__file__).parents[2] / "src/seawall/findings/rules"
RULES = {rule.module.rpartition(".")[2]: rule for rule in load_rules()}
CASES = [
    path for path in sorted(RULES_HOME.glob("*/*.cases/*.case"))
    if re.search(r"verdict\W+fires", path.read_text(errors="replace"))
]  # fmt: skip
CLIPPED = re.compile(r"(?<!\S)\.\.(?!\S)")


def firing(path: Path) -> list[Judged]:
    case = parse_case(path.read_bytes())
    snapshots = [Snapshot(host) for host in case.rounds]
    scene = Scene(snapshots[0], snapshots[-1] if len(snapshots) > 1 else None)
    found = judge([RULES[path.parent.stem]], scene, Policy())
    return [item for item in found if item.finding.verdict == "fires"]


def test_there_are_cases() -> None:
    assert {path.parent.stem for path in CASES} == set(RULES)


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.stem}-{p.stem}")
def test_no_sentence_is_clipped_and_there_is_something_to_do(path: Path) -> None:
    items = firing(path)
    assert items
    for item in items:
        shown = lines(Answer(judged=[item]), Console(width=80))
        text = "\n".join(shown)
        assert not CLIPPED.search(text), text
        assert re.search(r"^  do      (?!seawall why SW)", text, re.MULTILINE), text
    together = lines(Answer(judged=items), Console(width=80))
    assert len(together) <= 23
    assert max(map(columns, together)) <= 80
