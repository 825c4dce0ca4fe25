# SPDX-License-Identifier: Apache-2.0
"""Completions for bash, zsh and fish (shtab) and man pages (argparse-manpage), from the parser of
the command line; made anew for each release, so they cannot be of another one.
"""

import argparse
import gzip
import re
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from release.shipped_files import epoch_seconds
from seawall.cli.main import SERVICES, VERBS, parser_of
from seawall.version import VERSION

COMPLETION_PLACES: Final = {
    "bash": "usr/share/bash-completion/completions/seawall",
    "zsh": "usr/share/zsh/vendor-completions/_seawall",
    "fish": "usr/share/fish/vendor_completions.d/seawall.fish",
}
_FOLDERS: Final = ("DIR",)
_FILES: Final = ("FILE", "BUNDLE", "OTHER.toml")
_STATUSES: Final = """\
.TP
0
answered, whatever was found
.TP
2
wrong use, input that cannot be used, or no Python 3.10 or later
.TP
10, 11
only with \\-\\-fail\\-on: something fires; blind there
.TP
70
a fault of Seawall's own"""
_PLACES: Final = """\
.TP
/etc/seawall/guard.toml
settings of the guard
.TP
/etc/seawall/rules.toml
mutes and thresholds of rules
.TP
/run/seawall
status, decisions and what is to be undone
.TP
/var/lib/seawall/blackbox
the black box"""


def whole_parser() -> argparse.ArgumentParser:
    """Every verb with every option, and which of them are paths."""
    import shtab

    parser = parser_of({**VERBS, **SERVICES})
    for one in _all_parsers(parser):
        for action in one._actions:
            kind = str(action.metavar)
            if kind in _FILES or kind in _FOLDERS:
                action.complete = shtab.DIRECTORY if kind in _FOLDERS else shtab.FILE  # type: ignore[attr-defined]
    return parser


def _all_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    if question := getattr(parser, "question", ""):  # cli/oom.py: learns its options late
        import_module(f"seawall.cli.oom_{question}").add_arguments(parser)
        parser.question = ""  # type: ignore[attr-defined]
    yield parser
    for name, child in _children(parser).items():
        child.prog = f"{parser.prog} {name}"
        yield from _all_parsers(child)


def _children(parser: argparse.ArgumentParser) -> dict[str, Any]:
    found = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def long_options() -> set[str]:
    """Of all verbs together."""
    return {
        option
        for parser in _all_parsers(whole_parser())
        for option in parser._option_string_actions
        if option.startswith("--")
    }


def completions() -> dict[str, str]:
    """By shell."""
    import shtab

    parser = whole_parser()
    return {shell: shtab.complete(parser, shell) for shell in COMPLETION_PLACES}


def man_pages() -> dict[str, str]:
    """By file name: ``seawall.1`` with the verbs, and a page for each verb."""
    from argparse_manpage.manpage import Manpage

    date = time.strftime("%Y-%m-%d", time.gmtime(epoch_seconds()))
    data = {"project_name": "seawall", "version": VERSION, "manual_title": "Seawall", "date": date}
    pages = {}
    verbs, words = _children(whole_parser()), {**VERBS, **SERVICES}
    for name, parser in verbs.items():
        parser.prog = f"seawall {name}"
        page = Manpage(parser, _data={**data, "description": words[name]})
        page.prog = f"seawall-{name}"
        page.add_section("exit status", ">", _STATUSES)
        page.add_section("see also", ">", ".BR seawall (1)")
        pages[f"seawall-{name}.1"] = _without_accidents(str(page))
    page = Manpage(parser_of(()), _data={**data, "description": "explains a container host"})
    page.add_section("exit status", ">", _STATUSES)
    page.add_section("files", ">", _PLACES)
    also = ",\n".join(f".BR seawall-{name} (1)" for name in verbs)
    page.add_section("see also", ">", also.replace(",\n", " ,\n"))
    pages["seawall.1"] = _without_accidents(str(page))
    return pages


def _without_accidents(page: str) -> str:
    """A line of text that begins with an apostrophe is a request to troff."""
    return re.sub(r"^(\\?)'", r"\\&\1'", page, flags=re.MULTILINE)


def packed_man_pages() -> dict[str, bytes]:
    """As packages have them, by place."""
    return {
        f"usr/share/man/man1/{name}.gz": gzip.compress(page.encode(), 9, mtime=0)
        for name, page in man_pages().items()
    }
