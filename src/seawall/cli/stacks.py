# SPDX-License-Identifier: Apache-2.0
"""``seawall stacks``: what the machine is doing while it hangs, by its kernel stacks.

What prints is imported when there is something to print: on a thrashing node sampling must not
wait for files from a stuck disk.
"""

import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Final

from seawall.accounts.stacks.stack_tally import StackTally
from seawall.cli import interrupt
from seawall.cli.source_options import add_source_arguments, complete_timeout, seconds_of
from seawall.cli.verb import SourceVerb
from seawall.host import task_stacks as _in_the_child  # noqa: F401 - forked with it, not read there
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings import task_stacks
from seawall.readings.sysrq_backtraces import Backtraces, ask
from seawall.readings.task_stacks import TaskStacks
from seawall.sources.source import Source

if TYPE_CHECKING:
    from seawall.accounts.workloads import Workload
    from seawall.readings.snapshot import Snapshot
    from seawall.views.stacks_page import StacksPage
    from seawall.views.stacks_unseen import Missing

WANTED: Final = ("SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH")
"""Capabilities without which something stays unseen; it runs without any."""
FOR_SECONDS: Final = 30.0
EVERY_SECONDS: Final = 1.0
_EVERY_LEAST: Final = 0.1
_FOR_MOST: Final = 3600.0
_SAMPLES_MOST: Final = 10_000
_NAP_SECONDS: Final = 0.1
_SYSRQ_AT: Final = (0.2, 0.5, 0.8)
"""Of the window: three looks at the CPUs."""
_UNREAD_MOST: Final = 3
"""Samples in a row without an answer: then there will be none."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall stacks`` to its parser."""
    add_source_arguments(parser, has_window=True)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="only this one's tasks: namespace/pod[/container], a container id, pid:N, "
        "unit:NAME or a cgroup path",
    )  # fmt: skip
    parser.add_argument(
        "--for", dest="seconds", type=_window, default=FOR_SECONDS, metavar="SECONDS",
        help="sample for this long (default %(default)g); ^C shows what there is by then",
    )  # fmt: skip
    parser.add_argument(
        "--every", type=_every, default=EVERY_SECONDS, metavar="SECONDS",
        help="time between two samples (default %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--sysrq", action="store_true",
        help="have the kernel print where its CPUs are, three times (root; it prints into its "
        "log and on its console, which may be slow)",
    )  # fmt: skip


def _window(text: str) -> float:
    seconds = seconds_of(text)
    if seconds > _FOR_MOST:
        raise ArgumentTypeError(f"expected at most {_FOR_MOST:g} seconds, not {text!r}")
    return seconds


def _every(text: str) -> float:
    seconds = seconds_of(text)
    if seconds < _EVERY_LEAST:
        raise ArgumentTypeError(f"expected at least {_EVERY_LEAST:g} seconds, not {text!r}")
    return seconds


def complete(arguments: Namespace) -> None:
    """What depends on other options, and ^C."""
    complete_timeout(arguments)
    interrupt.arm(arguments)


class StacksVerb(SourceVerb["StacksPage"]):
    """The samples of a window, grouped."""

    name = "stacks"
    text_view = "seawall.views.stacks_text:lines"
    document_table = "seawall.views.documents.stacks_document:STACKS"

    @cached_property
    def moment(self) -> "Snapshot":
        """Of the last sample: what hangs is still there."""
        from seawall.readings.snapshot import Snapshot  # noqa: PLC0415 - as all that prints

        return Snapshot(self.source.rounds[-1])

    def page(self) -> "StacksPage":
        """UsageProblem for a workload that is not there."""
        interrupt.leave_to_parent()
        wanted = _wanted(self.source, self.arguments.workload)
        gathering = _Gathering(self.source, self.arguments)
        if self.source.live is None:
            gathering.replay()
        else:
            gathering.sample(self.source.live)
        return self._page(gathering, wanted)

    def _page(self, gathering: "_Gathering", wanted: "Workload | None") -> "StacksPage":
        from seawall.accounts.stacks.stack_tally import grouped  # noqa: PLC0415 - what prints is last
        from seawall.readings.kernel import Kernel  # noqa: PLC0415
        from seawall.views.stacks_page import StacksPage  # noqa: PLC0415
        from seawall.views.stacks_unseen import unseen  # noqa: PLC0415

        source, last = self.source, self.moment
        owners = _Owners([last] if wanted is None else [last, source.first], wanted)
        last.get(Kernel)
        found = grouped(gathering.tally, owners.workload_of, owners.is_wanted)
        return StacksPage(
            tally=gathering.tally,
            found=found,
            every_seconds=None if source.live is None else self.arguments.every,
            wanted=None if wanted is None else wanted.name,
            cpus=tuple(gathering.cpus),
            unseen=tuple(unseen(gathering.missing(found.untold), last)),
            bundle_notes=source.notes,
        )

    def window_seconds(self, page: "StacksPage") -> float | None:
        """Seconds between the first sample and the last; None: there is one."""
        return page.tally.window_seconds if len(page.tally.seconds) > 1 else None


run = StacksVerb.run


def _wanted(source: Source, name: str | None) -> "Workload | None":
    if name is None:
        return None
    from seawall.cli.named_workload import named_workload  # noqa: PLC0415 - only when named

    return named_workload(source, name)


class _Gathering:
    """The samples, and what did not answer."""

    def __init__(self, source: Source, arguments: Namespace) -> None:
        self._source = source
        self._arguments = arguments
        self.tally = StackTally()
        self.unread: list[Unread] = []
        self.cpus: list[Backtraces] = []
        self.is_hidden = False

    def replay(self) -> None:
        """The passes of a bundle are the samples."""
        from seawall.readings.kernel import Kernel  # noqa: PLC0415 - as all that prints
        from seawall.readings.snapshot import Snapshot  # noqa: PLC0415

        for number, host in enumerate(self._source.rounds):
            kernel = Snapshot(host).get(Kernel)
            clock = None if isinstance(kernel, Unread) else kernel.monotonic_seconds
            self._take(task_stacks.read(host), float(number) if clock is None else clock)

    def sample(self, live: LiveHost) -> None:
        """Until --for, --timeout or ^C, whichever comes first."""
        from seawall.cli.progress import ProgressLine  # noqa: PLC0415 - only live

        progress = ProgressLine("stacks")
        began = time.monotonic()
        seconds = min(self._arguments.seconds, live.seconds_left())
        looks = [began + part * seconds for part in _SYSRQ_AT] if self._arguments.sysrq else []
        due, unread = began, 0
        while unread < _UNREAD_MOST and len(self.tally.seconds) < _SAMPLES_MOST:
            unread = 0 if self._take(task_stacks.read(live), time.monotonic()) else unread + 1
            now = time.monotonic()
            if looks and now >= looks[0]:
                looks = looks[1:] if self._look_at_cpus(live) else []
            due = max(due + self._arguments.every, time.monotonic())
            if due + _EVERY_LEAST / 2 >= began + seconds or self._is_enough(due):
                break
            progress.tell(f"{now - began:.0f} s of {seconds:.0f} s; ^C shows what there is")
        progress.end()
        # A window too short for a look in its middle, or one that was cut.
        if looks and not self.cpus:
            self._look_at_cpus(live)
        untold = self.tally.untold
        if self._arguments.sysrq and (untold["refused"] or untold["absent"]):
            self._keep(ask(live, "w"))

    def _take(self, sample: TaskStacks | Unread, at_seconds: float) -> bool:
        if isinstance(sample, Unread):
            self.unread.append(sample)
            return False
        self.tally.add(sample, at_seconds)
        self.is_hidden |= sample.is_hidden
        return True

    def _look_at_cpus(self, live: LiveHost) -> bool:
        return self._keep(ask(live, "l"))

    def _keep(self, found: Backtraces | Unread) -> bool:
        if isinstance(found, Unread):
            self.unread.append(found)
            return False
        self.cpus.append(found)
        return True

    def missing(self, untold: Counter[str]) -> "Missing":
        """What was not told, for the end of the page; ``untold`` of the tasks that are shown."""
        from seawall.views.stacks_unseen import Missing  # noqa: PLC0415 - as all that prints

        return Missing(
            untold=untold,
            left_out=self.tally.left_out,
            unread=tuple(self.unread),
            is_hidden=self.is_hidden,
            has_cpus=bool(self.cpus),
        )

    def _is_enough(self, due: float) -> bool:
        """Wait until the next sample is due; True when ^C was pressed."""
        while not interrupt.is_asked(self._arguments):
            left = due - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, _NAP_SECONDS))
        return True


class _Owners:
    """Whose processes they are, by the newest table that has them."""

    def __init__(self, snapshots: "list[Snapshot]", wanted: "Workload | None") -> None:
        from seawall.accounts.workloads import Workloads  # noqa: PLC0415 - as all that prints

        found = [snapshot.get(Workloads) for snapshot in snapshots]
        self._tables = [table for table in found if not isinstance(table, Unread)]
        self._below = None if wanted is None else f"{wanted.cgroup.rstrip('/')}/"

    def workload_of(self, pid: int) -> "Workload | None":
        """None for one that has ended since."""
        return next((owner for table in self._tables if (owner := table.by_pid.get(pid))), None)

    def is_wanted(self, owner: "Workload | None") -> bool:
        """Whether it is the one that was named, or inside it."""
        if self._below is None:
            return True
        return owner is not None and f"{owner.cgroup}/".startswith(self._below)
