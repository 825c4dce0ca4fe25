# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu [WORKLOAD]``, and ``gpu wait``, ``gpu check``, ``gpu query``.

Each question is a module of its own, imported when it is the one that was asked.
"""

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Any, Final

from seawall.cli.verb_parser import VerbParser

WANTED: Final = ("SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH")
"""Capabilities without which something stays unseen; trying devices as a container takes root."""
TABLE: Final = "table"
QUESTIONS: Final = {
    "wait": "end as soon as every control node that loaded modules imply is there",
    "check": "in a workload's own start: 10 and a sentence if its GPU does not work",
    "query": "the devices as the driver tells of them; why its calls fail",
    "repair": "the steps that mend a container, the plugin, the host; --do does them",
}
_EPILOG: Final = "seawall gpu QUESTION --help\n" + "\n".join(
    f"  {name:6} {words}" for name, words in QUESTIONS.items()
)


class _Parser(VerbParser):
    """The first word may be a question, which has options of its own; else it is a WORKLOAD.

    argparse's sub-commands cannot be left out.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's; the options come from the question's module."""
        words = list(args or ())
        question = words[0] if words and words[0] in QUESTIONS else TABLE
        if question != TABLE:
            words = words[1:]
            self.prog, self.epilog = f"{self.prog} {question}", None
            text = QUESTIONS[question]
            self.description = f"{text[0].upper()}{text[1:]}."
        _module(question).add_arguments(self)
        self.set_defaults(question=question)
        return super().parse_known_args(words, namespace)


def _module(question: str) -> Any:
    return import_module(f"seawall.cli.gpu_{question}")


def add_arguments(parser: ArgumentParser) -> None:
    """They are known when the words are."""
    from argparse import RawDescriptionHelpFormatter  # noqa: PLC0415 - as in main

    parser.__class__ = _Parser
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _EPILOG


def complete(arguments: Namespace) -> None:
    """Defaults that depend on the question."""
    module = _module(arguments.question)
    if hasattr(module, "complete"):
        module.complete(arguments)


def run(arguments: Namespace) -> int:
    """Answer the question; the exit status."""
    return int(_module(arguments.question).run(arguments))
