# SPDX-License-Identifier: Apache-2.0
"""The parser of the command line: a mistake is told with the usage that it belongs to.

argparse writes the words of the command line to the terminal as they are, and tells an unknown
option of a verb with the usage of the whole program.
"""

import os
import sys
from argparse import ArgumentParser, HelpFormatter
from collections.abc import Mapping
from typing import Any, NoReturn

from seawall.views.terminal import plain


class TerminalHelp(HelpFormatter):
    """As argparse's, and as wide; that one imports shutil, bz2 and lzma to know the width, also
    where no help is printed.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    words = os.environ.get("COLUMNS", "")
    if words.isdecimal() and int(words):
        return int(words)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


class VerbParser(ArgumentParser):
    """Of the program, and of each verb."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": TerminalHelp, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but nothing is unknown: the caller would tell it with his own usage."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """On stderr, with nothing that steers a terminal; exit status 2."""
        self.exit(2, f"{self.format_usage()}{self.prog}: error: {plain(message)}\n")

    def _meant(self, unknown: list[str]) -> str:
        """The option that is nearest to the first unknown one."""
        from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

        options = [name for name in self._option_string_actions if name.startswith("--")]
        first = next((word for word in unknown if word.startswith("--")), "").partition("=")[0]
        near = get_close_matches(first, options, n=1)
        return f"; did you mean {near[0]}?" if near else ""


class ProgramParser(VerbParser):
    """Of the program: its help is one screen of 24 lines, whatever the terminal's width."""

    def __init__(self, verbs: Mapping[str, str], **settings: Any) -> None:
        super().__init__(description="Explains a Linux container host.", **settings)
        self._verbs = verbs

    def format_help(self) -> str:
        """What a tired reader is to type first, then all verbs."""
        return "\n".join((
            f"usage: {self.prog} VERB ...",
            "",
            f"{self.description} On a node that barely answers: seawall why",
            "",
            *(f"  {name:9} {words}" for name, words in self._verbs.items()),
            "Options of a verb: seawall VERB --help. Which version: seawall --version",
            "",
        ))  # fmt: skip


def usage_of_verbs(name: str, verbs: Mapping[str, str], columns: int) -> int:
    """What ``seawall NAME`` says without one of its verbs; the exit status."""
    sys.stderr.write(f"usage: seawall {name} VERB ...   (seawall {name} VERB --help)\n\n")
    for verb, words in verbs.items():
        sys.stderr.write(f"  {verb:{columns}} {words}\n")
    return 2  # argparse's own
