"""Commands that the documents show are commands: each parses, with the options it shows, and is run
by a test or says why not; and each link between the documents has its end.
"""

import re
import shlex
from pathlib import Path

import pytest
from tests.architecture.page_commands import (
    ELSEWHERE,
    PAGES,
    REPOSITORY,
    Command,
    commands,
    current_commands,
    elsewhere,
)

from seawall.cli.main import parse

PLACEHOLDERS = {
    "N": "5", "TIME": "-30s", "SECONDS": "5", "SPAN": "30min", "SIZE": "1GiB", "KIND": "hog",
    "POD": "shop/web-0", "ID": "1a2b3c4d-0007",
}  # fmt: skip
SHELL = re.compile(r"\s+(?:&&|\|\||[|;<>]|2>).*$")


def words_of(command: Command) -> list[str]:
    """What Seawall gets; nothing of what comes behind the shell's own signs."""
    line = SHELL.sub("", re.sub(r"^(sudo|ssh node) ", "", command.text))
    return [PLACEHOLDERS.get(word, word) for word in shlex.split(line)[1:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_what_a_page_says_to_type_can_be_typed(page: Path) -> None:
    name = str(page.relative_to(REPOSITORY))
    for command in commands():
        if command.page != name or not re.match(r"(?:sudo |ssh node )?seawall ", command.text):
            continue
        words = words_of(command)
        if words[-1:] == ["--at"] or (len(words) < 2 and words != ["why"]):
            continue  # the name of a verb, of which some want a word more
        try:
            parse(words)
        except SystemExit as end:
            assert not end.code, f"{name}: {command.text}"  # noqa: PT017 - of argparse


def test_there_are_commands_to_try() -> None:
    """Else the patterns have gone blind."""
    found = [words_of(each) for each in commands() if "seawall" in each.text]
    assert len(found) > 130
    assert ["why", "SW103"] in found


def test_a_command_is_run_or_says_why_not() -> None:
    """``tests/end_to_end/test_docs_run.py`` runs what is Seawall's and in no list."""
    unknown = [
        f"{each.page}: {each.text}"
        for each in current_commands()
        if not elsewhere(each)
        and not re.match(r"((sudo |ssh node |PYTHONPATH=src python3 -m )?seawall|zcat) ", each.text)
    ]
    assert not unknown, "tests/architecture/page_commands.py, ELSEWHERE"


def test_reasons_are_of_commands_that_there_are() -> None:
    for each in ELSEWHERE:
        assert any(elsewhere(command) == each for command in current_commands()), each.pattern
        assert not each.tests or (REPOSITORY / each.tests).exists(), each.tests


def anchors(text: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    heads = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", head).lower()).replace(" ", "-")
        for head in heads
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_link_has_an_end(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        end = (page.parent / name).resolve() if name else page
        assert end.exists(), target
        if anchor and end.suffix == ".md":
            assert anchor in anchors(end.read_text()), target


def test_the_readme_stays_a_page() -> None:
    assert (REPOSITORY / "README.md").stat().st_size < 9000
