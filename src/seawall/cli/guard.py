# SPDX-License-Identifier: Apache-2.0
"""``seawall guard``: run it, check its file, explain what it means here, undo, status.

``run``, ``check`` and ``undo`` are no ``Verb``s: they act, or say one sentence.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from typing import Final

from seawall.cli.source_options import add_color_argument, add_form_arguments
from seawall.cli.verb_parser import usage_of_verbs

WANTED: Final = ()
VERBS: Final = {
    "run": "guard this machine until it is stopped (what the unit starts)",
    "check": "is the configuration right? exit 2 and one sentence if not",
    "explain": "what the configuration means on this very machine",
    "status": "what the guard that runs here says of itself",
    "metrics": "serve its metrics and its health over HTTP",
    "pins": "whose program text is kept in memory, how much, what was left out",
    "replay": "what was recorded, judged again: as then, and with other settings",
    "report": "what it did or would have done, held against what really happened",
    "undo": "take back what a guard changed: thaw, raise limits",
}
_ABOUT: Final = {
    "run": 'Looks all the time; acts only with mode = "enforce" in its file. No option turns\n'
    "killing on.  A second guard on a machine observes.",
    "check": "Reads FILE (else $SEAWALL_CONFIG, else /etc/seawall/guard.toml) as the guard\n"
    "would, owner and mode included.  --suggest-scope proposes one by what runs here.",
    "explain": "Mode, scope, floor and target in bytes, who is protected and why, what cannot be\n"
    "done here, which other guards live.  Reads only.",
    "status": "Prints /run/seawall/status, and says whether a guard runs and how old it is.\n"
    "Exit 0 whatever it says, unless --fail-on is given.",
    "metrics": "GET /metrics: the guard's textfile, as Prometheus takes it; 503 when it is\n"
    "older than two minutes.  GET /healthz: 200 while a guard runs, writes and can do\n"
    "what its mode says, else 503 with a sentence.  A process of its own.",
    "pins": "By program: its text, how much of it was in memory, what is pinned, what is left\n"
    "out and why.  Where no pinner runs: what would be pinned.  Reads only.",
    "replay": "Judges the ticks of a black box once more, and holds every decision against the\n"
    "journal in it.  --config: also by other settings: whom, how much sooner or\n"
    "later, who is spared.  Reads only, whoever owns the files.",
    "report": "From decision journals and black boxes, of one node or many: each time it acted\n"
    "or would have, whom, how many seconds before what really happened, who died, and\n"
    "where it would have been wrong.  Reads only.",
    "undo": "Thaws what a guard froze and puts limits back, as its journal says.  Never what\n"
    "others froze or changed since.  Removes the tracing that a killed watcher left.\n"
    "--all: its files in /run/seawall too.",
}  # fmt: skip


def add_arguments(parser: ArgumentParser) -> None:
    """The sub-verbs with their options."""
    verbs = parser.add_subparsers(dest="guard_verb", metavar="VERB", prog="seawall guard")
    for name, words in VERBS.items():
        verb = verbs.add_parser(
            name, help=words, description=_ABOUT[name],
            formatter_class=RawDescriptionHelpFormatter,
        )  # fmt: skip
        if name == "check":
            verb.add_argument("file", metavar="FILE", nargs="?", help="instead of the usual one")
            verb.add_argument(
                "--suggest-scope",
                action="store_true",
                help="read no file: print a scope for what runs on this machine",
            )
        if name in ("run", "explain", "metrics", "pins"):
            verb.add_argument(
                "--config", metavar="FILE",
                help="default $SEAWALL_CONFIG, else /etc/seawall/guard.toml",
            )  # fmt: skip
        if name in ("explain", "status", "pins"):
            verb.add_argument("--json", action="store_true", help="one JSON document on stdout")
        if name == "status":
            verb.add_argument(
                "--fail-on", choices=("critical", "warning"),
                help="exit 10 if no guard runs, or it hangs, or enforces and cannot kill (warning: "
                "or tells of a problem); 11 if that cannot be seen",
            )  # fmt: skip
        if name == "explain":
            verb.add_argument("--whole", action="store_true", help="every workload by name")
            add_color_argument(verb)
        if name in _MORE:
            _MORE[name](verb)


def _add_undo(verb: ArgumentParser) -> None:
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--all", action="store_true", help="remove its files too")
    how.add_argument(
        "--after-stop", action="store_true",
        help="what the unit runs: leave to a guard that lives what it froze or lowered",
    )  # fmt: skip


def _add_replay(verb: ArgumentParser) -> None:
    verb.add_argument(
        "file", metavar="FILE", nargs="?", help="a black box; default /var/lib/seawall/blackbox"
    )
    verb.add_argument("--config", metavar="OTHER.toml", help="the settings to try out")
    verb.add_argument(
        "--at", metavar="TIME",
        help="only the burst at this moment: a time, a decision, a frame (#4711), -90s",
    )  # fmt: skip
    add_form_arguments(verb)


def _add_report(verb: ArgumentParser) -> None:
    verb.add_argument(
        "files", metavar="FILE", nargs="*",
        help="journals (decisions.jsonl), black boxes, or folders of them, one a node; .gz too; "
        "default: this machine's own",
    )  # fmt: skip
    verb.add_argument(
        "--since", metavar="TIME", default="30d",
        help="how far back: 12h, 30d, 2w or a date (default 30d)",
    )  # fmt: skip
    verb.add_argument("--whole", action="store_true", help="every occasion, not the last 40")
    add_form_arguments(verb)


def _add_metrics(verb: ArgumentParser) -> None:
    verb.add_argument(
        "--listen", metavar="ADDRESS:PORT", default="127.0.0.1:9464",
        help="default %(default)s; other machines reach it only where you say so",
    )  # fmt: skip


_MORE: Final = {
    "metrics": _add_metrics, "replay": _add_replay, "report": _add_report, "undo": _add_undo,
}  # fmt: skip


def run(arguments: Namespace) -> int:
    """Do what was asked; the exit status."""
    if arguments.guard_verb == "run":
        return _run(arguments)
    if arguments.guard_verb == "check":
        return _check(arguments)
    if arguments.guard_verb is not None:
        from importlib import import_module  # noqa: PLC0415 - the verb that was asked for

        return int(import_module(f"seawall.cli.guard_{arguments.guard_verb}").run(arguments))
    return usage_of_verbs("guard", VERBS, 9)


def _run(arguments: Namespace) -> int:
    from seawall.guard.config import chosen_path  # noqa: PLC0415 - only this verb's
    from seawall.guard.launcher import run as start  # noqa: PLC0415

    start(chosen_path(arguments.config))


def _check(arguments: Namespace) -> int:
    """UsageProblem, and with it status 2, when the file is wrong."""
    if arguments.suggest_scope:
        return _suggest_scope()
    from seawall.guard.config import PATH, chosen_path, read  # noqa: PLC0415 - only this verb's

    path = chosen_path(arguments.file)
    settings = read(path)
    import os  # noqa: PLC0415

    is_there = path != PATH or os.path.exists(path)
    words = "is right" if is_there else "is not there: the defaults hold"
    print(f"{path} {words}; mode {settings.mode}")
    return 0


def _suggest_scope() -> int:
    from seawall.cli.guard_here import here  # noqa: PLC0415 - only this option's
    from seawall.guard.scope_suggestion import lines, suggestions_of  # noqa: PLC0415
    from seawall.guard.settings import Settings  # noqa: PLC0415
    from seawall.host.live import LiveHost  # noqa: PLC0415
    from seawall.readings.snapshot import Snapshot  # noqa: PLC0415
    from seawall.views.terminal import plain  # noqa: PLC0415

    host = LiveHost("/")
    found = here(Settings(), Snapshot(host), host)
    for what, why, provide in found.unseen:
        print(f"# not seen: {plain(what)}: {plain(why)}{f' (needs {provide})' if provide else ''}")
    for line in lines(suggestions_of(found.seen)):
        print(plain(line))
    return 0
