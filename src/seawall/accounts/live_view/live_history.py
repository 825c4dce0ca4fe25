# SPDX-License-Identifier: Apache-2.0
"""The last minute of ``seawall top``: rates, kills of late, how long memory lasts; rows of it.

No clock of its own: every sample brings its time.
"""

from collections import deque
from collections.abc import Container, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.live_view.live_sample import GroupSample, LiveSample, NodeSample
from seawall.cgroup_paths import Kind, place_of
from seawall.readings.reading import Unlimited

MINUTE_SECONDS: Final = 60.0
_PACE_SECONDS: Final = 10.0
"""Over which the pace of headroom is the median slope (Theil and Sen)."""
_PACE_SAMPLES: Final = 20
RATE_SECONDS: Final = 2.0
"""At least, before anybody speaks of a pace."""
_PACE_LEAST_SHARE: Final = 0.002
"""Of the total: what headroom must have lost over the window before anybody counts seconds."""
_GROWTH_SECONDS: Final = 5.0
_GROWTH_LEAST_SECONDS: Final = 0.05
_CHANGES_MOST: Final = 64
_GAP_SECONDS: Final = 5.0
_SAMPLES_MOST: Final = 1200
_PLAIN_LEAST_BYTES: Final = 1 << 20
"""A cgroup that is nobody's, without a megabyte, is no row: as in ``seawall pods``."""
_SHORT_ID: Final = 12


UncountedSource: TypeAlias = Literal["own_look", "guard"]
"""Who looked for uncounted memory: a child of ``top``, or the guard of this host."""


class KnownWorkload(NamedTuple):
    """What the slow look said of one workload (files of the node, other processes)."""

    name: str
    kind: Kind
    is_leaf: bool
    """It is a row of its own."""
    uncounted_bytes: int | None
    """Held and in no cgroup's charge; None: it could not be seen, or nobody asked yet."""
    kills: int | None = None
    """In it and below it, those of cgroups that are gone included."""
    source: UncountedSource = "own_look"
    """Of the uncounted bytes."""


class LiveRow(NamedTuple):
    """One workload on the screen.  ``None``: not known."""

    path: str
    name: str
    charge_bytes: int | None
    """Without the rows below it, where there are any."""
    limit_bytes: int | Unlimited | None
    clean_bytes: int | None
    growth: float | None
    """Bytes a second over the last seconds."""
    uncounted_bytes: int | None
    stall: float | None
    kills: int | None
    new_kills: int | None
    """In the last minute, as far as it was watched."""
    uncounted_source: UncountedSource | None = None
    """Who looked for ``uncounted_bytes``."""

    @property
    def held_bytes(self) -> int | None:
        """Of the charge, what cannot be dropped at once."""
        if self.charge_bytes is None or self.clean_bytes is None:
            return self.charge_bytes
        return max(self.charge_bytes - self.clean_bytes, 0)

    @property
    def fraction(self) -> float | None:
        """``held_bytes`` of its limit; None without one."""
        held = self.held_bytes
        if held is None or not isinstance(self.limit_bytes, int) or self.limit_bytes <= 0:
            return None
        return held / self.limit_bytes


class _GroupPast:
    """Of one cgroup: how its charge changed in the last seconds, kills of the last minute."""

    __slots__ = ("changes", "group", "is_row", "new", "row")

    def __init__(self, seconds: float, group: GroupSample) -> None:
        self.group = group
        self.changes: deque[tuple[float, int]] = deque(maxlen=_CHANGES_MOST)
        """When the charge became what; the first one is that of before the last seconds."""
        self.new: deque[tuple[float, int]] = deque(maxlen=_CHANGES_MOST)
        self.is_row: bool | None = None
        self.row: LiveRow | None = None
        """As it was made last."""
        if group.charge_bytes is not None:
            self.changes.append((seconds, group.charge_bytes))

    def add(self, seconds: float, group: GroupSample) -> None:
        before, self.group = self.group, group
        self.is_row = self.row = None
        if group.charge_bytes is not None and group.charge_bytes != before.charge_bytes:
            self.changes.append((seconds, group.charge_bytes))
        if group.kills is not None and before.kills is not None and group.kills > before.kills:
            self.new.append((seconds, group.kills - before.kills))

    def is_at_rest(self, seconds: float) -> bool:
        """Whether a row that was made before is still right."""
        return len(self.changes) == 1 and not self.new and (
            seconds - self.changes[0][0] > _GROWTH_SECONDS
        )  # fmt: skip

    def growth(self, seconds: float) -> float | None:
        """Bytes a second since what was five seconds ago; None: known for less than half a one."""
        changes = self.changes
        while len(changes) > 1 and seconds - changes[1][0] >= _GROWTH_SECONDS:
            changes.popleft()
        if not changes:
            return None
        since = max(changes[0][0], seconds - _GROWTH_SECONDS)
        if seconds - since < _GROWTH_LEAST_SECONDS:
            return None
        return (changes[-1][1] - changes[0][1]) / (seconds - since)

    def new_kills(self, seconds: float) -> int:
        while self.new and seconds - self.new[0][0] > MINUTE_SECONDS:
            self.new.popleft()
        return sum(number for _, number in self.new)


class LiveHistory:
    """Takes in a sample each second, and says what is on the screen now."""

    def __init__(self, interval_seconds: float, *, is_live: bool = True) -> None:
        """``is_live`` False: files that somebody collected, of which no rate can be told."""
        self._is_live = is_live
        self._gap_seconds = max(_GAP_SECONDS, 3 * interval_seconds)
        """Between two samples: after more, nobody has looked."""
        self._nodes: deque[NodeSample] = deque(maxlen=_SAMPLES_MOST)
        self._past: dict[str, _GroupPast] = {}
        self._places: dict[str, tuple[str, Kind, bool]] = {}
        self._known: Mapping[str, KnownWorkload] = {}
        self._is_known = False
        self._chosen: tuple[str, ...] = ()
        self._pace: float | None = None
        self._has_pace = False
        """Of the newest sample."""
        self._above: dict[str, str] = {}
        """Row -> the row that it lies in."""
        self.sample: LiveSample | None = None

    def add(self, sample: LiveSample) -> None:
        """The newest one."""
        self.sample = sample
        self._has_pace = False
        seconds = sample.node.seconds
        self._nodes.append(sample.node)
        while len(self._nodes) > 2 and seconds - self._nodes[0].seconds > MINUTE_SECONDS:
            self._nodes.popleft()
        past = self._past
        for group in sample.groups:
            one = past.get(group.path)
            if one is None:
                past[group.path] = _GroupPast(seconds, group)
            elif one.group is not group:  # most of them have not changed: they are not looked at
                one.add(seconds, group)
        if len(past) > len(sample.groups):
            there = {group.path for group in sample.groups}
            for path in [path for path in past if path not in there]:
                del past[path]

    # --- the node -----------------------------------------------------------------------

    def headroom_minute(self, columns: int) -> list[int | None]:
        """Bytes left, one value for each of so many equal parts of the last minute, the newest
        last: the least of each part; None where nobody looked.
        """
        parts: list[int | None] = [None] * columns
        now = self._nodes[-1].seconds if self._nodes else 0.0
        before: int | None = None
        for earlier, node in zip([None, *self._nodes], self._nodes, strict=False):
            at = columns - 1 - int((now - node.seconds) / MINUTE_SECONDS * columns)
            if earlier is not None and node.seconds - earlier.seconds > self._gap_seconds:
                before = None
            if before is not None and earlier is not None and earlier.left is not None:
                for between in range(before + 1, at):
                    parts[between] = earlier.left.bytes
            if node.left is not None and 0 <= at < columns:
                known = parts[at]
                parts[at] = node.left.bytes if known is None else min(known, node.left.bytes)
                before = at
        return parts

    def pace(self) -> float | None:
        """Bytes a second by which memory that is left changes; None before two seconds passed, 0.0
        where it moves no more than it always does.
        """
        if not self._has_pace:
            self._pace, self._has_pace = self._median_slope(), True
        return self._pace

    def _median_slope(self) -> float | None:
        now = self._nodes[-1].seconds if self._nodes else 0.0
        known = [
            (node.seconds, node.left) for node in self._nodes
            if node.left is not None and now - node.seconds <= _PACE_SECONDS
        ]  # fmt: skip
        known = known[:: max(1, len(known) // _PACE_SAMPLES)]
        if not self._is_live or len(known) < 2 or known[-1][0] - known[0][0] < RATE_SECONDS:
            return None
        slopes = sorted(
            (after.bytes - before.bytes) / (later - earlier)
            for i, (earlier, before) in enumerate(known)
            for later, after in known[i + 1 :]
            if later > earlier
        )
        if not slopes:
            return None
        median = slopes[len(slopes) // 2]
        lost = abs(median) * (known[-1][0] - known[0][0])
        return median if lost >= _PACE_LEAST_SHARE * known[-1][1].total_bytes else 0.0

    def seconds_left(self) -> float | None:
        """Until nothing is left at this pace; None: it does not shrink, or that is not known."""
        pace, left = self.pace(), self._nodes[-1].left if self._nodes else None
        return left.bytes / -pace if pace is not None and pace < 0 and left is not None else None

    def new_kills(self) -> int | None:
        """Of the whole machine in the last minute, as far as it was watched; None: not counted."""
        known = [node.kills for node in self._nodes if node.kills is not None]
        return max(0, known[-1] - known[0]) if known and self._is_live else None

    def watched_seconds(self) -> float:
        """How much of the last minute was watched."""
        return self._nodes[-1].seconds - self._nodes[0].seconds if self._nodes else 0.0

    # --- workloads ----------------------------------------------------------------------

    def rows(
        self, known: Mapping[str, KnownWorkload], *, uncounted_is_known: bool
    ) -> list[LiveRow]:
        """One for each workload, in no order.  ``uncounted_is_known``: who is not in ``known``
        holds none, and is not merely unseen.
        """
        if self.sample is None:
            return []
        if known is not self._known or uncounted_is_known != self._is_known:
            self._known, self._is_known = known, uncounted_is_known
            for past in self._past.values():
                past.is_row = past.row = None
        chosen = [past for past in self._past.values() if self._is_row(past)]
        inner = self._inner_charges(chosen)
        seconds = self.sample.node.seconds
        return [self._row(past, inner.get(past.group.path), seconds) for past in chosen]

    def _row(self, past: _GroupPast, inner: int | None, seconds: float) -> LiveRow:
        if past.row is not None and inner is None and past.is_at_rest(seconds):
            return past.row
        group = past.group
        told = self._known.get(group.path)
        is_live = self._is_live
        uncounted = 0 if self._is_known else None
        source: UncountedSource | None = "own_look" if self._is_known else None
        kills, charge = group.kills, group.charge_bytes
        if told is not None:
            uncounted = told.uncounted_bytes
            source = None if uncounted is None else told.source
            if told.kills is not None:
                kills = max(told.kills, kills or 0)
        if charge is not None and inner is not None:
            charge = max(0, charge - inner)
        past.row = LiveRow(
            group.path, told.name if told else self._place(group.path)[0], charge,
            group.limit_bytes, group.clean_bytes, past.growth(seconds) if is_live else None,
            uncounted, group.stall, kills, past.new_kills(seconds) if is_live else None, source,
        )  # fmt: skip
        return past.row

    def _is_row(self, past: _GroupPast) -> bool:
        if past.is_row is None:
            group = past.group
            told, kind = self._known.get(group.path), self._place(group.path)[1]
            past.is_row = told.is_leaf if told is not None else (
                (self._place(group.path)[2] and kind in ("container", "unit"))
                or (kind == "cgroup" and (group.charge_bytes or 0) >= _PLAIN_LEAST_BYTES)
            )  # fmt: skip
        return past.is_row

    def _inner_charges(self, chosen: Sequence[_GroupPast]) -> dict[str, int]:
        """By row, what the rows below it are charged with, no other row in between."""
        paths = tuple(past.group.path for past in chosen)
        if paths != self._chosen:
            self._chosen, known = paths, frozenset(paths)
            self._above = {path: above for path in paths if (above := _row_above(path, known))}
        inner: dict[str, int] = {}
        for path, above in self._above.items():
            charge = self._past[path].group.charge_bytes or 0
            inner[above] = inner.get(above, 0) + charge
        return inner

    def _place(self, path: str) -> tuple[str, Kind, bool]:
        """A name by the path alone, until somebody knows more: as ``accounts/workloads.py``
        names what the node's files do not; and whether it is that workload's own cgroup.
        """
        if path not in self._places:
            if len(self._places) > 4 * len(self._past) + 1024:
                self._places.clear()
            place = place_of(path)
            name = f"unit:{place.unit}" if place.unit else path
            if place.kind == "container":
                runtime, identity = place.runtime, (place.container_id or "")[:_SHORT_ID]
                named = runtime and place.machine
                name = f"{runtime}:{place.machine}" if named else f"container:{identity}"
            self._places[path] = name, place.kind, place.cgroup == path
        return self._places[path]


def _row_above(path: str, rows: Container[str]) -> str:
    """The nearest one that has a row; empty: none."""
    above = path.rpartition("/")[0]
    while above and above not in rows:
        above = above.rpartition("/")[0]
    return above
