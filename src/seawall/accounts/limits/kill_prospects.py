# SPDX-License-Identifier: Apache-2.0
"""What the OOM killer could do in the cgroups that are near their memory limit.

Everything that decides it, for rules: the kernel's formula, the members and their sizes, and
what the cgroup may use.  Judged for one cgroup at a time, by ``accounts/oom``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.kernel import Kernel
from seawall.readings.limit_members import LimitMembers
from seawall.readings.meminfo import Meminfo
from seawall.readings.process import Processes
from seawall.readings.sysctl_vm import VmSysctls

if TYPE_CHECKING:
    from seawall.accounts.oom.salvage import Hopeless

_MISSED_MOST = 0.1
"""Of its processes: with more of them unread nothing is said about a cgroup."""
_SWAPPINESS_USUAL = 60


@dataclass(frozen=True, slots=True)
class KillProspects:
    """The topic: what was read.  A dozen modules judge it; they are imported for a cgroup that
    is near its limit, not on every road of ``why``.
    """

    kernel: Kernel
    meminfo: Meminfo
    groups: MemoryGroups
    processes: Processes
    members: LimitMembers
    swappiness: int

    def hopeless(
        self, group: MemoryGroup, back_fraction: float, kills_most: int
    ) -> "Hopeless | Unread | None":
        """Why killing in this group would bring back too little; None when it would help.

        back_fraction: of the limit; so much would be enough.  Unread where the kernel's formula
        is not known or too many of its processes could not be read.
        """
        from seawall.accounts.oom.badness import formula_named  # noqa: PLC0415 - see above
        from seawall.accounts.oom.contenders import ProcessMoment, contenders  # noqa: PLC0415
        from seawall.accounts.oom.prediction import Field  # noqa: PLC0415
        from seawall.accounts.oom.salvage import Demand, hopeless  # noqa: PLC0415
        from seawall.accounts.oom.scope import Scope, memcg_pages, node_pages  # noqa: PLC0415

        try:
            formula = formula_named(self.kernel.release or "")
        except UsageProblem as problem:
            return Unread("/proc/sys/kernel/osrelease", "absent", str(problem))
        if group.pids is None:
            return Unread(group.file("cgroup.procs"), "refused")
        by_pid, page = self.processes.by_pid, self.kernel.page_size
        moment = ProcessMoment(by_pid, self.members.statuses, self.members.adjs, {}, page)
        found = contenders(moment, group.pids)
        unseen = sum(pid not in by_pid for pid in group.pids) + found.incomplete
        if unseen > _MISSED_MOST * len(group.pids):
            return Unread("/proc/*/status", "refused", "most of its processes")
        total = memcg_pages(group, self.meminfo, page, self.swappiness)
        scope = Scope(kind="memcg", name=group.name, total_pages=total,
                      node_pages=node_pages(self.meminfo, page), group=group)  # fmt: skip
        field = Field(found, self.groups, self.meminfo, page)
        return hopeless(group, field, scope, formula, Demand(back_fraction, kills_most))


def account(
    kernel: Kernel,
    meminfo: Meminfo,
    groups: MemoryGroups,
    processes: Processes,
    members: LimitMembers,
    settings: VmSysctls | Unread,
) -> KillProspects:
    """Nothing is judged here."""
    swappiness = None if isinstance(settings, Unread) else settings.swappiness
    usual = _SWAPPINESS_USUAL if swappiness is None else swappiness
    return KillProspects(kernel, meminfo, groups, processes, members, usual)
