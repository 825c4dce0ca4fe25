# SPDX-License-Identifier: Apache-2.0
"""The cool-down: what was done before, by us or by others, and what did not come back of it.

Never the same workload (path and inode of its cgroup) twice; at most so many kills a minute; after
the kernel killed, or groups went away by themselves, the node is measured again before anybody is
chosen.
None of it may decide for another (``tenant_states.py``): containers that are killed at their own
limit again and again, pods that come and go, or a tenant that has all kills of a minute spent on
its own must not disarm it.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from seawall.cgroup_paths import place_of, user_of
from seawall.guard.judge.sources import sources_of
from seawall.guard.tick_facts import Group, Node

MINUTE = 60.0
AFTER_KERNEL_KILL_SECONDS = 0.5
AFTER_EXIT_SECONDS = 0.15
NOT_AGAIN_SECONDS = 3.0
"""After a hold has ended, so long no further one begins."""
DISTRUST_SECONDS = 600.0
KEPT_SECONDS = 900.0
TENANTS_TIMES = 2
"""So many times the kills of a minute go when other tenants' hogs are proved beside one's own."""
DONE_MOST = 4096
KEPT_MOST = 16


class Doubt(NamedTuple):
    """Evidence of one workload that did not hold."""

    until: float
    sources: tuple[str, ...]
    """The kinds of evidence, by the watcher's words."""


class UnreturnedMemory(NamedTuple):
    """What a kill should have brought back and did not."""

    seconds: float
    """When that was seen."""
    bytes: int
    """Still missing: once it has come back it is not missing again."""
    headroom: int
    """The highest since then."""


class Cooldown:
    """What a judge remembers of kills: whom not to take again, and how many a minute; bounded."""

    __slots__ = (
        "_kept", "_kills", "_off_until", "barred", "done", "doubts", "emptied", "tenants",
    )  # fmt: skip

    def __init__(self) -> None:
        self._kills: list[float] = []
        self._kept: list[UnreturnedMemory] = []
        self._off_until = float("-inf")
        self.done: dict[tuple[str, int], str] = {}
        """Acted on before: path and inode, with the words why not again."""
        self.emptied: dict[tuple[str, int], str] = {}
        """Of those, whom the kill left no process: whoever is in there now came after it."""
        self.barred: dict[tuple[str, int], str] = {}
        """Who hangs at its limit and may not be acted on, and the reason that was told: it may be
        a passing one, as that nobody knows yet who it is."""
        self.doubts: dict[tuple[str, int], Doubt] = {}
        """Path and inode of whose end did not give back what was foretold.  Of nobody else:
        whoever hands his sockets on before he is killed would clear all others that way."""
        self.tenants: dict[str, float] = {}
        """Of whom somebody was sent a signal in the last minute, and when last."""

    def look(self, node: Node) -> None:
        """Once a tick, before anything is judged."""
        now = node.seconds
        pause = AFTER_KERNEL_KILL_SECONDS if node.kernel_kills else 0.0
        pause = pause or (AFTER_EXIT_SECONDS if node.exits else 0.0)
        if pause and now - self._off_until > NOT_AGAIN_SECONDS:
            self._off_until = now + pause
        for kept in self._kept:
            if node.headroom_bytes > kept.headroom:
                self._come_back(node)
                break
        if self.doubts:
            for place in [p for p, one in self.doubts.items() if one.until <= now]:
                del self.doubts[place]
        for tenant in [t for t, last in self.tenants.items() if now - last >= MINUTE]:
            del self.tenants[tenant]

    def _come_back(self, node: Node) -> None:
        headroom = node.headroom_bytes
        self._kept = [
            UnreturnedMemory(
                k.seconds, k.bytes - max(0, headroom - k.headroom), max(headroom, k.headroom)
            )
            for k in self._kept
        ]

    def is_off(self, now: float) -> bool:
        """Something else gave memory back a moment ago: look again first."""
        return now < self._off_until

    def kills_left(self, now: float, most: int) -> int:
        """How many more kills are allowed now, of ``most`` within a minute."""
        kills = self._kills
        while kills and now - kills[0] >= MINUTE:
            del kills[0]
        return max(0, most - len(kills))

    def count_kills(self, now: float, workloads: int, tenants: Collection[str]) -> None:
        """So many were sent a signal, of these tenants."""
        self._kills += [now] * workloads
        self.tenants.update(dict.fromkeys(tenants, now))

    def has_own_kill(self, group: Group, now: float) -> bool:
        """Nobody of its tenant was sent a signal in the last minute."""
        return now - self.tenants.get(tenant_of(group), float("-inf")) >= MINUTE

    def may_kill(self, group: Group, now: float, most: int) -> bool:
        """One who is proved may go: of ``most`` one is left; or others spent them, and none went
        of its own tenant.  Those are as many again: so one tenant cannot spend another's.
        """
        if self.kills_left(now, most):
            return True
        is_room = self.kills_left(now, TENANTS_TIMES * most) > 0
        return is_room and self.has_own_kill(group, now)

    def mark_done(self, path: str, inode: int, why: str) -> None:
        """It is never chosen again."""
        if len(self.done) >= DONE_MOST:
            self.forget(*next(iter(self.done)))
        self.done[path, inode] = why
        self.emptied.pop((path, inode), None)

    def mark_emptied(self, path: str, inode: int) -> None:
        """It was acted on, and nobody was left in it."""
        if (path, inode) in self.done:
            self.emptied[path, inode] = self.done[path, inode]

    def forget(self, path: str, inode: int) -> None:
        """It may be chosen again."""
        self.done.pop((path, inode), None)
        self.emptied.pop((path, inode), None)

    def bar(self, group: Group, why: str) -> bool:
        """Keep ``why`` it may not be acted on (empty: it may be); False: that was told already."""
        place = (group.path, group.inode)
        if self.barred.get(place) == why:
            return False
        self.barred.pop(place, None)
        if why:
            if len(self.barred) >= DONE_MOST:
                del self.barred[next(iter(self.barred))]
            self.barred[place] = why
        return True

    def why_done(self, group: Group) -> str:
        """Why not again; empty: it was not acted on yet, or others are in there by now."""
        place = (group.path, group.inode)
        is_read = group.gives_back_bytes is not None  # in this tick, and its processes with it
        return (
            ""
            if place in self.emptied and is_read and group.processes
            else self.done.get(place, "")
        )

    def distrust(self, path: str, inode: int, sources: Collection[str], now: float) -> None:
        """What they said was its own did not come back with its end."""
        if len(self.doubts) >= DONE_MOST:
            del self.doubts[next(iter(self.doubts))]
        self.doubts[path, inode] = Doubt(now + DISTRUST_SECONDS, tuple(sources))

    def keep(self, node: Node, missing: int) -> None:
        """So much was foretold and has not come back."""
        if missing > 0:
            self._kept.append(UnreturnedMemory(node.seconds, missing, node.headroom_bytes))
            del self._kept[:-KEPT_MOST]

    def kept_bytes(self, node: Node) -> int:
        """Of what did not come back, what is still missing."""
        if not self._kept:
            return 0
        kept = self._kept
        while kept and node.seconds - kept[0].seconds > KEPT_SECONDS:
            del kept[0]
        return sum(max(0, k.bytes) for k in kept)


def is_distrusted(group: Group, doubts: Mapping[tuple[str, int], Doubt]) -> bool:
    """Its own evidence of the same kind did not hold a moment ago."""
    found = doubts.get((group.path, group.inode)) if doubts else None
    return found is not None and any(source in found.sources for source in sources_of(group))


def tenant_of(group: Group) -> str:
    """Whose a group is, as far as the host itself says so: a pod's namespace, the user below whose
    manager it is, that user as a whole, else itself.  No tenant can make itself look like several
    without the right to make namespaces or users.
    """
    if group.pod:
        namespace, slash, _ = group.name.partition("/")
        return namespace if slash else group.pod
    at = group.path.find("/user@")
    if at >= 0 and place_of(group.path).is_delegated:
        slice_ = group.path[:at]
        if user_of(slice_) is not None:
            return slice_
        return group.path[: (group.path + "/").find("/", at + 1)]
    return group.path
