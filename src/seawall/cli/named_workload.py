# SPDX-License-Identifier: Apache-2.0
"""The WORKLOAD of a command line."""

from seawall.accounts.workloads import Workload, Workloads
from seawall.cli.source import Source
from seawall.host.host import Unread
from seawall.problems import UsageProblem


def named_workload(source: Source, text: str) -> Workload:
    """The one that ``text`` names; UsageProblem for none, for several, or when none can be seen."""
    from seawall.accounts.addresses import resolve  # noqa: PLC0415 - only when one is named

    workloads = source.first.get(Workloads)
    if isinstance(workloads, Unread):
        raise lookup_problem(workloads)
    return resolve(text, workloads)


def lookup_problem(missing: Unread) -> UsageProblem:
    """What it takes to look a workload up could not be read."""
    words = missing.detail or missing.why
    return UsageProblem(f"no workload can be looked up: {missing.path}: {words}")
