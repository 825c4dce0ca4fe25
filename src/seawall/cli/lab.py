# SPDX-License-Identifier: Apache-2.0
"""``seawall lab KIND``: an incident on demand, inside a limit; and ``seawall lab clean``.

Not a ``Verb``: it acts, tells how it goes, and its document is what came of it.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import Any, Final

from seawall.cli import statuses
from seawall.cli.lab_about import ABOUT, COMMON, UNCOUNTED, VERBS
from seawall.cli.source_options import add_color_argument
from seawall.cli.verb_parser import usage_of_verbs

WANTED: Final = ()
SECONDS: Final = 20.0
SECONDS_MOST: Final = 600.0
_SECONDS_OF: Final = dict.fromkeys(UNCOUNTED, 60.0)
"""Time to open another terminal: at its default rate it takes for half a minute and more."""
_IOPS_MOST: Final = 1_000_000


def add_arguments(parser: ArgumentParser) -> None:
    """The sub-verbs with their options."""
    verbs = parser.add_subparsers(dest="lab_verb", metavar="KIND", prog="seawall lab")
    for name, words in VERBS.items():
        verb = verbs.add_parser(
            name, help=words, formatter_class=RawDescriptionHelpFormatter,
            description=ABOUT[name] + ("" if name == "clean" else "\n" + COMMON),
        )  # fmt: skip
        _OPTIONS[name](verb)
        _add_common(verb, is_run=name != "clean", seconds=_SECONDS_OF.get(name, SECONDS))


def _swarm(verb: ArgumentParser) -> None:
    verb.add_argument("--processes", type=_count, default=1280, metavar="N", help=_BY_DEFAULT)
    _add_size(verb, "--each", "8MiB", "memory of one process")
    _add_limit(verb, "64MiB")
    _add_killing(verb)


def _hog(verb: ArgumentParser) -> None:
    _add_size(verb, "--size", "512MiB", "memory that it wants")
    _add_limit(verb, "256MiB")
    verb.add_argument(
        "--step", type=_size, metavar="SIZE", help="take so much each second (default: at once)"
    )
    _add_killing(verb)


def _fill(verb: ArgumentParser) -> None:
    _add_size(verb, "--size", "1GiB", "of the file")
    _add_limit(verb, "256MiB")
    _add_folder(verb)


def _thrash(verb: ArgumentParser) -> None:
    verb.add_argument("--programs", type=_count, default=50, metavar="N", help=_BY_DEFAULT)
    _add_size(verb, "--code", "8MiB", "code of one program")
    _add_limit(verb, "128MiB")
    verb.add_argument(
        "--iops", type=_speed, default=2000, metavar="N",
        help="reads a second that the disk is held to; 0: as fast as it is (default 2000)",
    )  # fmt: skip
    _add_folder(verb)


def _rings(verb: ArgumentParser) -> None:
    _add_uncounted(verb, "256MiB", "8MiB", "128MiB", "of the rings")


def _egl(verb: ArgumentParser) -> None:
    _add_uncounted(verb, "768MiB", "16MiB", "512MiB", "of the framebuffers")


def _cuda(verb: ArgumentParser) -> None:
    _add_uncounted(verb, "768MiB", "16MiB", "512MiB", "of the host memory")


def _add_uncounted(verb: ArgumentParser, size: str, rate: str, limit: str, words: str) -> None:
    _add_size(verb, "--size", size, words)
    _add_limit(verb, limit)
    verb.add_argument(
        "--rate", dest="step", type=_size, default=_size(rate), metavar="SIZE",
        help=f"take so much each second; 0: at once (default {rate})",
    )  # fmt: skip


_BY_DEFAULT: Final = "default %(default)s"
_OPTIONS: Final[dict[str, Callable[[ArgumentParser], None]]] = {
    "swarm": _swarm, "fill": _fill, "hog": _hog, "thrash": _thrash, "rings": _rings,
    "egl": _egl, "cuda-host": _cuda, "cuda-managed": _cuda, "clean": lambda _verb: None,
}  # fmt: skip


def _add_size(verb: ArgumentParser, name: str, default: str, words: str) -> None:
    verb.add_argument(
        name,
        type=_size,
        default=_size(default),
        metavar="SIZE",
        help=f"{words} (default {default})",
    )


def _add_limit(verb: ArgumentParser, default: str) -> None:
    _add_size(verb, "--limit", default, "of the lab's cgroup")


def _add_folder(verb: ArgumentParser) -> None:
    verb.add_argument(
        "--folder", metavar="DIR", help="on a disk (default /var/tmp, or /tmp if that is one)"
    )


def _add_killing(verb: ArgumentParser) -> None:
    verb.add_argument("--respawn", action="store_true", help="replace what was killed")
    verb.add_argument(
        "--killer-off", action="store_true",
        help="cgroup v1: switch the OOM killer off for the lab's cgroup, so that it hangs",
    )  # fmt: skip


def _add_common(verb: ArgumentParser, *, is_run: bool, seconds: float) -> None:
    if is_run:
        verb.add_argument(
            "--for", "--seconds", dest="seconds", type=_seconds, default=seconds,
            metavar="SECONDS",
            help=f"end after so long (default {seconds:g}, at most {SECONDS_MOST:g})",
        )  # fmt: skip
        verb.add_argument(
            "--parent", metavar="CGROUP", help="make it below this one (default: this shell's own)"
        )
        verb.add_argument("--uid", type=_uid, metavar="N", help="run the processes as this user")
        verb.add_argument(
            "--swap",
            action="store_true",
            help="let it swap, at most half of what is free of it (default: no swap)",
        )
        verb.add_argument(
            "--yes-large",
            action="store_true",
            help="more than half of what is there is meant so, up to nine tenths",
        )
    verb.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
    verb.add_argument("--json", action="store_true", help="one JSON document at the end")
    add_color_argument(verb)


def _size(text: str) -> int:
    from seawall.lab.sizes import bytes_of  # noqa: PLC0415 - only this verb's

    try:
        return bytes_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _count(text: str) -> int:
    from seawall.lab.plan import PROCESSES_MOST  # noqa: PLC0415 - only this verb's

    return _number(text, f"a number from 1 to {PROCESSES_MOST:,}", 1, PROCESSES_MOST)


def _speed(text: str) -> int:
    return _number(text, f"reads a second, 0 to {_IOPS_MOST:,}", 0, _IOPS_MOST)


def _number(text: str, what: str, least: int, most: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= 20
    if not (is_number and least <= int(text) <= most):
        raise ArgumentTypeError(f"expected {what}, not {text[:40]!r}")
    return int(text)


def _uid(text: str) -> int:
    return _number(text, "the number of a user", 0, 2**32 - 2)


def _seconds(text: str) -> float:
    from seawall.cli.source_options import seconds_of  # noqa: PLC0415 - not needed for --help

    seconds = seconds_of(text)
    if not 1 <= seconds <= SECONDS_MOST:
        raise ArgumentTypeError(f"expected 1 to {SECONDS_MOST:g} seconds, not {text!r}")
    return seconds


def run(arguments: Namespace) -> int:
    """Do it, or say why not; the exit status."""
    if arguments.lab_verb is None:
        return usage_of_verbs("lab", VERBS, 12)
    if arguments.lab_verb == "clean":
        return _clean(arguments)
    return _reproduce(arguments)


def _clean(arguments: Namespace) -> int:
    from seawall.cli.console import console_for  # noqa: PLC0415
    from seawall.lab import lab_text  # noqa: PLC0415
    from seawall.lab.leftovers import clean  # noqa: PLC0415

    found = clean(dry=arguments.dry_run)
    if arguments.json:
        from seawall.lab.lab_document import LAB, LabCleaning  # noqa: PLC0415

        _print(LAB.of(_head(), LabCleaning(arguments.dry_run, found)))
    else:
        print(
            "\n".join(
                lab_text.clean_lines(found, console_for(arguments.color), dry=arguments.dry_run)
            )
        )
    is_clean = arguments.dry_run or all(left.is_removed for left in found)
    return 0 if is_clean else statuses.USAGE


def _reproduce(arguments: Namespace) -> int:
    from seawall.cli.console import console_for  # noqa: PLC0415
    from seawall.cli.lab_run import Session, judged_plan  # noqa: PLC0415
    from seawall.lab import lab_text, leftovers  # noqa: PLC0415
    from seawall.lab.group import LabGroup  # noqa: PLC0415

    plan, home = judged_plan(arguments)
    paper = console_for(arguments.color)
    path = LabGroup(home, leftovers.own_name()).path
    if arguments.dry_run:
        if arguments.json:
            from seawall.lab.lab_document import LAB, PlannedRun  # noqa: PLC0415

            _print(LAB.of(_head(), PlannedRun(plan, home, path)))
        else:
            print("\n".join(lab_text.plan_lines(plan, home, path, paper)))
        return 0
    session = Session(plan, home, paper, quiet=arguments.json)
    report = session.perform(path)
    if arguments.json:
        from seawall.lab.lab_document import LAB, LabRun  # noqa: PLC0415

        _print(LAB.of(_head(report.seconds), LabRun(report, session.removed)))
    else:
        print("\n".join(lab_text.report_lines(report, paper)))
    if session.stop.signal is not None:
        return 128 + session.stop.signal
    return statuses.USAGE if report.failed or report.left else 0


def _head(seconds: float | None = None) -> dict[str, Any]:
    from seawall.host.live import LiveHost  # noqa: PLC0415
    from seawall.readings.kernel import Kernel  # noqa: PLC0415
    from seawall.readings.snapshot import Snapshot  # noqa: PLC0415
    from seawall.views.document import head  # noqa: PLC0415

    return head("lab", Snapshot(LiveHost("/")).get(Kernel), seconds)


def _print(document: dict[str, Any]) -> None:
    from seawall.views.document import render  # noqa: PLC0415

    print(render(document))
