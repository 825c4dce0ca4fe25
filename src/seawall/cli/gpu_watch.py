# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu --watch [WORKLOAD]``: a line for each access that appears or vanishes."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from seawall.cli.source_options import seconds_of
from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from seawall.accounts.devices.watch.device_watch_events import Line
    from seawall.accounts.workloads import Workload

EVERY_SECONDS: Final = 1.0
EVERY_LEAST_SECONDS: Final = 0.2
EVERY_MOST_SECONDS: Final = 60.0


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the table that are about watching."""
    parser.add_argument(
        "--watch", action="store_true",
        help="stay, and tell each access that appears or vanishes: when, for how long, and who "
        "wrote the rule where the kernel tells it (root)",
    )  # fmt: skip
    parser.add_argument(
        "--for", dest="seconds", type=seconds_of, metavar="SECONDS",
        help="with --watch: end after this long (default: until Ctrl-C)",
    )  # fmt: skip
    parser.add_argument(
        "--every", type=_every, metavar="SECONDS",
        help=f"with --watch: look so often (default {EVERY_SECONDS:g}, at least "
        f"{EVERY_LEAST_SECONDS:g})",
    )  # fmt: skip


def _every(text: str) -> float:
    seconds = seconds_of(text)
    if not EVERY_LEAST_SECONDS <= seconds <= EVERY_MOST_SECONDS:
        words = f"{EVERY_LEAST_SECONDS:g} to {EVERY_MOST_SECONDS:g} seconds"
        raise ArgumentTypeError(f"expected {words}, not {text!r}")
    return seconds


def complete(arguments: Namespace) -> None:
    """A watch is not ended by --timeout, which bounds each of its tables."""
    if not arguments.watch:
        for name, value in (("--for", arguments.seconds), ("--every", arguments.every)):
            if value is not None:
                raise UsageProblem(f"{name} is about watching; give --watch with it")
        return
    if arguments.bundle is not None:
        raise UsageProblem("--watch: what was recorded does not change; leave --from out")
    if arguments.root not in (None, "/"):
        raise UsageProblem(
            "--watch tries the devices of this machine's containers; leave --root out (in a"
            " DaemonSet: chroot to the host's root, with hostPID)"
        )
    if arguments.open:
        raise UsageProblem("--watch opens nothing: it would keep devices awake; leave --open out")
    if arguments.whole:
        raise UsageProblem("--whole is about the table; --watch --json has every device")
    arguments.table_seconds, arguments.timeout = arguments.timeout, None


def run(arguments: Namespace) -> int:
    """Watch until SIGINT, SIGTERM or the time is over; the exit status."""
    from seawall.watcher.alarm import Alarm  # noqa: PLC0415 - only for this option
    from seawall.watcher.gpu_loop import GpuLoop  # noqa: PLC0415 - likewise

    wanted = _wanted(arguments)
    alarm = Alarm()
    loop = GpuLoop(
        wanted, _teller(arguments), every_seconds=arguments.every or EVERY_SECONDS,
        for_seconds=arguments.seconds, table_seconds=arguments.table_seconds,
    )  # fmt: skip
    try:
        problem = loop.run(alarm)
    finally:
        loop.close()
    if problem is not None:
        words = problem.detail or problem.why
        raise UsageProblem(f"nothing can be watched: {problem.path}: {words}")
    return 0


def _wanted(arguments: Namespace) -> "Workload | None":
    if arguments.workload is None:
        return None
    from seawall.cli.named_workload import named_workload  # noqa: PLC0415 - only when named
    from seawall.host.live import LiveHost  # noqa: PLC0415 - likewise
    from seawall.sources.source import Source  # noqa: PLC0415 - likewise

    host = LiveHost("/")
    try:
        return named_workload(Source(host, None, live=host), arguments.workload)
    finally:
        host.close()


def _teller(arguments: Namespace) -> "Callable[[Line], None]":
    if arguments.json:
        from seawall.views.documents.gpu_event_document import json_lines  # noqa: PLC0415 - one of the two

        lines = json_lines
    else:
        from seawall.cli.console import console_for  # noqa: PLC0415 - one of the two
        from seawall.views.gpu_watch_text import WatchText  # noqa: PLC0415 - likewise

        lines = WatchText(console_for(arguments.color)).lines

    def tell(line: "Line") -> None:
        for text in lines(line):
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    return tell
