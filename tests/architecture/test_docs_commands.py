"""Commands that the documents show are commands: each parses, with the options it shows; and each
link between the documents has its end.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.cli.main import parse

REPOSITORY = Path(__file__).resolve().parents[2]

PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/incidents/**/*.md",
        "docs/decisions/*.md",
        "packaging/*.md",
    )
    for path in REPOSITORY.glob(pattern)
)
COMMAND = re.compile(r"^(?:\$ )?(?:sudo )?(seawall [^\n]+)$|`(seawall [^`\n]+)`", re.MULTILINE)
PLACEHOLDERS = {
    "N": "5", "TIME": "-30s", "SECONDS": "5", "SPAN": "30min", "SIZE": "1GiB", "KIND": "hog",
}  # fmt: skip
SHELL = re.compile(r"\s+(?:&&|\|\||[|;<>]|2>).*$|\s+#.*$")


def commands(text: str) -> Iterator[list[str]]:
    """Each as words; what is left of a line after the shell's own signs is not its."""
    for match in COMMAND.finditer(
        re.sub(r"^    (?=(?:sudo )?seawall )", "", text, flags=re.MULTILINE)
    ):
        line = SHELL.sub("", match[1] or match[2])
        if "..." in line or "VERB" in line or "[" in line or "|" in line:
            continue
        yield [PLACEHOLDERS.get(word, word) for word in shlex.split(line.rstrip("\\ "))[1:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_what_a_page_says_to_type_can_be_typed(page: Path) -> None:
    for words in commands(page.read_text()):
        if len(words) < 2 and words != ["why"]:
            continue  # the name of a verb, of which some want a word more
        try:
            parse(words)
        except SystemExit as end:
            assert not end.code, f"{page.name}: seawall {shlex.join(words)}"  # noqa: PT017 - of argparse


def test_there_are_commands_to_try() -> None:
    """Else the patterns above have gone blind."""
    found = [words for page in PAGES for words in commands(page.read_text())]
    assert len(found) > 100
    assert ["why", "SW103"] in found


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
