"""docs/threats.md: each line that holds names one test, and that test is there."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs/threats.md"
ROW = re.compile(r"^\|(?P<cells>.+)\|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ADVERSARIES = [
    "A tenant", "A local user", "Who stole an agent's token", "Who stole the actor's token",
    "Who sends evidence", "A node that is broken",
]  # fmt: skip


def parts() -> dict[str, str]:
    found = dict(part.split("\n", 1) for part in PAGE.read_text().split("\n## ")[1:])
    assert list(found) == ADVERSARIES
    return found


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_each_line_names_one_test_that_is_there(adversary: str) -> None:
    rows = [match["cells"].split(" | ") for match in ROW.finditer(parts()[adversary])][2:]
    assert len(rows) >= 5
    for does, holds, test in rows:
        (named,) = TEST.findall(test)
        path, name = named
        tree = ast.parse((REPOSITORY / path).read_text())
        names = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        assert name in names, f"{does.strip()}: {path} has no {name}"
        assert holds.strip()


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_what_does_not_hold_is_said(adversary: str) -> None:
    assert "\nDoes not hold yet:" in parts()[adversary]
