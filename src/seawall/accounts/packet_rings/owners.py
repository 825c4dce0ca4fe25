# SPDX-License-Identifier: Apache-2.0
"""Whose a packet socket is, as far as that can be proved.

The kernel keeps no record of who made a socket or set up its ring.  What it keeps is the
network namespace of the maker, and a descriptor that is handed on does not change it: a socket
in the namespace of one pod, held by that pod, is that pod's, whoever else holds it now.  In a
namespace that several workloads share, the host's above all, holding proves nothing: the only
holder may have been handed the socket.  Then nobody is charged, and the holders are suspects.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from seawall.accounts.claim import Confidence
from seawall.accounts.tracing.places import memory_path
from seawall.accounts.workloads import Workload, Workloads
from seawall.readings.cgroup import Cgroups
from seawall.readings.packet_rings import PacketRings, PacketSocket, SocketHolder

_NET_RAW, _SYS_ADMIN = 1 << 13, 1 << 21
_NAMED_MOST: Final = 3


@dataclass(frozen=True, slots=True)
class Owner:
    """What can be said of one socket; equal for sockets of which the same can be said."""

    workload: Workload | None
    """None: nobody is charged."""
    holder: str
    confidence: Confidence
    missing: str
    suspects: tuple[Workload, ...] = ()
    """Those that hold it and could have made it."""


class RingOwners:
    """Answers for one moment of one host."""

    def __init__(self, rings: PacketRings, workloads: Workloads, cgroups: Cgroups) -> None:
        self._rings = rings
        self._workloads = workloads
        self._cgroups = cgroups
        self._paths = frozenset(cgroups.paths)
        self._known: dict[tuple[str, ...], Workload | None] = {}
        self._hidden = self._homes(rings.hidden)

    def owner(self, one: PacketSocket) -> Owner:
        """Of one socket."""
        home = self._home_of_namespace(one.namespace)
        if home is None:
            return self._shared(one)
        inside = [
            workload for workload in self.workloads_of(one.holders)
            if self._home(workload).cgroup == home.cgroup
        ]  # fmt: skip
        if inside:
            chosen = inside[0] if len(inside) == 1 else home
            others = self._names([w for w in self.workloads_of(one.holders) if w not in inside])
            missing = []
            if chosen != home and self._has_siblings(one.namespace, chosen):
                missing.append("whether another container of its pod handed it over")
            if others:
                missing.append(f"it is also held by {others}, which does not change whose it is")
            return Owner(chosen, chosen.name, "exact", "; ".join(missing))
        return self._outside(one, home)

    def workloads_of(self, pids: Iterable[int]) -> list[Workload]:
        """Of these processes, each once; those of no known cgroup are left out."""
        found = (self._workload(self._rings.holders[pid].cgroups) for pid in pids)
        return list({w.cgroup: w for w in found if w is not None}.values())

    def pids_in(self, workload: Workload | None, sockets: Iterable[PacketSocket]) -> list[int]:
        """Processes that hold one of the sockets, of one workload or of all."""
        pids = sorted({pid for one in sockets for pid in one.holders})
        if workload is None:
            return pids
        return [
            pid for pid in pids
            if any(self._is_in(found, workload) for found in self.workloads_of([pid]))
        ]  # fmt: skip

    def _is_in(self, found: Workload, workload: Workload) -> bool:
        return workload.cgroup in (found.cgroup, self._home(found).cgroup)

    # --- whose a namespace is

    def _home_of_namespace(self, space: int) -> Workload | None:
        """The one pod or container that lives in it, else the one unit or cgroup; None: shared.

        A process of the host that went into a pod's namespace does not share it.
        """
        told = self._rings.inhabitants.get(space)
        if told is None or not told.is_whole or space == self._rings.host_namespace:
            return None
        if self._rings.host_namespace is None:
            return None  # it may be the host's
        homes = self._homes(told.cgroups)
        tenants = {path: w for path, w in homes.items() if w is not None and w.is_tenant}
        if tenants:
            hidden = {path for path, w in self._hidden.items() if w is not None and w.is_tenant}
            return _only(tenants) if hidden <= tenants.keys() else None
        found = _only(homes)
        return None if found is None or found.kind == "root" else found

    def _has_siblings(self, space: int, chosen: Workload) -> bool:
        """Whether more of its pod than it and the pause container lives there."""
        found = map(self._workload, self._rings.inhabitants[space].cgroups)
        return any(
            w is not None and w.is_tenant and not w.is_sandbox and w != chosen
            and self._home(w) != w
            for w in found
        )  # fmt: skip

    def _homes(self, cgroups: Iterable[tuple[str, ...]]) -> dict[str, Workload | None]:
        """By cgroup: the pods, and what is in no pod; None for what cannot be told."""
        found: dict[str, Workload | None] = {}
        for lines in cgroups:
            workload = self._workload(lines)
            home = None if workload is None else self._home(workload)
            found["" if home is None else home.cgroup] = home
        return found

    def _home(self, workload: Workload) -> Workload:
        """Its pod; itself where it is in none."""
        above: Workload | None = workload
        while above is not None and above.cgroup != "/":
            if above.kind == "pod":
                return above
            above = self._workloads.of_cgroup(above.cgroup.rpartition("/")[0] or "/")
        return workload

    def _workload(self, lines: tuple[str, ...]) -> Workload | None:
        if lines not in self._known:
            self._known[lines] = self._resolve(lines)
        return self._known[lines]

    def _resolve(self, lines: tuple[str, ...]) -> Workload | None:
        layout = self._cgroups.layout
        path = memory_path(lines, layout.memory_version)
        if path is None or path.startswith("/.."):
            return None
        root = layout.roots.get(self._cgroups.mount_point, "/")
        if root != "/" and (path == root or path.startswith(root + "/")):
            path = path[len(root) :] or "/"
        # The nearest one above a cgroup that is gone is somebody else.
        return self._workloads.of_cgroup(path) if path in self._paths else None

    # --- what can be said without a process of the owner's that holds it

    def _shared(self, one: PacketSocket) -> Owner:
        is_host = one.namespace == self._rings.host_namespace
        where = "the host's network" if is_host else f"network namespace {one.namespace}"
        makers = self._makers(one)
        held = self._names(self.workloads_of(one.holders))
        holder = f"packet sockets of {where}" + (f" (held by {held})" if held else "")
        why = "several workloads share that network, and a socket can be handed on"
        return Owner(None, holder, "exact", f"who made them: {why}", tuple(makers))

    def _outside(self, one: PacketSocket, home: Workload) -> Owner:
        """Made in ``home``'s namespace, and held by none of its processes."""
        if makers := self._makers(one):
            held = self._names(self.workloads_of(one.holders))
            holder = f"packet sockets of {home.name}'s network (held by {held})"
            why = "the holder could have gone into that network"
            return Owner(None, holder, "exact", f"who made them: {why}", (*makers, home))
        held = self._names(self.workloads_of(one.holders))
        if held:
            why = f"it was made in this workload's network and is held by {held} now"
            missing = f"{why}; whoever has the socket can set up its ring"
            return Owner(home, home.name, "estimate", missing)
        missing = "which process holds it: made in this workload's network, found in no process"
        confidence: Confidence = "bound" if self._rings.holders_left_out else "estimate"
        return Owner(home, home.name, confidence, missing)

    def _makers(self, one: PacketSocket) -> list[Workload]:
        """The holders that could have made it: by right, and by the way into its namespace."""
        pids = [pid for pid in one.holders if _could_make(self._rings.holders[pid], one.namespace)]
        return self.workloads_of(pids)

    @staticmethod
    def _names(workloads: Sequence[Workload]) -> str:
        names = [workload.name for workload in workloads[:_NAMED_MOST]]
        more = len(workloads) - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "")


def _could_make(holder: SocketHolder, space: int) -> bool:
    if not holder.bounding & _NET_RAW:
        return False
    return holder.namespace in (space, None) or bool(holder.bounding & _SYS_ADMIN)


def _only(homes: Mapping[str, Workload | None]) -> Workload | None:
    return next(iter(homes.values())) if len(homes) == 1 else None
