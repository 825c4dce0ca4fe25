# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu repair WORKLOAD|--plugin|--host``: the steps that mend it; with --do they are done.

Without --do nothing is changed.  The rules of a running container are never changed: its runtime
writes its own list over them, and nobody is told.
"""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from seawall.accounts.devices.repairs.repair_plan import plan_of
from seawall.accounts.devices.repairs.step import KINDS, RepairOutcome, RepairPlan, RepairScope
from seawall.actions.device_repairs.repair_run import RepairRun
from seawall.actions.device_repairs.repair_steps import do, doable
from seawall.cli import statuses
from seawall.cli.console import console_for
from seawall.cli.source_options import SLOT, TIMEOUT_SECONDS, add_color_argument, seconds_of
from seawall.cli.verb import SourceVerb
from seawall.findings.blindness import NotSeen, asked_by_root, unread_rows
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.sources.source import Source
from seawall.views.gpu_repair_page import RepairPage
from seawall.views.gpu_unseen import rows_of
from seawall.views.terminal import Console, plain

DOING_SECONDS: Final = 180.0
_RESERVED_SECONDS: Final = 5.0
"""Of --timeout, for the last look."""
ALL: Final = "all"
_STATUSES: Final = {"unseen": statuses.BLIND, "unverified": statuses.FIRES}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``seawall gpu repair`` to its parser."""
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="namespace/pod[/container], a container id, pid:N or a cgroup path",
    )  # fmt: skip
    parser.add_argument("--plugin", action="store_true", help="the device plugins of this node")
    parser.add_argument("--host", action="store_true", help="its modules, nodes, links, CDI specs")
    parser.add_argument(
        "--do", type=_numbers, metavar="N[,N]|all",
        help="do these steps and verify them by real access (root); 10 when that is not so",
    )  # fmt: skip
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="credentials to recreate pods with (or $KUBECONFIG)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--from", dest="bundle", metavar="BUNDLE", help="a recorded bundle: a plan")
    where.add_argument("--root", metavar="DIR", help="the root of a host: a plan")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument(
        "--timeout", type=seconds_of, metavar="SECONDS",
        help="stop asking, and waiting for new containers, after this long"
        f" (default {TIMEOUT_SECONDS:g}, with --do {DOING_SECONDS:g})",
    )  # fmt: skip
    add_color_argument(parser)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of steps in ``--do``, sorted; empty for ``all``; ArgumentTypeError for others."""
    if text == ALL:
        return ()
    words = text.split(",")
    known = {str(number) for number in range(1, len(KINDS) + 1)}
    if not set(words) <= known:
        raise ArgumentTypeError(f"expected numbers of steps as 2,6 or all, not {text!r}")
    return tuple(sorted({int(word) for word in words}))


def complete(arguments: Namespace) -> None:
    """A repair that hangs must not end with 0."""
    if arguments.timeout is None:
        arguments.timeout = TIMEOUT_SECONDS if arguments.do is None else DOING_SECONDS
    arguments.fail_on = "critical"


class GpuRepairVerb(SourceVerb[RepairPage]):
    """The plan, and with ``--do`` what became of it."""

    name = "gpu-repair"
    document_table = "seawall.views.documents.gpu_documents:REPAIR"

    def page(self) -> RepairPage:
        """After everything that was told was tried; UsageProblem."""
        arguments, source = self.arguments, self.source
        scope = _scope(arguments, source)
        first = plan_of(source.first, scope)
        page = RepairPage(
            scope=scope, plan=first, is_told=arguments.do is not None, wanted=arguments.do or (),
            bundle_notes=source.notes,
            unseen=(*_unseen(first, source), *unread_rows([source.first])),
        )  # fmt: skip
        if arguments.do is not None and isinstance(first, RepairPlan):
            return _done(arguments, source, page, first)
        return page

    def text(self, page: RepairPage, paper: Console) -> Iterable[str]:
        from seawall.views.gpu_repair_text import lines  # noqa: PLC0415 - text alone

        if page.results:
            yield ""
        yield from lines(page, paper)

    def has_heading(self, page: RepairPage) -> bool:
        """What was told to be done is said below what was done."""
        return not page.is_told

    def status(self, page: RepairPage) -> int:
        """0: planned, nothing to mend, or done and verified; 10: not so; 11: it was not seen."""
        return _STATUSES.get(page.verdict, 0)


def run(arguments: Namespace) -> int:
    """Plan, and do what was told; the exit status."""
    _check(arguments)
    return GpuRepairVerb.run(arguments)


def _check(arguments: Namespace) -> None:
    named = [arguments.workload is not None, arguments.plugin, arguments.host]
    if sum(named) != 1:
        raise UsageProblem("gpu repair: name one of WORKLOAD, --plugin and --host")
    if arguments.do is None:
        if arguments.kubeconfig is not None:
            raise UsageProblem("--kubeconfig: only with --do; without it nothing is done")
        return
    if arguments.bundle is not None or os.path.realpath(arguments.root or "/") != "/":
        raise UsageProblem("--do: only on this very machine, not on a bundle or a --root")
    if os.geteuid() != 0:
        raise UsageProblem("--do: needs root on the host: sudo seawall gpu repair ...")
    if arguments.kubeconfig is not None and not os.path.isfile(arguments.kubeconfig):
        raise UsageProblem(f"--kubeconfig {arguments.kubeconfig}: no such file")


def _scope(arguments: Namespace, source: Source) -> RepairScope:
    if arguments.workload is None:
        return RepairScope("plugin" if arguments.plugin else "host")
    from seawall.cli.named_workload import named_workload  # noqa: PLC0415 - only when named

    return RepairScope("workload", named_workload(source, arguments.workload))


def _unseen(plan: RepairPlan | Unread, source: Source) -> list[NotSeen]:
    if isinstance(plan, Unread):
        return [NotSeen("devices of containers", f"{plan.path}: {plan.detail or plan.why}", "")]
    return rows_of(plan.unseen, is_root=asked_by_root([source.first]))


def _done(arguments: Namespace, source: Source, page: RepairPage, first: RepairPlan) -> RepairPage:
    """The page after everything that was told was tried."""
    tell, say = _tellers(arguments)
    reserved = min(_RESERVED_SECONDS, arguments.timeout / 3)
    until = time.monotonic() + arguments.timeout - reserved
    repair = RepairRun(page.scope, until, arguments.kubeconfig, say, source.first, SLOT)
    wanted = set(arguments.do) or doable()
    results = []
    for result in do(repair, first, wanted, is_all=not arguments.do):
        results.append(result)
        tell(result)
    repair.until = time.monotonic() + _RESERVED_SECONDS
    return replace(page, results=tuple(results), left=repair.plan())


def _tellers(arguments: Namespace) -> tuple[Callable[[RepairOutcome], None], Callable[[str], None]]:
    """Of results and of what is done: on stdout at once; with --json stdout is one document."""
    if arguments.json:
        return (lambda _: None), (lambda words: print(plain(words), file=sys.stderr, flush=True))
    from seawall.views.gpu_repair_text import result_lines  # noqa: PLC0415 - text alone

    paper = console_for(arguments.color)

    def tell(told: RepairOutcome) -> None:
        print("\n".join(result_lines(told, paper)), flush=True)

    def say(words: str) -> None:
        if words.startswith("runs: "):  # a command that was wrapped does not paste
            print(f"     {plain(words)}", flush=True)
            return
        print("\n".join(paper.wrap(words, "       ", "     ")), flush=True)

    return tell, say
