"""Functions, parameters and modules stay small; what sticks out is printed with its place."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]
SOURCE = sorted((REPOSITORY / "src").rglob("*.py"))
TESTS = sorted((REPOSITORY / "tests").rglob("*.py"))

FUNCTION_MEDIAN_MOST = 12
FUNCTION_LINES = 40
SHARE_WITHIN = 0.95
FUNCTION_LINES_MOST = 60
PARAMETERS_MOST = 5
MODULE_LINES_MOST = 300
TEST_MODULE_LINES_MOST = 400


class Function(NamedTuple):
    lines: int
    parameters: int
    place: str
    is_rule: bool


def functions() -> Iterator[Function]:
    for path in SOURCE:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args.posonlyargs + node.args.args
                names = [a.arg for a in given if a.arg not in ("self", "cls")]
                place = f"{path.relative_to(REPOSITORY)}:{node.lineno} {node.name}"
                # A rule's judge takes its needs and its thresholds, however many there are;
                # an account's the topics that it sums.
                is_rule = node.name in ("judge", "account")
                yield Function((node.end_lineno or 0) - node.lineno + 1, len(names), place, is_rule)


FUNCTIONS = sorted(functions(), reverse=True)


def outliers(rows: list[str]) -> str:
    return "\n" + "\n".join(rows)


def test_functions_are_short() -> None:
    lines = [f.lines for f in FUNCTIONS]
    long = [f"{f.lines:4} lines  {f.place}" for f in FUNCTIONS if f.lines > FUNCTION_LINES]
    assert statistics.median(lines) <= FUNCTION_MEDIAN_MOST
    assert len(long) <= (1 - SHARE_WITHIN) * len(lines), outliers(long)
    assert FUNCTIONS[0].lines <= FUNCTION_LINES_MOST, outliers(long)


def test_functions_take_few_parameters() -> None:
    wide = [
        f"{f.parameters} parameters  {f.place}"
        for f in FUNCTIONS
        if f.parameters > PARAMETERS_MOST and not f.is_rule
    ]
    assert not wide, outliers(wide)


def test_modules_are_short() -> None:
    limits = dict.fromkeys(SOURCE, MODULE_LINES_MOST)
    limits |= dict.fromkeys(TESTS, TEST_MODULE_LINES_MOST)
    long = [
        f"{lines:4} lines, at most {most}  {path.relative_to(REPOSITORY)}"
        for path, most in limits.items()
        if (lines := len(path.read_text().splitlines())) > most
    ]
    assert not long, outliers(long)


def test_names_of_test_modules_are_unique() -> None:
    """pytest imports test modules by their bare name."""
    names = [path.name for path in TESTS if path.name.startswith("test_")]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice
