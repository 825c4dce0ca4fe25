# SPDX-License-Identifier: Apache-2.0
"""``seawall oom predict``: who would die now, and what would that give back."""

from argparse import ArgumentParser, Namespace
from typing import Final

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups, parent
from seawall.accounts.oom.badness import formula_named
from seawall.accounts.oom.badness_ages import Formula
from seawall.accounts.oom.contenders import Contenders, ProcessMoment, contenders
from seawall.accounts.oom.predicting import Kernels, predict, predict_described
from seawall.accounts.oom.prediction import Field, Prediction
from seawall.accounts.oom.scope import Scope, node_pages, node_scope, scope_of
from seawall.accounts.oom.swarm import PROCESSES_MOST, Swarm, describe
from seawall.accounts.workloads import Workload
from seawall.cli.named_workload import named_workload
from seawall.cli.source_options import add_source_arguments
from seawall.cli.verb import SourceVerb
from seawall.findings.blindness import unread_rows
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.kernel import Kernel
from seawall.readings.memcg_swappiness import read_swappiness
from seawall.readings.meminfo import Meminfo
from seawall.readings.oom_score import OomScores
from seawall.readings.oom_score_adj import OomScoreAdjs
from seawall.readings.process import Processes
from seawall.readings.process_status import ProcessStatuses
from seawall.readings.sysctl_vm import VmSysctls
from seawall.sources.source import Source
from seawall.views.oom_predict_page import PredictPage

WANTED: Final = ("DAC_READ_SEARCH",)
"""Capabilities without which something stays unseen: cgroups of other users are root's alone."""
SWAPPINESS_USUAL: Final = 60


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall oom predict`` to its parser."""
    add_source_arguments(parser)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="at its tightest limit, its own or one above: namespace/pod[/container], a container"
        " id, pid:N, unit:NAME or a cgroup path",
    )  # fmt: skip
    parser.add_argument("--node", action="store_true", help="the whole node (the default)")
    parser.add_argument(
        "--kernel", metavar="RELEASE",
        help="as that kernel would choose: 6.1, 3.10.0-957.el7, 2.6.32-el6, ...",
    )  # fmt: skip
    described = parser.add_argument_group("described processes instead of those of a host")
    described.add_argument(
        "--swarm", metavar="COUNTxSIZE[,uid=N][,adj=N]", action="append", default=[],
        help="so many processes of that size, e.g. 1280x8MiB or 80x128MiB,uid=0, beside four small"
        " ones such as every container has; needs --limit",
    )  # fmt: skip
    described.add_argument("--limit", metavar="SIZE", help="the memory that they have, e.g. 8GiB")
    described.add_argument("--swap", metavar="SIZE", help="swap beyond it, e.g. 2GiB (default: 0)")


class OomPredictVerb(SourceVerb[PredictPage]):
    """Of the node, at one workload's limit, or of processes that are only described."""

    name = "oom-predict"
    text_view = "seawall.views.oom_predict_text:lines"
    document_table = "seawall.views.documents.oom_documents:PREDICT"

    def page(self) -> PredictPage:
        """UsageProblem for options that exclude each other."""
        arguments = self.arguments
        if arguments.node and arguments.workload is not None:
            raise UsageProblem("--node is about the whole node: leave the WORKLOAD out")
        if arguments.swarm or arguments.limit or arguments.swap:
            return _described(arguments, self.source)
        return _page(arguments, self.source)

    def has_heading(self, page: PredictPage) -> bool:
        """Described processes are of no host."""
        return not page.described


run = OomPredictVerb.run


def _page(arguments: Namespace, source: Source) -> PredictPage:
    first = source.first
    found = _predict(arguments, source)
    missing = None if isinstance(found, Prediction) else found
    prediction = found if isinstance(found, Prediction) else None
    return PredictPage(prediction, missing, tuple(unread_rows([first])), source.notes, "")


def _predict(arguments: Namespace, source: Source) -> Prediction | Unread:
    first = source.first
    kernel, meminfo = first.get(Kernel), first.get(Meminfo)
    # One after the other and nothing between them: these are compared with each other.
    adjs, processes = first.get(OomScoreAdjs), first.get(Processes)
    scores, statuses = first.get(OomScores), first.get(ProcessStatuses)
    if isinstance(kernel, Unread):
        return kernel
    if isinstance(meminfo, Unread):
        return meminfo
    if isinstance(adjs, Unread):
        return adjs
    if isinstance(processes, Unread):
        return processes
    if isinstance(statuses, Unread):
        return statuses
    kernels = _kernels(arguments.kernel, kernel)
    moment = ProcessMoment(
        processes.by_pid, statuses.by_pid, adjs.by_pid,
        {} if isinstance(scores, Unread) else scores.by_pid, kernel.page_size,
        zero_is_immune=kernels.own is not None and kernels.own.floor is None,
    )  # fmt: skip
    everybody = contenders(moment)
    scope, groups = _scope(arguments.workload, source, meminfo, kernel.page_size)
    inside = everybody
    if scope.group is not None:
        inside = contenders(moment, scope.group.pids or ())
    if inside.incomplete > len(inside.all):
        return _half_seen(inside, (*statuses.unread, *adjs.unread))
    field = Field(inside, groups, meminfo, kernel.page_size)
    settings = first.get(VmSysctls)
    settings_known = None if isinstance(settings, Unread) else settings
    return predict(field, everybody, scope, kernels, settings_known)


def _half_seen(inside: Contenders, unread: tuple[Unread, ...]) -> Unread:
    """Most of the processes are not known: an order of the others would mislead."""
    first = unread[0] if unread else Unread("/proc/*/status", "not_captured")
    every = inside.incomplete + len(inside.all)
    words = f"{inside.incomplete:,} of {every:,} processes were not read whole"
    return Unread(first.path, first.why, f"{words} ({first.detail or first.why})")


def _kernels(asked: str | None, kernel: Kernel) -> Kernels:
    own: Formula | None = None
    problem = "which kernel runs there is not known"
    if kernel.release is not None:
        try:
            own = formula_named(kernel.release)
        except UsageProblem as too_old:
            problem = str(too_old)
    judged = formula_named(asked) if asked is not None else own
    if judged is None:
        raise UsageProblem(f"{problem}; --kernel RELEASE says as which one to judge")
    return Kernels(judged, own)


def _scope(
    text: str | None, source: Source, meminfo: Meminfo, page_bytes: int
) -> tuple[Scope, MemoryGroups | None]:
    found = source.first.get(MemoryGroups)
    groups = None if isinstance(found, Unread) else found
    if text is None:
        return node_scope(node_pages(meminfo, page_bytes)), groups
    group = _group(named_workload(source, text), groups)
    if groups is None or group is None:
        if isinstance(found, Unread):
            raise UsageProblem(
                f"{text!r}: its memory limit cannot be seen: {found.path}:"
                f" {found.detail or found.why}"
            )
        # In no cgroup but the root: only the node's own shortage kills there.
        return node_scope(node_pages(meminfo, page_bytes)), groups
    settings = source.first.get(VmSysctls)
    usual = None if isinstance(settings, Unread) else settings.swappiness
    swappiness = SWAPPINESS_USUAL if usual is None else usual
    if groups.version == 1 and group.limit is not None:
        own = read_swappiness(source.first.host, group.folder)
        swappiness = own if isinstance(own, int) else swappiness
    return scope_of(group, groups, meminfo, page_bytes, swappiness), groups


def _group(workload: Workload, groups: MemoryGroups | None) -> MemoryGroup | None:
    """The nearest cgroup at or above it that counts memory."""
    path = workload.cgroup
    while groups is not None and path != "/":
        if path in groups.by_path:
            return groups.by_path[path]
        path = parent(path)
    return None


def _described(arguments: Namespace, source: Source) -> PredictPage:
    from seawall.cli.oom_swarm import swarm_of, swarm_size  # noqa: PLC0415 - for these words only

    if not arguments.swarm or not arguments.limit:
        raise UsageProblem("--swarm COUNTxSIZE and --limit SIZE belong together")
    if arguments.workload is not None or arguments.node:
        raise UsageProblem("--swarm describes processes: leave WORKLOAD and --node out")
    swarms: list[Swarm] = [swarm_of(text) for text in arguments.swarm]
    if sum(swarm.processes for swarm in swarms) > PROCESSES_MOST:
        raise UsageProblem(f"--swarm: at most {PROCESSES_MOST:,} processes together")
    kernel = source.first.get(Kernel)
    if isinstance(kernel, Unread):
        raise UsageProblem(f"{kernel.path}: {kernel.detail or kernel.why}")
    limit = swarm_size("--limit", arguments.limit)
    swap = swarm_size("--swap", arguments.swap or "0")
    formula = _kernels(arguments.kernel, kernel).judged
    described = describe(swarms, kernel.page_size)
    found = predict_described(described, limit + swap, kernel.page_size, formula)
    words = f"{', '.join(arguments.swarm)} in {arguments.limit}"
    words += f" and {arguments.swap} of swap" if arguments.swap else ""
    return PredictPage(found, None, (), source.notes, words)
