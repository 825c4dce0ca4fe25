"""No function is so long that it cannot be read at once; long modules are printed as a hint."""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[2]
SOURCE = sorted(p for p in (REPOSITORY / "src").rglob("*.py") if "_vendor" not in p.parts)
TESTS = sorted((REPOSITORY / "tests").rglob("*.py"))

FUNCTION_LINES_MOST = 60
MODULE_LINES_HINT = 500


class Function(NamedTuple):
    lines: int
    place: str


def functions() -> Iterator[Function]:
    for path in SOURCE:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                place = f"{path.relative_to(REPOSITORY)}:{node.lineno} {node.name}"
                yield Function((node.end_lineno or 0) - node.lineno + 1, place)


def test_functions_fit_on_a_screen() -> None:
    long = [f"{f.lines} lines  {f.place}" for f in functions() if f.lines > FUNCTION_LINES_MOST]
    assert not long, "\n" + "\n".join(sorted(long))


@pytest.mark.filterwarnings("default:module of")
def test_long_modules_are_printed() -> None:
    """A hint, not a limit: a module is as long as its subject."""
    for path in SOURCE:
        lines = len(path.read_text().splitlines())
        if lines > MODULE_LINES_HINT:
            warnings.warn(f"module of {lines} lines: {path.relative_to(REPOSITORY)}", stacklevel=1)


def test_names_of_test_modules_are_unique() -> None:
    """pytest imports test modules by their bare name."""
    names = [path.name for path in TESTS if path.name.startswith("test_")]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice
