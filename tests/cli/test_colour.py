"""Colours one way in every verb: --color, NO_COLOR (no-color.org), and none where nobody looks."""

import argparse
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.end_to_end.verbs import ENVIRONMENT

from seawall.cli import gpu
from seawall.cli.main import VERBS, parser_of
from seawall.cli.source_options import add_color_argument

INCIDENTS = Path(__file__).parents[2] / "docs/incidents"
BUNDLE = str(INCIDENTS / "gpu-node-dies/bundle")
NEVER_PAINTED = frozenset({
    "agent", "blackbox export", "capture", "cluster controller", "gpu check", "gpu wait",
    "guard check", "guard metrics", "guard pins", "guard run", "guard status", "guard undo",
})  # fmt: skip
"""They print a few lines, or a page that programs read too."""
ANSWERS = {
    "why": ("why", "--from", BUNDLE),
    "pods": ("pods", "--from", BUNDLE),
    "oom explain": ("oom", "explain", str(INCIDENTS / "page-cache/oom.log")),
    "rules list": ("rules", "list"),
}


def leaves(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, object]]:
    """Every verb and every verb below one, with its parser."""
    if name.strip() == "gpu":  # its questions learn their options when they parse
        for question in ("table", *gpu.QUESTIONS):
            inner = argparse.ArgumentParser()
            import_module(f"seawall.cli.gpu_{question}").add_arguments(inner)
            yield f"gpu {question}", inner
        return
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not below:
        if hasattr(parser, "question"):  # it learns its options when it parses
            parser.parse_known_args([])
        yield name.strip(), parser
        return
    for word, inner in below[0].choices.items():
        yield from leaves(inner, f"{name} {word}")


PARSERS = dict(leaves(parser_of(tuple(VERBS)), ""))


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_every_verb_that_paints_has_the_same_option(name: str) -> None:
    parser = PARSERS[name]
    assert isinstance(parser, argparse.ArgumentParser)
    found = [one for one in parser._actions if "--color" in one.option_strings]
    if name in NEVER_PAINTED:
        assert not found
        return
    like = argparse.ArgumentParser()
    add_color_argument(like)
    (wanted,) = (one for one in like._actions if "--color" in one.option_strings)
    assert [(one.choices, one.default, one.help) for one in found] == [
        (wanted.choices, wanted.default, wanted.help)
    ]


def on_terminal(words: tuple[str, ...], **environment: str) -> bytes:
    """What stands on a terminal when it has ended."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "seawall", *words], stdin=subprocess.DEVNULL, stdout=follower,
        stderr=subprocess.DEVNULL, env={**ENVIRONMENT, "TERM": "xterm", **environment},
    ):  # fmt: skip
        os.close(follower)
        shown = b""
        while True:
            try:
                data = os.read(leader, 1 << 16)
            except OSError:  # EIO: everybody has closed it
                break
            shown += data
    os.close(leader)
    return shown


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_who_gets_colours(name: str) -> None:
    words = ANSWERS[name]
    assert b"\x1b[" in on_terminal(words, NO_COLOR="")
    for more, environment in (
        ((), {"NO_COLOR": "1"}), ((), {"TERM": "dumb"}), (("--color", "never"), {}),
    ):  # fmt: skip
        shown = on_terminal((*words, *more), **environment)
        assert shown
        assert b"\x1b" not in shown
    assert b"\x1b[" in on_terminal((*words, "--color", "always"), NO_COLOR="1")
    command = [sys.executable, "-m", "seawall", *words]
    piped = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert piped.stdout
    assert b"\x1b" not in piped.stdout
