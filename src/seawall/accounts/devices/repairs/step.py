# SPDX-License-Identifier: Apache-2.0
"""One step of a repair: what it mends, what it does not, how long it lasts, and who does it.

A step's number is that of its kind and the same in every plan: who read ``6`` and types it a
minute later must not get what became the sixth step meanwhile.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from seawall.accounts.devices import plugins
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices, HostNode, Plugin, UpcomingLoss
from seawall.accounts.devices.reasons.upcoming_loss import NEXT_POD
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import DeviceNodes

Kind: TypeAlias = Literal[
    "modules", "nodes", "links", "cdi", "settings", "plugin", "recreate", "rules", "process"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""In the order in which they are of use: whatever starts earlier is given the old answer."""
By: TypeAlias = Literal["seawall", "you", "user", "nobody"]
"""``seawall``: when it is told to; ``user``: whoever runs the container; ``nobody``: explained,
not done."""
State: TypeAlias = Literal["planned", "done", "failed", "refused", "skipped"]


class Modules(NamedTuple):
    """Drivers that are not loaded."""

    command: tuple[str, ...]
    fallback: tuple[str, ...]
    """Where the first one is not installed."""
    drivers: tuple[str, ...]
    """As /proc/devices will call them."""


class Link(NamedTuple):
    """A symbolic link ``/dev/char/M:m`` that is missing, and where it should lead."""

    path: str
    major: int
    minor: int


Subject: TypeAlias = Modules | tuple[HostNode, ...] | tuple[Link, ...] | Plugin | Workload | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One planned step of a repair."""

    kind: Kind
    """In the order in which they are of use."""
    what: str
    """What is done, and to whom."""
    command: str
    """What a person types, one command a line; empty: there is no such command."""
    mends: str
    """What it mends."""
    does_not_mend: str
    """What stays broken."""
    lasts: str
    """Until when."""
    by: By
    """Seawall: when it is told to with --do; user: whoever runs the container; nobody:
    explained, never done.
    """
    on: Subject = None
    """What is acted on; None: Seawall never does it."""
    tag: str = ""
    """Tells apart what has no ``on``."""

    @property
    def number(self) -> int:
        """Of its kind, from 1, the same in every plan; several steps may share one."""
        return KINDS.index(self.kind) + 1

    @property
    def id(self) -> str:
        """Of this step and no other of its plan; the same when the plan is made again."""
        if isinstance(self.on, Plugin):
            return f"{self.kind}:{self.on.workload.cgroup}"
        if isinstance(self.on, Workload):
            return f"{self.kind}:{self.on.cgroup}"
        return f"{self.kind}:{self.tag}" if self.tag else self.kind

    @property
    def comes_first(self) -> bool:
        """Whether what is started before it is done is started for nothing."""
        return self.kind in ("modules", "nodes", "links", "cdi", "plugin")


class RepairOutcome(NamedTuple):
    """A step with what became of it."""

    step: Step
    state: State
    """Skipped: not needed any more."""
    words: str
    """How it went; empty while it is planned."""
    is_verified: bool = False
    """By looking, and trying, after it was done."""


class RepairScope(NamedTuple):
    """What is to be mended."""

    what: Literal["workload", "plugin", "host"]
    """What is to be mended."""
    workload: Workload | None = None
    """Of ``plugin``: this one alone."""

    @property
    def words(self) -> str:
        """As on the command line."""
        return self.workload.name if self.workload else f"--{self.what}"


@dataclass(frozen=True, slots=True)
class RepairFacts:
    """What a plan is made from."""

    table: DeviceTable
    drivers: CharDevices | Unread
    nodes: DeviceNodes | Unread
    only_called: frozenset[str] = frozenset()
    """Cgroups of those that have a plugin's name and are certainly none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan:
    """Steps in their order; none where nothing that was seen is to be mended."""

    scope: RepairScope
    steps: tuple[Step, ...]
    headlines: tuple[str, ...]
    """What is wrong: a sentence each, with its failure mode first."""
    untried: tuple[str, ...]
    """Names of containers that are asked for and could not be tried."""
    unseen: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What else whoever reads it should know."""
    asked: int = 0
    """How many containers, or plugins, were found that it is about."""
    plugins: tuple[Plugin, ...] = ()
    """Those that run on this node."""


def is_below(workload: Workload | None, scope: RepairScope) -> bool:
    """Whether it is the one that was named, or inside it."""
    if workload is None or scope.workload is None:
        return False
    below = scope.workload.cgroup.rstrip("/") + "/"
    return f"{workload.cgroup}/".startswith(below)


def is_asked(plugin: Plugin, scope: RepairScope) -> bool:
    """Whether a plan for plugins is about this one."""
    return scope.workload is None or is_below(plugin.workload, scope)


def of_scope(facts: RepairFacts, scope: RepairScope) -> list[ContainerDevices]:
    """The containers that a plan is about; for the host and plugins all of them.  A plugin that
    ended is none of them: it is not served by others.
    """
    all_of_them = facts.table.containers
    ended = plugins.find(one.workload for one in all_of_them)
    found = [one for one in all_of_them if one.workload not in ended]
    return [one for one in found if scope.what != "workload" or is_below(one.workload, scope)]


def diagnosed(containers: list[ContainerDevices], *modes: str) -> list[ContainerDevices]:
    """Those with a diagnosis, of these modes when any are named."""
    return [
        one
        for one in containers
        if one.diagnosis is not None and (not modes or one.diagnosis.mode in modes)
    ]


def taken_away(table: DeviceTable, scope: RepairScope) -> list[UpcomingLoss]:
    """Of the workload: what works now, and is taken away."""
    return [
        one
        for one in table.about_to_break
        if one.when != NEXT_POD and is_below(one.workload, scope)
    ]
