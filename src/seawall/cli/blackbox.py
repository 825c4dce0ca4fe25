# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox list|show|export``: what a node's guard wrote down before the node went."""

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from functools import cached_property
from importlib import import_module
from typing import Final

from seawall.blackbox.reader import Box
from seawall.cli.source_options import BOX, TIMEOUT_SECONDS, add_color_argument, seconds_of
from seawall.cli.verb import Shown, Verb
from seawall.cli.verb_parser import usage_of_verbs
from seawall.problems import UsageProblem

WANTED: Final = ("DAC_READ_SEARCH",)
"""The file is root's alone."""
VERBS: Final = {
    "list": "what is in it: boots, gaps, what was decided",
    "show": "a minute of it as a table: the last one, or the one before --at",
    "export": "a moment and the minute before it as a bundle, for another machine",
}
_ABOUT: Final = {
    "list": "Boots with their spans, times without frames, times in which every tick was\n"
    "kept, decisions and kills.",
    "show": "One line for each moment: state, headroom, uncounted memory and\n"
    "how fast it grows, who stands still, who has most; decisions between them.",
    "export": "Writes a bundle that every reading verb takes with --from, and --at with it.",
}  # fmt: skip
_EPILOG: Final = f"""\
FILE: the black box; default {BOX}.  A copy of it will do.
Ask it:  seawall why --from FILE --at TIME"""
SHOWN_SECONDS: Final = 60.0
EXPORT_MOST_SECONDS: Final = 900.0


def add_arguments(parser: ArgumentParser) -> None:
    """The sub-verbs with their options."""
    verbs = parser.add_subparsers(
        dest="box_verb", metavar="|".join(VERBS), prog="seawall blackbox"
    )  # fmt: skip
    for name, words in VERBS.items():
        verb = verbs.add_parser(
            name, help=words, description=_ABOUT[name], epilog=_EPILOG,
            formatter_class=RawDescriptionHelpFormatter,
        )  # fmt: skip
        verb.add_argument("file", metavar="FILE", nargs="?", default=BOX)
        if name != "list":
            _add_time(verb, name)
        if name == "export":
            verb.add_argument(
                "-o", "--output", metavar="FILE",
                help="'-' for stdout; default: a new file under /run/seawall, not on the disk",
            )  # fmt: skip
        else:
            verb.add_argument("--whole", action="store_true", help="leave nothing out")
            add_color_argument(verb)
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout")
        verb.add_argument(
            "--timeout", type=seconds_of, default=TIMEOUT_SECONDS, metavar="SECONDS",
            help="give up after this long (default %(default)g)",
        )  # fmt: skip


def _add_time(verb: ArgumentParser, name: str) -> None:
    verb.add_argument(
        "--at", metavar="TIME",
        help="where it ends: 10:00:31, 2026-11-23T10:00:31Z (UTC without a zone), -90s before the "
        "end, @1795428031, a decision (1a2b3c4d-0007) or a frame (#4711); default the last moment",
    )  # fmt: skip
    verb.add_argument(
        "--for", dest="seconds", metavar="SECONDS", default=SHOWN_SECONDS,
        type=_exported if name == "export" else seconds_of,
        help="so much of the time before it (default %(default)g)",
    )  # fmt: skip


def _exported(text: str) -> float:
    seconds = seconds_of(text)
    if seconds > EXPORT_MOST_SECONDS:
        most = f"{EXPORT_MOST_SECONDS:g}"
        raise ArgumentTypeError(
            f"expected at most {most} seconds, not {text!r}; copy the whole box"
        )
    return seconds


class BoxVerb(Verb[Shown]):
    """A verb that looks into one black box; its text names the machine by itself."""

    is_framed = False

    @cached_property
    def box(self) -> Box:
        """Opened when it is asked for first; UsageProblem."""
        return Box.open(self.arguments.file)


def check_is_there(path: str) -> None:
    """UsageProblem: nobody named a file, and the usual one is not there."""
    if path != BOX:
        return
    try:
        os.stat(path)
    except FileNotFoundError as error:
        raise UsageProblem(
            f"{path}: is not there: no guard has kept a black box here, or guard.toml names "
            "another place; give FILE"
        ) from error
    except OSError:
        return  # whoever opens it says why


def run(arguments: Namespace) -> int:
    """Do what was asked; the exit status."""
    if arguments.box_verb is None:
        return usage_of_verbs("blackbox", VERBS, 7)
    check_is_there(arguments.file)
    return int(import_module(f"seawall.cli.blackbox_{arguments.box_verb}").run(arguments))
