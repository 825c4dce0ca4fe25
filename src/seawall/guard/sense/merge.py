# SPDX-License-Identifier: Apache-2.0
"""What the watcher tells, into the groups: ``guard/watcher_channel.py`` says what may come.

A message that is malformed or older than the last is dropped and counted; nothing of it is
believed.  Of a folder that is not known (yet), or has another inode, nothing is taken; but names
and roles may be told only once, so they wait for the folder to be found, until the watcher says
that it is gone or another watcher begins anew.  There is room for some, and the oldest make room.
Users make any number of cgroups below their managers: those wait in a part of it, and go first.
"""

from collections.abc import Mapping
from typing import Final

from seawall.cgroup_paths import place_of, user_of
from seawall.guard.sense.member import GroupMember
from seawall.guard.sense.residual import TickResidual
from seawall.guard.sense.tick_gpu_nodes import TickGpuNodes
from seawall.guard.sense.tree import DEPTH_MOST
from seawall.guard.sense.watcher_numbers import is_moment, is_whole
from seawall.guard.tick_facts import NOT_TOLD, NOTHING_OUTSIDE, SYSTEM, Outside, UserSlice

_TEXT_MOST: Final = 512
_ROWS_MOST: Final = 10_000
_STUCK_LASTS_SECONDS: Final = 30.0
_CPUS_MOST: Final = 1e5
_WAITING_MOST: Final = 1024
_MADE_UP_MOST: Final = 512
_OF_ONE_MOST: Final = 128
"""Of these, what users made below their managers: all of them, and one."""
GIVE_UP_SECONDS: Final = 60.0
"""So long who is not told is nobody's victim.  Without a watcher it would be safe for ever, and
the kernel would choose: then paths, scope and oom_score_adj protect, and the status says so.
"""
_GIVE_UP_AGAIN_SECONDS: Final = 5.0


class Merge:
    """Takes messages in; the members are the table's own."""

    __slots__ = ("_account", "_given_up", "_gpu", "_made_up", "_members", "_part", "_residual",
                 "_round", "_waiting", "certain_bytes", "claims_seconds", "dropped", "refusals",
                 "stuck_seconds", "unlearned", "watcher_pid")  # fmt: skip

    def __init__(
        self, members: dict[str, GroupMember], residual: TickResidual,
        gpu: TickGpuNodes | None = None,
    ) -> None:  # fmt: skip
        self._members = members
        self._residual = residual
        self._gpu = gpu
        self._round = self._part = 0
        self._account = self._given_up = 0.0
        """When the account was made of which the part before came."""
        self._waiting: dict[str, dict[str, object]] = {}
        """Names and roles of folders that were not found yet, those first that wait longest."""
        self._made_up: dict[str, None] = {}
        """Which of them users made."""
        self.claims_seconds: float | None = None
        """When the claims that hold now were made, monotonic."""
        self.certain_bytes = 0
        """The sum of all certain claims."""
        self.refusals: tuple[str, ...] = ()
        """What the watcher could not see, in words."""
        self.unlearned = ""
        """Why it learns less than it could (no tracing), in words; empty: it does not."""
        self.dropped = 0
        """Messages and rows that were not believed."""
        self.stuck_seconds = 0.0
        self.watcher_pid: int | None = None

    def hear(self, message: object, now: float) -> None:
        """Take in one message of the watcher; one that is malformed or too old is only counted."""
        if not isinstance(message, dict):
            self.dropped += 1
            return
        kind = message.get("t")
        is_good = False
        if kind in ("ledger", "blind"):
            is_good = self._ledger(message, now)
        elif kind == "claims":
            is_good = self._claims(message, now)
        elif kind == "groups":
            is_good = self._groups(message)
        elif kind == "stuck":
            is_good = self._stuck(message, now)
        elif kind == "hello":
            pid = message.get("pid")
            is_good = is_whole(pid)
            self.watcher_pid = pid if is_whole(pid) else None
            if is_good:  # the one before has ended, and this one tells all again
                self._waiting.clear()
                self._made_up.clear()
        if not is_good:
            self.dropped += 1

    def _ledger(self, message: Mapping[str, object], now: float) -> bool:
        """Or in its place, that it could not be read."""
        is_good = message.get("t") == "blind"
        nodes = message.get("gpu_nodes")
        if self._gpu is not None and isinstance(nodes, list):
            before = self._gpu.uncounted_bytes
            if self._gpu.use(nodes):
                self._residual.lift(self._gpu.uncounted_bytes - before)
        is_good = is_good or self._residual.hear(message, now, self.certain_bytes)
        if is_good:
            self.unlearned = word(message.get("blind"))
        return is_good

    # --- claims -----------------------------------------------------------------------------

    def _claims(self, message: Mapping[str, object], now: float) -> bool:
        """All of now: whoever is in no part is not claimed any more."""
        seconds, rows = message.get("seconds"), rows_of(message)
        part, parts = message.get("part", 0), message.get("parts", 1)
        if not is_moment(seconds, now) or rows is None:
            return False
        if not is_whole(part) or not is_whole(parts):
            return False
        if self.claims_seconds is not None and seconds < self.claims_seconds:
            return False
        if part == 0:
            self._round, self._part, self._account = self._round + 1, 0, float(seconds)
        if part != self._part or seconds != self._account:
            return False  # one before it is lost: nothing is forgotten, nothing looks young
        self._part += 1
        for row in rows:
            self._claim(row, float(seconds))
        refused = message.get("refused")
        if isinstance(refused, list):
            self.refusals = tuple(word(text) for text in refused[:32])
        if self._part >= parts:
            self._forget_others()
            self.claims_seconds = float(seconds)
        return True

    def _claim(self, row: object, seconds: float) -> None:
        member = self._member(row)
        if member is None or not isinstance(row, dict):
            return
        certain, likely, most = row.get("certain"), row.get("likely"), row.get("most")
        if not (is_whole(certain) and is_whole(likely) and is_whole(most)):
            self.dropped += 1
            return
        if not certain <= likely <= most:
            self.dropped += 1
            return
        group = member.group
        group.outside = Outside(certain, likely, most, word(row.get("sources")))
        group.outside_slope = member.certain_anchors.slope(seconds, certain)
        member.claims_round = self._round

    def _forget_others(self) -> None:
        total = 0
        for member in self._members.values():
            if isinstance(member.group, UserSlice):
                continue  # a sum
            if member.claims_round != self._round and member.group.outside.most_bytes:
                member.group.outside = NOTHING_OUTSIDE
                member.group.outside_slope = 0.0
            total += member.group.outside.certain_bytes
        self.certain_bytes = total

    # --- names, roles -----------------------------------------------------------------------

    def _groups(self, message: Mapping[str, object]) -> bool:
        rows = rows_of(message)
        if rows is None:
            return False
        for row in rows:
            member = self._member(row)
            if member is not None and isinstance(row, dict):
                self._name(member, row)
            elif isinstance(row, dict) and isinstance(row.get("cgroup"), str):
                self._wait(row["cgroup"], row)
        gone = message.get("gone")
        for path in gone if isinstance(gone, list) else ():
            if isinstance(path, str):
                self._no_longer(path)
        return True

    def _wait(self, path: str, row: dict[str, object]) -> None:
        self._no_longer(path)
        if path.count("/") > DEPTH_MOST or user_of(path) is not None:
            return  # never found; a user's slice mostly is none
        is_made_up = _is_made_up(path)
        if is_made_up:
            self._leave_room(_home_of(path))
        if len(self._waiting) >= _WAITING_MOST:
            if is_made_up:
                return
            self._no_longer(next(iter(self._made_up or self._waiting)))
        self._waiting[path] = row
        if is_made_up:
            self._made_up[path] = None

    def _leave_room(self, home: str) -> None:
        """For one more that a user made; nobody takes more than his own part of another's."""
        own = [path for path in self._made_up if path.startswith(home)]
        if len(own) >= _OF_ONE_MOST:
            self._no_longer(own[0])
        elif len(self._made_up) >= _MADE_UP_MOST:
            self._no_longer(next(iter(self._made_up)))

    def _no_longer(self, path: str) -> None:
        self._waiting.pop(path, None)
        self._made_up.pop(path, None)

    def _name(self, member: GroupMember, row: Mapping[str, object]) -> None:
        group = member.group
        group.name = word(row.get("name")) or group.name
        group.pod = word(row.get("pod")) or group.pod
        rank, adj, request = row.get("class_rank"), row.get("adj"), row.get("request")
        if is_whole(rank) and rank <= SYSTEM:
            group.class_rank = rank
        if isinstance(adj, int) and not isinstance(adj, bool) and -1000 <= adj <= 1000:
            group.adj = adj
        if is_whole(request):
            group.request_bytes = request
        if isinstance(row.get("role"), str):
            group.protected_by = word(row["role"])

    def settle(self, now: float) -> None:
        """Each tick, once it is known which folders there are."""
        for path in self._waiting.keys() & self._members.keys():
            member, row = self._members[path], self._waiting[path]
            if row.get("inode") == member.group.inode:
                self._name(member, row)
                self._no_longer(path)
        if now - self._given_up >= _GIVE_UP_AGAIN_SECONDS:
            self._given_up = now
            for member in self._members.values():
                group = member.group
                is_old = now - group.started_seconds >= GIVE_UP_SECONDS
                if is_old and group.protected_by == NOT_TOLD:
                    group.protected_by = ""

    def _stuck(self, message: Mapping[str, object], now: float) -> bool:
        rows = rows_of(message)
        if rows is None:
            return False
        self.forget_stuck()
        self.stuck_seconds = now
        for row in rows:
            member = self._member(row)
            if member is None or not isinstance(row, dict):
                continue
            member.group.hopeless_why = word(row.get("why"))
            returns = row.get("returns")
            if is_whole(returns):
                member.group.gives_back_bytes = returns
            busy = row.get("user_cpus")  # of all; the guard asks some of a thousand processes
            if isinstance(busy, int | float) and 0.0 <= busy < _CPUS_MOST:
                member.told_progress = float(busy)
        return True

    def forget_stuck(self) -> None:
        """What was judged once does not hold for ever."""
        self.stuck_seconds = 0.0
        for member in self._members.values():
            member.told_progress = None
            if member.group.hopeless_why:
                member.group.hopeless_why = ""

    def tend(self, now: float) -> None:
        """Each tick, before anything is read."""
        if self.stuck_seconds and now - self.stuck_seconds > _STUCK_LASTS_SECONDS:
            self.forget_stuck()

    def _member(self, row: object) -> GroupMember | None:
        """Whom it is about, when path and inode agree."""
        if not isinstance(row, dict) or not isinstance(row.get("cgroup"), str):
            self.dropped += 1
            return None
        member = self._members.get(row["cgroup"])
        if member is None or row.get("inode") != member.group.inode:
            return None  # not found yet, gone, or one that only leads to others
        return member


def _is_made_up(path: str) -> bool:
    """Whether somebody else than the host's own system made it; Slurm's jobs are the host's."""
    place = place_of(path)
    return place.cgroup != path or (place.is_delegated and place.job is None)


def _home_of(path: str) -> str:
    """All that one user made begins with it."""
    end = path.find("/", path.find("/user@") + 1)
    return path[: end + 1]


def rows_of(message: Mapping[str, object]) -> list[object] | None:
    """None: there are none, or absurdly many."""
    rows = message.get("rows")
    return rows if isinstance(rows, list) and len(rows) <= _ROWS_MOST else None


def word(value: object) -> str:
    """Text of bounded length; empty when it is none."""
    return value[:_TEXT_MOST] if isinstance(value, str) else ""
