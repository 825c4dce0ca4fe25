# SPDX-License-Identifier: Apache-2.0
"""Whose a packet socket is, as far as that can be proved.

The kernel keeps no record of who made a socket or set up its ring.  What it keeps is the
network namespace of the maker, and a descriptor that is handed on does not change it: a socket
in the namespace of one pod, held by that pod, is that pod's, whoever else holds it now.  Its
containers share that network: it is one container's where no other of them could have made a
packet socket (CAP_NET_RAW), else the pod's.  In a namespace that several workloads share, the
host's above all, holding proves nothing: the only holder may have been handed the socket.  Then
nobody is charged, and the holders are suspects.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from seawall.accounts.claim import Confidence
from seawall.accounts.tracing.task_workloads import memory_path
from seawall.accounts.workloads import Workload, Workloads
from seawall.readings.cgroup import Cgroups
from seawall.readings.packet_rings import PacketRings, PacketSocket, SocketHolder

_NET_RAW, _SYS_ADMIN = 1 << 13, 1 << 21
_NAMED_MOST: Final = 3


@dataclass(frozen=True, slots=True)
class RingOwner:
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

    def owner(self, one: PacketSocket) -> RingOwner:
        """Who owns one packet socket, as far as that can be proved, or who may."""
        home = self._home_of_namespace(one.namespace)
        if home is None:
            return self._shared(one)
        inside = [
            workload for workload in self.workloads_of(one.holders)
            if self._home(workload).cgroup == home.cgroup
        ]  # fmt: skip
        return self._inside(one, home, inside) if inside else self._outside(one, home)

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

    def _path(self, lines: tuple[str, ...]) -> str:
        """Below the mount point; empty for what is outside of it."""
        layout = self._cgroups.layout
        path = memory_path(lines, layout.memory_version)
        if path is None or path.startswith("/.."):
            return ""
        root = layout.roots.get(self._cgroups.mount_point, "/")
        if root != "/" and (path == root or path.startswith(root + "/")):
            return path[len(root) :] or "/"
        return path

    def _resolve(self, lines: tuple[str, ...]) -> Workload | None:
        path = self._path(lines)
        if not path:
            return None
        found = self._workloads.of_cgroup(path)
        if path in self._paths or (found is not None and found.kind == "container"):
            return found  # not every cgroup that a container made is known, nor need it be
        return None  # the nearest one above a cgroup that is gone is somebody else

    # --- which of those that live there

    def _inside(self, one: PacketSocket, home: Workload, inside: Sequence[Workload]) -> RingOwner:
        """Held by processes of ``home``, in whose namespace it was made."""
        there = self._residents(one, home)
        able = [w for w, is_able in there.values() if is_able or len(there) == 1]
        chosen = able[0] if len(able) == 1 else home
        others = self._names([w for w in self.workloads_of(one.holders) if w not in inside])
        missing = []
        if len(able) > 1:
            missing.append(f"which of its containers made it: {self._names(able)} could have")
        if others:
            missing.append(f"it is also held by {others}, which does not change whose it is")
        if chosen == home or chosen in inside:
            return RingOwner(chosen, chosen.name, "exact", "; ".join(missing))
        # The container may have been started again since, or may have made none.
        missing.append(f"it is held by {self._names(inside)} of its pod, which cannot make one")
        return RingOwner(chosen, chosen.name, "estimate", "; ".join(missing))

    def _residents(self, one: PacketSocket, home: Workload) -> dict[str, tuple[Workload, bool]]:
        """Of a pod its containers that live there or hold it, and whether each could have made
        it; else ``home`` itself.  The pause container makes none.
        """
        if home.kind != "pod":
            return {home.cgroup: (home, True)}
        told = self._rings.inhabitants[one.namespace]
        bounding = told.bounding or (_NET_RAW,) * len(told.cgroups)
        holders = [self._rings.holders[pid] for pid in one.holders]
        rows = [
            *(
                (lines, bool(mask & _NET_RAW))
                for lines, mask in zip(told.cgroups, bounding, strict=True)
            ),
            *((holder.cgroups, _could_make(holder, one.namespace)) for holder in holders),
        ]
        found: dict[str, tuple[Workload, bool]] = {}
        for lines, is_able in rows:
            workload = self._workload(lines)
            if workload is None and self._path(lines).startswith(home.cgroup + "/"):
                found[""] = home, True  # a container that is not known yet
            elif workload is None or workload.is_sandbox or self._home(workload) != home:
                continue
            else:
                before = found.get(workload.cgroup, (workload, False))
                found[workload.cgroup] = workload, is_able or before[1]
        return found

    # --- what can be said without a process of the owner's that holds it

    def _shared(self, one: PacketSocket) -> RingOwner:
        is_host = one.namespace == self._rings.host_namespace
        where = "the host's network" if is_host else f"network namespace {one.namespace}"
        makers = self._makers(one)
        held = self._names(self.workloads_of(one.holders))
        holder = f"packet sockets of {where}" + (f" (held by {held})" if held else "")
        why = "several workloads share that network, and a socket can be handed on"
        return RingOwner(None, holder, "exact", f"who made them: {why}", tuple(makers))

    def _outside(self, one: PacketSocket, home: Workload) -> RingOwner:
        """Made in ``home``'s namespace, and held by none of its processes."""
        if makers := self._makers(one):
            held = self._names(self.workloads_of(one.holders))
            holder = f"packet sockets of {home.name}'s network (held by {held})"
            why = "the holder could have gone into that network"
            return RingOwner(None, holder, "exact", f"who made them: {why}", (*makers, home))
        held = self._names(self.workloads_of(one.holders))
        if held:
            why = f"it was made in this workload's network and is held by {held} now"
            missing = f"{why}; whoever has the socket can set up its ring"
            return RingOwner(home, home.name, "estimate", missing)
        missing = "which process holds it: made in this workload's network, found in no process"
        confidence: Confidence = "bound" if self._rings.holders_left_out else "estimate"
        return RingOwner(home, home.name, confidence, missing)

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
