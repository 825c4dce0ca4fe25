# SPDX-License-Identifier: Apache-2.0
"""``seawall oom explain|predict``: who was killed and why; who would be killed now.

Each question is a module of its own, imported when it is the one that was asked.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from seawall.cli.verb_parser import VerbParser

QUESTIONS: Final = {
    "explain": "explain the OOM kills of a kernel log, of this machine or of a file",
    "predict": "say who would be killed now, and what that would give back",
}


class _Question(VerbParser):
    """A parser that learns its options when it is the one that parses."""

    question = ""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's; the options come from the question's module first."""
        if self.question:
            module, self.question = _module(self.question), ""
            module.add_arguments(self)
        return super().parse_known_args(args, namespace)


def _module(question: str) -> Any:
    return import_module(f"seawall.cli.oom_{question}")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the two questions, ``explain`` and ``predict``, to the parser of ``seawall oom``."""
    words: Sequence[str] = tuple(QUESTIONS)
    questions = parser.add_subparsers(
        dest="question", metavar="|".join(words), required=True, prog="seawall oom",
        parser_class=_Question,
    )  # fmt: skip
    for name, text in QUESTIONS.items():
        # A question may have a --timeout of its own in place of the common one.
        chosen = questions.add_parser(
            name, help=text, description=text[0].upper() + text[1:], conflict_handler="resolve"
        )
        chosen.question = name


def complete(arguments: Namespace) -> None:
    """Defaults that depend on other options, where the question has such."""
    module = _module(arguments.question)
    if hasattr(module, "complete"):
        module.complete(arguments)


def run(arguments: Namespace) -> int:
    """Answer the question; the exit status."""
    return int(_module(arguments.question).run(arguments))
