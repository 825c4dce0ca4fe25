"""The parser of Python 3.10 says what the later ones' own says: values, and words of problems."""

import sys

import pytest
from tests.guard.test_guard_config import OTHER

from seawall._vendor import tomli
from seawall.formats import toml

RULES = b"""
[SW101]
mute = true
reason = "driver of the lab nodes, ticket 4711"
until = 2027-01-31
workload = "lab/*"

[SW103.thresholds]
warn_fraction = 0.05
""".decode()
RIGHT = [
    RULES,
    "",
    "a = [1, 2.5, true]\nb = {c = 'd'}\n",
    *(f"{k} = {v[0]}" for k, v in OTHER.items()),
]
WRONG = [
    "a = ", "a = 1\na = 2", "a", "[a", 'a = "\x1b"', "a = {b = 1,\n}", 'a = "\\e"', "a = 1 b = 2",
    "= 1", "a = 2026-13-01", "a = [1, 2", "[a]\n[a]\n",
]  # fmt: skip


@pytest.mark.parametrize("text", RIGHT)
def test_values_are_the_same(text: str) -> None:
    assert tomli.loads(text) == toml.loads(text)


@pytest.mark.parametrize("text", WRONG)
def test_problems_are_the_same(text: str) -> None:
    with pytest.raises(tomli.TOMLDecodeError) as vendored:
        tomli.loads(text)
    with pytest.raises(toml.TOMLDecodeError) as own:
        toml.loads(text)
    assert str(vendored.value) == str(own.value)


def test_each_python_has_its_own() -> None:
    whose = "seawall._vendor.tomli" if sys.version_info < (3, 11) else "tomllib"
    assert toml.loads.__module__.startswith(whose)
