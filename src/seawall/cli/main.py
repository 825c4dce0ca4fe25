# SPDX-License-Identifier: Apache-2.0
"""``seawall VERB``: one module per verb, imported only when it is asked for.

Exit status: 0 answered, whatever was found; 10 and 11 (fires, blind) only with
``--fail-on``; 2 usage or unusable input; 70 a bug of ours.

Imports stand in the functions that need them: what ``console`` does first must not wait for
forty files from a disk that is stuck.
"""

import sys

from seawall.cli import statuses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Collection
    from types import ModuleType
    from typing import NoReturn

VERBS = {
    "why": "what is wrong with this machine, worst first, and what to do",
    "memory": "where the memory went, and who holds uncounted memory",
    "pods": "workloads by memory: limit, charge, cache, pressure",
    "top": "a live view: how long memory lasts, and who takes it",
    "oom": "explain an OOM kill from a kernel log; say who would be killed now",
    "numbers": "one container's memory as each tool shows it, and why they differ",
    "cache": "what the page cache holds, file by file, and what is dirty",
    "stacks": "what the machine does while it hangs: kernel stacks, grouped",
    "gpu": "which container cannot use its GPU, who refuses it, and why",
    "report": "one page for the ticket: what happened, evidence, what to do",
    "capture": "record what every reading asks into a bundle for another machine",
    "blackbox": "what a node's last minutes were: list, show, export",
    "guard": "keep the node alive: the culprit goes first, nobody else goes",
    "cluster": "node after node dies: which workload it is; why, suspects, deaths",
    "lab": "reproduce an incident inside a cgroup with a limit of its own",
    "rules": "list or show the rules that judge",
    "check": "judge one rule, for scripts and node-problem-detector",
    "version": "which Seawall this is, by which Python it runs and from where",
}

SERVICES = {
    "agent": "tells a cluster's API server what guard and black box say of this node",
}
"""Verbs that units and manifests start: the screen of --help has no line for them."""


def console() -> "NoReturn":
    """The entry point of the installed command ``seawall``; ends the process with its status."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        is_first_line_said = _is_right_and_live(sys.argv[1:])
        if is_first_line_said:
            _say_first_line(sys.argv[1])
        status = main(sys.argv[1:], is_first_line_due=not is_first_line_said)
        sys.stdout.flush()
    except BrokenPipeError:
        status = statuses.BROKEN_PIPE
    except KeyboardInterrupt:
        status = 130
    except Exception as error:  # noqa: BLE001 - the border of the program
        status = _told(error)
    if status:
        import os

        sys.stderr.flush()
        os._exit(status)  # the interpreter would complain once more about stdout
    sys.exit(0)


def _told(error: Exception) -> int:
    """A stdout that takes nothing is the caller's; anything else is a bug, traceback and all."""
    import errno

    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
        sys.stderr.write(f"seawall: stdout: {error.strerror}; send it elsewhere\n")
        return statuses.USAGE
    import traceback

    traceback.print_exception(error)
    sys.stderr.write("this is a bug in seawall; please report it with the lines above\n")
    return statuses.BUG


def _open_closed_streams() -> None:
    """After ``>&-`` Python has no stdout at all, and the next file opened would become it."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        import os

        null = os.open(os.devnull, os.O_RDWR)
        while null < 3:  # until 0, 1 and 2 are taken
            null = os.dup(null)
        os.close(null)
        sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - for life
        sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _is_right_and_live(argv: list[str]) -> bool:
    """``why`` or ``stacks`` of this very machine, as text; known without a parser, whose files
    a stuck disk would have to read first.
    """
    return argv[:1] in (["why"], ["stacks"]) and not set(argv[1:]) - {"--audit", "--whole"}


def _wants_first_line(arguments: "Namespace") -> bool:
    """The same of words that a parser has found to be right."""
    others = ("json", "oneline", "bundle", "root", "at", "subject")
    return arguments.verb in ("why", "stacks") and not any(
        getattr(arguments, name, None) for name in others
    )


def _say_first_line(verb: str) -> None:
    from seawall.host.vitals import first_line, machine_line

    print(machine_line() if verb == "why" else first_line(), flush=True)
    from seawall.host import own_code  # its files come after the line

    own_code.keep()


def main(argv: list[str], *, is_first_line_due: bool = False) -> int:
    """Run one verb; the exit status."""
    from importlib import import_module

    from seawall.host.watchdog import run_watched
    from seawall.problems import UsageProblem

    try:
        arguments = parse(argv)
        if arguments.verb is None:
            return 0
        verb = import_module(f"seawall.cli.{arguments.verb}")
        if hasattr(verb, "complete"):
            verb.complete(arguments)
        if getattr(arguments, "at", None) is not None and getattr(arguments, "bundle", "") is None:
            from seawall.cli.source_options import box_of

            arguments.bundle, arguments.root = box_of(arguments.root), None
        if is_first_line_due and _wants_first_line(arguments):
            _say_first_line(arguments.verb)
        timeout = getattr(arguments, "timeout", None)
        if timeout is None:
            return int(verb.run(arguments))
        from seawall.cli.console import stderr_is_terminal, terminal_columns
        from seawall.cli.progress import ProgressLine
        from seawall.cli.source_options import INTERIM, SLOT

        terminal_columns()
        return run_watched(
            lambda: _run(verb, arguments),
            timeout,
            lambda has_spoken: _hung(arguments, has_spoken=has_spoken),
            SLOT,
            INTERIM,
            ProgressLine(arguments.verb) if stderr_is_terminal() else None,
        )
    except UsageProblem as problem:
        return _usage(problem)


def _run(verb: "ModuleType", arguments: "Namespace") -> int:
    from seawall.problems import UsageProblem

    try:
        return int(verb.run(arguments))
    except UsageProblem as problem:
        return _usage(problem)


def _usage(problem: Exception) -> int:
    from seawall.views.terminal import plain

    sys.stderr.write(f"seawall: {plain(str(problem))}\n")
    return statuses.USAGE


def _hung(arguments: "Namespace", *, has_spoken: bool) -> int:
    """The worker itself never came back from one question: say which, and return."""
    from seawall.cli.hung import tell

    return tell(arguments, has_spoken=has_spoken)


def parse(argv: list[str]) -> "Namespace":
    """Only the chosen verb's module is imported: each one not imported is a file not read."""
    from argparse import Namespace

    chosen = next((word for word in argv if not word.startswith("-")), None)
    if chosen is not None and chosen not in VERBS and chosen not in SERVICES:
        raise _no_verb(chosen)
    parser = parser_of(() if chosen is None else (chosen,))
    if not argv:
        parser.print_help()
        return Namespace(verb=None)
    return parser.parse_args(_with_times(argv))


def parser_of(chosen: "Collection[str]") -> "ArgumentParser":
    """The command line of the verbs that are named; of none: of all, without their options."""
    from importlib import import_module

    from seawall.cli.verb_parser import ProgramParser, VerbParser
    from seawall.version import VERSION

    parser = ProgramParser(VERBS, prog="seawall")
    parser.add_argument("--version", action="version", version=f"seawall {VERSION}")
    # A prog of its own spares argparse a formatter.
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, prog="seawall",
                                  parser_class=VerbParser)  # fmt: skip
    for name, words in {**VERBS, **SERVICES}.items():
        if chosen and name not in chosen:
            continue  # each costs, and one is asked for
        verb_parser = verbs.add_parser(name, help=words, description=words[0].upper() + words[1:])
        if name in chosen:
            import_module(f"seawall.cli.{name}").add_arguments(verb_parser)
    return parser


def _no_verb(word: str) -> Exception:
    """The verb that may have been meant."""
    from difflib import get_close_matches

    from seawall.problems import UsageProblem

    near = get_close_matches(word.lower(), VERBS, n=1, cutoff=0.5)
    meant = f"did you mean seawall {near[0]}?" if near else f"the verbs: {', '.join(VERBS)}"
    return UsageProblem(f"no verb {word!r}; {meant}")


def _with_times(argv: list[str]) -> list[str]:
    """``--at -90s`` as one word: argparse takes what begins with ``-`` for an option."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] == "--at" and word[:1] == "-" and word[1:2].isdecimal():
            joined[-1] = f"--at={word}"
        else:
            joined.append(word)
    return joined
