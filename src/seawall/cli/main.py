# SPDX-License-Identifier: Apache-2.0
"""``seawall VERB``: one module per verb, imported only when it is asked for.

Exit status: 0 answered, whatever was found; 10 and 11 (fires, blind) only with
``--fail-on``; 2 usage or unusable input; 70 a bug of ours.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from importlib import import_module
from typing import Final, NoReturn

from seawall.host.watchdog import run_watched
from seawall.problems import UsageProblem
from seawall.version import VERSION

VERBS: Final = {
    "why": "what is wrong with this machine, worst first, and what to do",
    "memory": "where the memory went: lines that add up, and what no line explains",
    "pods": "workloads by memory: limit, charge, cache, pressure",
    "capture": "record what every reading asks into a bundle for another machine",
    "rules": "list or show the rules that judge",
    "check": "judge one rule, for scripts and node-problem-detector",
}
USAGE_STATUS: Final = 2


def console() -> NoReturn:
    """The installed command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    """Run one verb; the exit status."""
    try:
        arguments = _parse(argv)
        verb = import_module(f"seawall.cli.{arguments.verb}")
        timeout = getattr(arguments, "timeout", None)
        if timeout is None:
            return int(verb.run(arguments))
        return run_watched(lambda: _run(verb, arguments), timeout, lambda: _hung(arguments))
    except UsageProblem as problem:
        return _usage(problem)
    except BrokenPipeError:
        return 141


def _run(verb: object, arguments: Namespace) -> int:
    try:
        return int(verb.run(arguments))  # type: ignore[attr-defined]
    except UsageProblem as problem:
        return _usage(problem)


def _usage(problem: UsageProblem) -> int:
    from seawall.views.terminal import plain  # noqa: PLC0415 - only on the way out

    sys.stderr.write(f"seawall: {plain(str(problem))}\n")
    return USAGE_STATUS


def _hung(arguments: Namespace) -> int:
    """The worker itself never came back from one question: say which, and return."""
    from seawall.cli.source import SLOT  # noqa: PLC0415 - only on the way out
    from seawall.views.document import render  # noqa: PLC0415
    from seawall.views.terminal import plain  # noqa: PLC0415

    what = plain(SLOT.read()) or "its first question"
    why = f"no answer within --timeout {arguments.timeout:g} s; the reader was left behind"
    if getattr(arguments, "json", False):
        row = {"what": what, "why": why, "provide": "a longer --timeout"}
        name = f"seawall.{arguments.verb}/1"
        sys.stdout.write(
            render({"schema": name, "tool_version": VERSION, "could_not_see": [row]}) + "\n"
        )
    else:
        sys.stdout.write(f"\nCould not see\n  {what}: {why}\n")
    return 0


def _parse(argv: list[str]) -> Namespace:
    """Only the chosen verb's module is imported: each one not imported is a file not read."""
    chosen = next((word for word in argv if not word.startswith("-")), None)
    parser = ArgumentParser(
        prog="seawall",
        description="Explains a Linux container host in plain words.",
        formatter_class=RawDescriptionHelpFormatter,
        epilog="First thing on a node that barely answers:  seawall why",
    )
    parser.add_argument("--version", action="version", version=f"seawall {VERSION}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, words in VERBS.items():
        verb_parser = verbs.add_parser(name, help=words, description=words[0].upper() + words[1:])
        if name == chosen:
            import_module(f"seawall.cli.{name}").add_arguments(verb_parser)
    return parser.parse_args(argv)
