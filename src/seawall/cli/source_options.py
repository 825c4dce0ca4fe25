# SPDX-License-Identifier: Apache-2.0
"""Where a reading verb gets its answers: this machine, ``--root DIR`` or ``--from BUNDLE``, which
may be a black box too.
"""

import os
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Final

from seawall.host.host import NOT_IN_REPORT
from seawall.host.watchdog import Interim, Slot
from seawall.problems import UsageProblem

if TYPE_CHECKING:  # a verb that is given a FILE needs no machine
    from seawall.host.live import LiveHost
    from seawall.sources.source import Source

TIMEOUT_SECONDS: Final = 20.0
DAY_SECONDS: Final = 86_400
BOX: Final = "/var/lib/seawall/blackbox"
"""Where a guard writes it."""

SLOT: Final = Slot()
"""Tells the watchdog which question is open."""
INTERIM: Final = Interim()
"""Tells it what is certain so far."""


def add_source_arguments(
    parser: ArgumentParser, *, has_window: bool = False, has_json: bool = True
) -> None:
    """The options that every reading verb has; ``has_window``: it has a --for of its own, which
    comes on top of the default for --timeout (see ``complete_timeout``).
    """
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--from", dest="bundle", metavar="BUNDLE",
        help="a recorded bundle ('-' for stdin), or a black box",
    )  # fmt: skip
    where.add_argument(
        "--root", metavar="DIR", help="the root of the host: /host in a DaemonSet, a report"
    )
    parser.add_argument(
        "--at", metavar="TIME",
        help="which moment of the black box: 10:00:31, 2026-11-23T10:00:31Z, -90s, a decision "
        "(1a2b3c4d-0007) or a frame (#4711); default its last",
    )  # fmt: skip
    if has_json:
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    default = f"--for and {TIMEOUT_SECONDS:g}" if has_window else f"{TIMEOUT_SECONDS:g}"
    parser.add_argument(
        "--timeout", type=seconds_of, default=None if has_window else TIMEOUT_SECONDS,
        metavar="SECONDS", help=f"stop asking after this long (default {default})",
    )  # fmt: skip
    add_color_argument(parser)


def add_form_arguments(parser: ArgumentParser) -> None:
    """``--json`` and ``--color``, of a verb that has not all of the above."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    add_color_argument(parser)


def add_color_argument(parser: ArgumentParser) -> None:
    """Whether the text has colours."""
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="default: auto"
    )


def complete_timeout(arguments: Namespace) -> None:
    """Of a verb that ``has_window``: --timeout when none was given."""
    if arguments.timeout is None:
        arguments.timeout = arguments.seconds + TIMEOUT_SECONDS


def seconds_of(text: str) -> float:
    """A number of seconds from the command line, of at most a day."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= DAY_SECONDS:
        raise ArgumentTypeError(f"expected seconds, more than 0 and at most a day, not {text!r}")
    return seconds


def box_place(root: str | None) -> str:
    """Where the guard of this host, or of the one at ``root``, keeps its black box, if it does."""
    return os.path.join(root or "/", BOX.lstrip("/"))


def box_of(root: str | None) -> str:
    """Where --at looks when no --from says where; UsageProblem when no black box is there."""
    path = box_place(root)
    if not os.path.isfile(path):
        raise UsageProblem(
            f"--at needs a record to look into, and {path} is not there: no guard has kept a "
            "black box here; name one with --from"
        )
    return path


def open_source(arguments: Namespace, *, with_cmdline: bool = False) -> "Source":
    """The source that the arguments name; UsageProblem when it cannot be used."""
    from seawall.host.live import LiveHost  # noqa: PLC0415 - see above
    from seawall.sources.source import Source  # noqa: PLC0415

    at = getattr(arguments, "at", None)
    if arguments.bundle is not None:
        return _recorded(arguments.bundle, at)
    root = arguments.root or "/"
    if os.path.isfile(root):
        return _recorded(root, None)
    if not os.path.isdir(root):
        raise UsageProblem(f"--root {root}: not a folder")
    if os.path.exists(os.path.join(root, "MANIFEST.json")):
        return _recorded(root, None)
    until = time.monotonic() + arguments.timeout
    host = LiveHost(root, with_cmdline=with_cmdline, until=until, slot=SLOT)
    if host.is_live:
        return Source(host, None, live=host)
    return _of_tree(root, host)


def _of_tree(root: str, tree: "LiveHost") -> "Source":
    """Files that somebody collected: another tool's report, or the root of a host."""
    # Imported here: the machine itself needs none of it.
    from seawall.host.reports import must_gather, sos  # noqa: PLC0415
    from seawall.host.reports.report_host import ReportHost  # noqa: PLC0415
    from seawall.sources.source import Source  # noqa: PLC0415

    for tool in (sos, must_gather):
        if report := tool.report_of(tree):
            return Source(ReportHost(tree, report), None, live=None)
    if not os.path.isdir(os.path.join(root, "proc")):
        for name in ("nvidia-bug-report.log", "nvidia-bug-report.log.gz"):
            if os.path.isfile(os.path.join(root, name)):
                return _recorded(os.path.join(root, name), None)
        raise UsageProblem(
            f"--root {root}: no proc folder in it; expected the root of a host, a sos report, a "
            "must-gather or an nvidia-bug-report"
        )
    return Source(tree, None, live=None)


def _recorded(path: str, at: str | None) -> "Source":
    # Imported here: the machine itself needs none of it, and tarfile costs start-up.
    from seawall.blackbox.reader import is_box  # noqa: PLC0415

    if is_box(path):
        from seawall.sources.box_source import box_source  # noqa: PLC0415

        return box_source(path, at)
    from seawall.host.bundle import BundleHost, open_bundle  # noqa: PLC0415
    from seawall.host.reports import nvidia_bug_report  # noqa: PLC0415
    from seawall.sources.source import Source, notes_of  # noqa: PLC0415

    if os.path.isfile(path) and nvidia_bug_report.is_report(path):
        pass_ = nvidia_bug_report.round_of(path)
        return Source(BundleHost(pass_, NOT_IN_REPORT), None, live=None)
    bundle = open_bundle(path)
    if "blackbox" in bundle.manifest:
        from seawall.sources.box_source import export_source  # noqa: PLC0415

        return export_source(bundle, path, at)
    if at is not None:
        raise UsageProblem(f"--at: {path} is an ordinary bundle, and of one moment; leave it out")
    rounds = bundle.rounds
    return Source(
        rounds[0],
        rounds[-1] if len(rounds) > 1 else None,
        live=None,
        notes=notes_of(bundle),
        rounds=rounds,
        cut=bundle.cut,
    )
