"""What ``--help`` prints: a screen of 80 columns, and one of 24 lines of the program itself."""

import re
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator

import pytest

from seawall.cli import guard
from seawall.cli.main import VERBS, parser_of
from seawall.cli.verb_parser import usage_of_verbs

COLUMNS, LINES = 80, 24
PRIVATE = re.compile(
    r"residual|unexplained|in no counter|outside (its|the) cgroup|"
    r"\b(ere|lest|whence|thus|nought|upon)\b",
    re.IGNORECASE,
)


def pages(parser: ArgumentParser) -> Iterator[tuple[str, str]]:
    """The help of a parser and of all below it, by what one types to get it."""
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for one in dict.fromkeys(action.choices.values()):
                yield from pages(one)


@pytest.fixture
def helps(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return dict(pages(parser_of(VERBS)))


def test_every_page_fits_a_terminal_and_uses_the_words_of_the_field(helps: dict[str, str]) -> None:
    assert len(helps) > len(VERBS) + 20
    for name, page in helps.items():
        wide = [line for line in page.splitlines() if len(line) > COLUMNS]
        assert not wide, name
        assert not PRIVATE.search(page), name


def test_the_programs_own_page_is_one_screen_with_the_prompt(helps: dict[str, str]) -> None:
    page = helps["seawall"]
    assert page.count("\n") < LINES
    assert "seawall why" in page.splitlines()[2], "the first thing to type"
    for verb in VERBS:
        assert re.search(rf"^  {verb} +\S", page, re.MULTILINE)


def test_the_verbs_of_the_guard_fit_too(capsys: pytest.CaptureFixture[str]) -> None:
    usage_of_verbs("guard", guard.VERBS, 9)
    assert max(len(line) for line in capsys.readouterr().err.splitlines()) <= COLUMNS
