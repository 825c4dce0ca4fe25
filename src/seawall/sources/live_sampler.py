# SPDX-License-Identifier: Apache-2.0
"""Node and cgroups once a second, from files that are opened once: for ``seawall top``.

Beside ``host/live.py``, which opens each file anew: a node that dies gives no descriptor and no
page for that, and 250 workloads a second would cost it more than all the rest.  The tree is the
guard's own (``guard/sense/tree.py``): inotify tells of new cgroups, and in peace none is listed.

What costs the kernel most is read in turns: memory.stat sums over all processors (and below).
"""

import errno
import os
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from seawall.accounts.live_view.live_sample import GroupSample, LiveSample, NodeSample
from seawall.accounts.node_memory.headroom import estimate_available
from seawall.accounts.node_memory.memory_left import memory_left
from seawall.guard.sense.files import KernelFile, first_bytes, open_quietly
from seawall.guard.sense.group_folder import Folder
from seawall.guard.sense.tree import GroupTree
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.problems import ParseProblem, UsageProblem
from seawall.readings import cgroup, guard_status, meminfo, numa, zoneinfo
from seawall.readings.guard_status import GuardStatus
from seawall.readings.kernel import Kernel
from seawall.readings.kernel import read as read_kernel
from seawall.readings.numa import NumaNode, NumaNodes
from seawall.readings.reading import UNLIMITED, Unlimited

if TYPE_CHECKING:
    from seawall.readings.memcg import Memcgs

LIMIT_TURNS: Final = 5
"""Looks until every limit was read again."""
STAT_TURNS: Final = 15
_FILES_MOST: Final = 1 << 16
_NUMBER_BYTES: Final = 32
_TEXT_BYTES: Final = 1024
_STAT_BYTES: Final = 8192
_NODE_BYTES: Final = 1 << 16
_ZONES_BYTES: Final = 1 << 20
_V1_UNLIMITED: Final = 2**63 - (64 << 10)
_OUT_OF_FILES: Final = (-errno.EMFILE, -errno.ENFILE)
_STALLS: Final = ("memory", "io", "cpu")
_V1_FILES: Final = (
    "memory.usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control", "", "memory.stat",
)  # fmt: skip
_V2_FILES: Final = (
    "memory.current", "memory.max", "memory.events", "memory.pressure", "memory.stat",
)  # fmt: skip
_CHARGE, _LIMIT, _EVENTS, _PRESSURE, _STAT = range(5)


class _Member:
    """The files of one cgroup, and of what is read in turns the last values."""

    __slots__ = (
        "charge", "clean", "fds", "folder", "kills", "limit", "paths", "sample", "sock", "turn",
    )  # fmt: skip

    def __init__(self, folder: Folder, paths: Sequence[str], turn: int) -> None:
        self.folder, self.paths, self.turn = folder, paths, turn
        self.fds = [open_quietly(path, os.O_RDONLY | os.O_NONBLOCK) if path else -errno.ENOENT
                    for path in paths]  # fmt: skip
        self.limit: int | Unlimited | None = None
        self.clean: int | None = None
        self.kills: int | None = None
        self.sock: int | None = None
        """Buffers of sockets (v2); it is read with ``clean``."""
        self.charge: bytes | None = b""
        """As it was read last."""
        self.sample: GroupSample | None = None
        """The last one, which is good as long as nothing has changed."""

    def read(self, which: int, most: int) -> bytes | None:
        """None where it is not there or may not be read; OSError ENODEV when its cgroup is gone."""
        fd = self.fds[which]
        if fd >= 0:
            try:
                return os.pread(fd, most, 0)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    raise
                return None
        return first_bytes(self.paths[which], most) if fd in _OUT_OF_FILES else None

    def close(self) -> None:
        for fd in self.fds:
            if fd >= 0:
                os.close(fd)
        self.fds = [-errno.ENOENT] * len(self.fds)


class LiveSampler:
    """Opens all that it needs; ``sample`` reads it.  UsageProblem where there is nothing to see."""

    def __init__(self, root: str = "/") -> None:
        if not os.path.isdir(root):
            raise UsageProblem(f"--root {root}: not a folder")
        _raise_file_limit()
        self._root = os.path.realpath(root).rstrip("/")
        host = LiveHost(root)
        try:
            self.is_live = host.is_live
            """False: files that somebody collected, whose numbers stand still."""
            kernel = read_kernel(host)
            if isinstance(kernel, Unread):
                raise UsageProblem(f"{kernel.path}: {kernel.detail or kernel.why}")
            self.kernel: Kernel = kernel
            self._numa = numa.read(host)
            layout = cgroup.read_layout(host)
        finally:
            host.close()
        self.version = None if isinstance(layout, Unread) else layout.memory_version
        """Of cgroups: 1 or 2; None: no tree counts memory."""
        self._files = _V1_FILES if self.version == 1 else _V2_FILES
        self._mount = ""
        self._unseen: list[str] = []
        self._open_node()
        self._members: dict[str, _Member] = {}
        self._tree: GroupTree | None = None
        self._wanted: frozenset[str] = frozenset()
        self._is_changed = True
        self._turn = 0
        self._guard: GuardStatus | None = None
        self._guard_written = 0
        self._kills: int | None = None
        self._stalled: bytes | None = None
        self._is_killed = self._is_stalled = True
        """Whether anybody was OOM-killed, or waited for memory, since the last look."""
        self.has_new = False
        """Whether workloads came in the last look: somebody may want to know their names."""
        if isinstance(layout, Unread):
            self._unseen.append(f"workloads: {layout.path}: {layout.detail or layout.why}")
        elif self.version is None or layout.memory_tree is None:
            self._unseen.append("workloads: no cgroup tree counts memory here")
        else:
            self._mount = self._inside(layout.memory_tree).rstrip("/")
            self._tree = GroupTree(self._mount)

    def _inside(self, path: str) -> str:
        """Where a path of the host is here; UsageProblem where a link leads out of the root."""
        place = os.path.realpath(self._root + path)
        if self._root and place != self._root and not place.startswith(self._root + "/"):
            raise UsageProblem(f"--root: {path} leads out of it, to {place}")
        return place

    def _open_node(self) -> None:
        self._meminfo = KernelFile(self._inside(meminfo.PATH), _NODE_BYTES)
        self._vmstat = KernelFile(self._inside("/proc/vmstat"), _NODE_BYTES)
        self._zoneinfo = KernelFile(self._inside(zoneinfo.PATH), _ZONES_BYTES)
        self._stalls = {
            name: open_quietly(self._inside(f"/proc/pressure/{name}")) for name in _STALLS
        }
        nodes = () if isinstance(self._numa, Unread) else self._numa.nodes
        self._bare_nodes = {
            node.number: KernelFile(
                self._inside(f"{numa.FOLDER}/node{node.number}/meminfo"), _NODE_BYTES
            )
            for node in nodes if node.has_cpus is False
        }  # fmt: skip

    def guard(self) -> GuardStatus | None:
        """What a guard of this boot last wrote; opened only when that is new.  None without one."""
        path = self._inside(guard_status.PATH)
        try:
            written = os.stat(path).st_mtime_ns
        except OSError:
            return None
        if written != self._guard_written:
            self._guard_written, self._guard = written, None
            text = first_bytes(path, guard_status.LIMIT_BYTES)
            with suppress(ParseProblem):
                self._guard = guard_status.parse(text or b"")
        status = self._guard
        return status if status is not None and status.boot_id == self.kernel.boot_id else None

    def also(self, paths: Iterable[str]) -> None:
        """Cgroups that are rows although others lie below them, as somebody found meanwhile."""
        wanted = frozenset(paths)
        self._is_changed |= wanted != self._wanted
        self._wanted = wanted

    def memcgs(self) -> "Memcgs | None":
        """Of every cgroup that is read anyway, what the last look brought: whoever needs that and
        no more need not read thousands of files.  None before the first look.
        """
        from seawall.readings.memcg import Memcg, Memcgs  # noqa: PLC0415 - in a child alone

        if self.version is None or not self._turn:
            return None
        version: Literal[1, 2] = 1 if self.version == 1 else 2
        by_path = {
            path: Memcg(
                path=path, version=version, usage=_number(member.charge), limit=member.limit,
                sock=member.sock, oom_kill=member.kills, stat={}, events={}, events_local={},
            ) for path, member in self._members.items()
        }  # fmt: skip
        return Memcgs(version, by_path, self._mount, ())

    # --- one look -----------------------------------------------------------------------

    @property
    def has_groups(self) -> bool:
        """Whether anybody has looked for cgroups yet."""
        return self._turn > 0

    def node_sample(self) -> LiveSample:
        """The node alone, which takes a hundredth of what the first look at hundreds of cgroups
        takes.
        """
        return LiveSample(self._node(time.monotonic()), ())

    def sample(self) -> LiveSample:
        """Read node and cgroups once."""
        now = time.monotonic()
        self._turn += 1
        if self._tree is not None:
            if self._turn == 1:
                self._tree.open(now)
            elif self.is_live:
                self._tree.update(now)
            if (
                self._tree.new_folders
                or self._tree.removed_folders
                or self._tree.turned_units
                or self._is_changed
            ):
                self._follow(self._tree)
            else:
                self.has_new = False
        node = self._node(now)
        groups = tuple(self._groups())
        unseen = list(self._unseen)
        if self._tree is not None and self._tree.blind:
            unseen.append(self._tree.blind)
        if node.left is None:
            unseen.append(self._meminfo.problem or f"{meminfo.PATH}: malformed")
        return LiveSample(node, groups, tuple(unseen))

    def _follow(self, tree: GroupTree) -> None:
        """Open what came, close what went."""
        self._is_changed = False
        folders = tree.folders
        rows = [f for f in folders.values() if f.is_group or f.path in self._wanted]
        self.has_new = False
        for folder in rows:
            member = self._members.get(folder.path)
            if member is not None and member.folder is folder:
                continue
            if member is not None:
                member.close()
            place = f"{self._mount}{folder.path}"
            paths = [f"{place}/{name}" if name else "" for name in self._files]
            self._members[folder.path] = _Member(folder, paths, len(self._members))
            self.has_new |= folder.path not in self._wanted  # else somebody has named it
        if len(self._members) > len(rows):
            kept = {folder.path for folder in rows}
            for path in [path for path in self._members if path not in kept]:
                self._members.pop(path).close()
        tree.new_folders.clear()
        tree.removed_folders.clear()
        tree.turned_units.clear()

    def _groups(self) -> Iterator[GroupSample]:
        gone = []
        for path, member in self._members.items():
            try:
                yield self._group(path, member)
            except OSError:
                gone.append(path)
        for path in gone:
            self._members.pop(path).close()
            if self._tree is not None:
                self._tree.check(path)

    def _group(self, path: str, member: _Member) -> GroupSample:
        """The very same object where nothing has changed: no one need look at it again.

        No cgroup counts a kill, or stalls, without the whole machine doing so.
        """
        charge = member.read(_CHARGE, _NUMBER_BYTES)
        before, turn = member.sample, self._turn + member.turn
        is_stalled = self._is_stalled or (before is not None and bool(before.stall))
        if before is None or self._is_killed:
            events = member.read(_EVENTS, _TEXT_BYTES)
            member.kills = None if events is None else _keyed(events, b"oom_kill")
        elif charge == member.charge and not is_stalled and turn % LIMIT_TURNS:
            return before
        if before is None or turn % LIMIT_TURNS == 0:
            member.limit = _limit(member.read(_LIMIT, _NUMBER_BYTES))
        if before is None or turn % STAT_TURNS == 0:
            stat = member.read(_STAT, _STAT_BYTES)
            member.clean = self._clean(stat)
            member.sock = None if stat is None or self.version == 1 else _keyed(stat, b"sock")
        stall = before.stall if before is not None else None
        if before is None or is_stalled:
            stall = _avg10(member.read(_PRESSURE, _TEXT_BYTES))
        member.charge = charge
        sample = GroupSample(
            path, _number(charge), member.limit, member.kills, stall, member.clean
        )  # fmt: skip
        if sample != before:
            member.sample = sample
        return member.sample or sample

    def _clean(self, stat: bytes | None) -> int | None:
        """As ``accounts/pods/pod_table.py`` counts it: file pages on the LRU lists without those
        that wait to be written.
        """
        if stat is None:
            return None
        total = b"total_" if self.version == 1 else b""
        waits = b"total_" if total else b"file_"
        dirty = (waits + b"dirty", waits + b"writeback")
        lists = [_keyed(stat, total + name) for name in (b"active_file", b"inactive_file")]
        if lists[0] is None or lists[1] is None:
            return None
        return max(0, lists[0] + lists[1] - sum(_keyed(stat, name) or 0 for name in dirty))

    # --- the node -----------------------------------------------------------------------

    def _node(self, now: float) -> NodeSample:
        known = None
        if self._meminfo.read():
            with suppress(ParseProblem):
                known = meminfo.parse(bytes(self._meminfo.buffer[: self._meminfo.size]))
        kills = None
        if self._vmstat.read():
            text = bytes(self._vmstat.buffer[: self._vmstat.size])
            kills = _keyed(text, b"oom_kill")
        self._is_killed, self._kills = kills is None or kills != self._kills, kills
        texts = {name: _pread(fd) for name, fd in self._stalls.items() if fd >= 0}
        total = (texts.get("memory") or b"").partition(b"total=")[2].partition(b"\n")[0]
        self._is_stalled, self._stalled = not total or total != self._stalled, total
        stalls = {
            name: share for name, text in texts.items() if (share := _avg10(text)) is not None
        }
        left = None
        if known is not None:
            estimate = self._estimate(known) if known.mem_available is None else None
            left = memory_left(known, self._nodes_now(), estimate)
        moment = time.time() if self.is_live else self.kernel.taken_at_unix_seconds
        return NodeSample(
            now, moment or 0.0, left, stalls, kills,
            None if known is None else known.swap_total, None if known is None else known.swap_free,
        )  # fmt: skip

    def _estimate(self, known: meminfo.Meminfo) -> int | None:
        if not self._zoneinfo.read():
            return None
        try:
            zones = zoneinfo.parse(bytes(self._zoneinfo.buffer[: self._zoneinfo.size])).zones
        except ParseProblem:
            return None
        return estimate_available(known, zones, self.kernel.page_size)

    def _nodes_now(self) -> NumaNodes | Unread:
        """Nodes without CPUs as they are now; of the others only that they have some counts."""
        if isinstance(self._numa, Unread) or not self._bare_nodes:
            return self._numa
        nodes = []
        for node in self._numa.nodes:
            file = self._bare_nodes.get(node.number)
            fields = node.fields
            if file is not None and file.read():
                with suppress(ParseProblem):
                    fields = numa.parse_meminfo(bytes(file.buffer[: file.size]))
            nodes.append(
                NumaNode(
                    number=node.number, has_cpus=node.has_cpus, fields=fields,
                    hugetlb_bytes=node.hugetlb_bytes, vmstat={},
                )
            )  # fmt: skip
        return NumaNodes(tuple(nodes))

    def close(self) -> None:
        """Give all descriptors back."""
        for member in self._members.values():
            member.close()
        if self._tree is not None:
            self._tree.close()
        for file in (self._meminfo, self._vmstat, self._zoneinfo, *self._bare_nodes.values()):
            file.close()
        for fd in self._stalls.values():
            if fd >= 0:
                os.close(fd)
        self._stalls = {}


def _raise_file_limit() -> None:
    """Five files for each workload: the soft limit of a shell is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES_MOST if hard == resource.RLIM_INFINITY else min(hard, _FILES_MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _pread(fd: int) -> bytes | None:
    try:
        return os.pread(fd, _TEXT_BYTES, 0)
    except OSError:  # EOPNOTSUPP with psi=0
        return None


def _number(text: bytes | None) -> int | None:
    text = (text or b"").strip()
    return int(text) if text.isdigit() and len(text) <= 20 else None


def _limit(text: bytes | None) -> int | Unlimited | None:
    if text is not None and text.strip() == b"max":
        return UNLIMITED
    value = _number(text)
    return UNLIMITED if value is not None and value >= _V1_UNLIMITED else value


def _keyed(text: bytes, key: bytes) -> int | None:
    """The number behind ``key`` of lines of ``KEY NUMBER``."""
    at = 0 if text.startswith(key + b" ") else text.find(b"\n" + key + b" ") + 1
    if at == 0 and not text.startswith(key + b" "):
        return None
    return _number(text[at + len(key) + 1 : at + len(key) + 22].split(b"\n", 1)[0])


def _avg10(text: bytes | None) -> float | None:
    """Of the ``some`` line, as a fraction."""
    if text is None or not text.startswith(b"some avg10="):
        return None
    try:
        share = float(text[11:18].split(b" ", 1)[0])
    except ValueError:
        return None
    return share / 100 if 0 <= share <= 100 else None
